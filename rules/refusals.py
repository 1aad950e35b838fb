"""Every code that a refusal may carry, and what it says. A test holds the table equal to the codes in `rules` and `rewrite`."""

from __future__ import annotations

from collections.abc import Mapping

ORDER: Mapping[str, str] = {
    "dependence-reversed": "Two iterations touch one element, one of them writes it, and they would run the other way round.",
    "carried-dependence": "A P, V or B loop would run at once two iterations that touch one element.",
    "reduction-bound": "A P, V or B loop would run at once two iterations that accumulate into one element.",
    "dependence-inexact": "As one of the others here, but a subscript or a guard reads data, so that it may be that nothing meets.",
    "other-source": "A read would get its value from another write than now, or from none.",
    "operand-changes": "A value would be computed again after something that it is computed from has changed.",
    "over-budget": "More than isl's budget of operations was needed. Nothing was proved, and what is not proved is refused.",
}
KERNELS: Mapping[str, str] = {
    "axis-bound-twice": "One GPU index would be bound twice along a path.",
    "axis-extents": "One GPU index would have two extents in one kernel.",
    "outside-block": "An item of a kernel would stand outside a block loop of that kernel.",
    "grid-limit": "A block index would have more values than a grid allows.",
    "thread-limit": "A thread index, or a block, would have more threads than a GPU allows.",
    "crosses-blocks": "Two blocks of one launch would touch one element of global memory, and nothing orders blocks.",
    "vector-access": "An access under a V loop would be no vector of the target: too wide, not unit-stride, or not aligned.",
}
MEMORY: Mapping[str, str] = {
    "scope-escapes-kernel": "A shared or local value would be read in another launch than the one that writes it.",
    "shared-crosses-blocks": "A shared value would be read in another block than the one that writes it.",
    "local-crosses-threads": "A local value would be read in another thread than the one that writes it.",
    "shared-memory": "The shared tensors of a kernel would not fit into a block's memory.",
    "tensor-scopes": "One tensor would be in global memory in one place and in shared or local memory in another.",
    "undecided": "The checker could not decide about the memory or the vectors of the result within its budget.",
}
LOOPS: Mapping[str, str] = {
    "kinds-differ": "The two loops are of different kinds.",
    "reduction-with-spatial": "One of the two loops walks a reduction and the other one does not.",
    "mixed-loop": "One loop walks axes of the result and reduced axes together.",
    "unroll-limit": "An equation would be repeated more often than unrolling is offered for.",
}
EQUATIONS: Mapping[str, str] = {
    "init-changes": "The new text would be read with another initialisation of some element.",
    "several-items": "The step works on a body of one equation, and this one holds more.",
    "no-accumulation": "The reduction is no accumulation by one operator.",
    "write-map": "The subscripts of a target do not tell which iteration wrote an element.",
    "read-in-subscript": "A value would have to be computed inside a subscript.",
    "typing-changes": "A value would be computed in another dtype, or rounded elsewhere.",
}
ARITHMETIC: Mapping[str, str] = {
    "no-such-form": "The expression does not have the form that the step rewrites.",
    "moves-accumulator": "The accumulator of an accumulation stays the first term at top level.",
    "needs-nonzero": "The two sides are equal only where something is not zero, and that is not shown.",
    "needs-finite": "The two sides are equal only where something is finite, and that is not shown.",
    "needs-range": "Equal over the reals, but a new intermediate may overflow, vanish or absorb another; offered on request.",
    "constant-range": "A new constant does not fit the dtype.",
    "term-too-large": "The expression is larger than the algebra looks at.",
}
GENERAL: Mapping[str, str] = {
    "no-change": "The step gives the program that it started from.",
}

GROUPS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("Order and concurrency", ORDER),
    ("Kernels and vectors", KERNELS),
    ("Memory", MEMORY),
    ("Loops", LOOPS),
    ("Equations", EQUATIONS),
    ("Arithmetic", ARITHMETIC),
    ("General", GENERAL),
)
REFUSALS: Mapping[str, str] = {code: meaning for _, table in GROUPS for code, meaning in table.items()}
