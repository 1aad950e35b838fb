"""The 43 strategies in the order of strategies.md, and what the paper says of each (Tables 7-13, Appendix B.3-B.4).

K, the preconditions, and the difficulty class are the paper's. P and S are ours, read off the strategy's before and after: P counts
the kinds of existing component that it modifies (expressions, loop axes, ranges, equations, variables, index calculations;
variables are tensors and loop indices), S the kinds that it introduces (variables, index calculations, expressions). `EXCEPTIONS`
lists the strategies whose score does not give the paper's class; the catalogue keeps the paper's.

A strategy without ``propose`` is described only, and enumerates nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rules.graph import fission, fusion, inlining
from rules.mathematics import expansion, factorization, powers, streaming
from rules.operator import kinds, loops, partial_reductions, tiling
from rules.strategy import Difficulty, Level, Rounding, Strategy

PRECONDITIONS: Mapping[int, str] = {
    1: "pattern match",
    2: "dependency",
    3: "operation identity",
    4: "loop nest consistency",
    5: "equation count",
    6: "loop axis count",
    7: "loop range factorization",
    8: "reduction axis",
    9: "intermediate variable",
}
"""The paper's nine preconditions (Appendix B.3)."""

EXCEPTIONS: Mapping[str, Difficulty] = {
    "expression_reorder": "medium",  # moves expressions and changes nothing in them
    "loop_reorder": "medium",  # the body stays
    "loop_unrolling": "medium",  # one loop's kind
    "loop_parallelization": "medium",
    "loop_vectorization": "medium",
    "set_storage_scope": "difficult",  # one variable's scope
    "set_storage_layout": "difficult",  # one variable and its subscripts
    "multiplicative_split": "medium",  # one equation, by a variable that it has already
    "additive_split": "medium",
}
"""Where the score gives another class than the paper: the paper's class."""

Row = tuple[str, tuple[int, ...], int, int, Rounding, str]

# name, preconditions (K), modifies (P), introduces (S), rounding, what it does
_GRAPH: tuple[Row, ...] = (
    ("operator_fusion", (2, 4), 3, 0, "bitwise", "two consecutive expressions become one that shares their outermost loops"),
    ("operator_fission", (2, 5), 2, 0, "bitwise", "a body of several items is cut into two expressions with the same loops"),
    ("compute_inline", (2, 4), 3, 0, "bitwise", "a producer equation is substituted into the reads of a consumer"),
    ("expression_splitting", (), 1, 2, "bitwise", "a subexpression moves to a new temporary, computed by a new expression"),
    (
        "tensor_concat_to_fuse_operators",
        (2, 3),
        4,
        3,
        "bitwise",
        "two like expressions run as one over concatenated operands, and the result is split",
    ),
    (
        "tensor_split_to_decouple_operators",
        (),
        4,
        3,
        "bitwise",
        "one spatial axis is cut, the operation runs on each part, and the outputs are concatenated",
    ),
    ("common_subexpression_elimination", (3, 4), 2, 2, "bitwise", "a subexpression that occurs at least twice is computed once"),
    ("expression_reorder", (2,), 1, 0, "bitwise", "two neighbouring expressions swap"),
)
_OPERATOR: tuple[Row, ...] = (
    ("loop_reorder", (6,), 1, 0, "reassociates", "the loops of one nest run in another order"),
    ("loop_tiling", (6, 7), 3, 2, "reassociates", "two neighbouring loops become four: outer, outer, inner, inner"),
    ("loop_split", (7,), 3, 2, "bitwise", "one loop becomes an outer and an inner one"),
    ("loop_fusion", (6, 8), 3, 2, "bitwise", "two neighbouring loops become one"),
    ("loop_unrolling", (), 1, 0, "bitwise", "a serial loop is unrolled"),
    ("loop_parallelization", (8,), 1, 0, "bitwise", "a serial loop runs its iterations on CPU threads"),
    ("loop_vectorization", (8,), 1, 0, "bitwise", "a serial loop runs its iterations as lanes of SIMD instructions"),
    ("loop_binding", (8,), 3, 0, "bitwise", "a serial loop is mapped to a GPU block or thread index"),
    (
        "reduction_factorization",
        (8,),
        4,
        3,
        "reassociates",
        "a reduction runs as partial accumulations that are combined afterwards",
    ),
)
_MEMORY: tuple[Row, ...] = (
    (
        "cache_read_write",
        (),
        2,
        2,
        "bitwise",
        "the part of a tensor that an expression needs or makes goes through a new temporary",
    ),
    ("layout_transformation", (), 2, 3, "bitwise", "a tensor is copied into another layout, and one expression reads that"),
    ("set_storage_scope", (9,), 1, 0, "bitwise", "an intermediate moves between global, shared and local memory"),
    ("set_storage_layout", (9,), 2, 1, "bitwise", "an intermediate's own layout changes everywhere"),
    ("precompute_indices", (1,), 2, 2, "bitwise", "an index calculation is tabulated, and the access reads it from there"),
)
_MATHEMATICS: tuple[Row, ...] = (
    ("factorization", (1,), 1, 0, "real", "sums become products, and a division by a constant is distributed over a sum"),
    ("expand_factorization", (1,), 1, 0, "real", "products and integer powers of sums are multiplied out"),
    ("cancellation", (1,), 1, 0, "real+domain", "a term becomes one fraction in lowest terms"),
    ("expand_cancellation", (1,), 1, 0, "real+domain", "a fraction is separated, or expanded by a factor"),
    ("apart", (1,), 1, 0, "real+domain", "a fraction becomes partial fractions"),
    ("together", (1,), 1, 0, "real+domain", "terms become one fraction"),
    ("powsimp", (1,), 1, 0, "real", "powers, exponentials and reciprocals are combined"),
    ("expand_powsimp", (1,), 1, 0, "real", "powers, exponentials and quotients are taken apart"),
    ("logsimp", (1,), 1, 0, "real+domain", "the logarithm of a product, quotient or power becomes a sum"),
    ("expand_log", (1,), 1, 0, "real+domain", "a sum of logarithms becomes one logarithm"),
    ("collect", (1,), 1, 0, "real", "terms are gathered by a symbol, a call or a common factor"),
    ("expand_collect", (1,), 1, 0, "real", "gathered terms are taken apart again"),
    (
        "partially_equivalent_then_correct",
        (),
        4,
        3,
        "reassociates",
        "two operations on neighbouring data run as one, and the elements near the seam are corrected",
    ),
    ("exponential_split", (1,), 1, 1, "real+domain", "exp(x) becomes exp(x-v)*exp(v)"),
    ("multiplicative_split", (), 1, 0, "real+domain", "a term x becomes x/v*v"),
    ("additive_split", (), 1, 0, "real+domain", "a term x becomes x+v-v"),
    ("normal_loop_max_to_prefix_max", (1,), 4, 1, "bitwise", "a max reduction becomes a running maximum"),
    (
        "normal_loop_summation_on_exp_to_prefix_summation_on_exp",
        (1,),
        4,
        2,
        "real",
        "a sum of exponentials becomes a running sum, rescaled at each step",
    ),
    ("online_softmax", (1,), 4, 2, "real", "maximum and sum of a softmax become one streaming pass"),
    ("flashattention_wo_tiling", (1,), 4, 2, "real", "softmax and the product with a matrix become one streaming pass"),
    (
        "normal_matmul_to_prefix_matmul_based_on_online_softmax",
        (1,),
        4,
        2,
        "real",
        "the product after an online softmax joins its streaming pass",
    ),
)


def _rows(level: Level, rows: Iterable[Row]) -> tuple[Strategy, ...]:
    return tuple(
        Strategy(name, level, summary, preconditions, modifies, introduces, rounding, exception=EXCEPTIONS.get(name))
        for name, preconditions, modifies, introduces, rounding, summary in rows
    )


def _with_implementation(strategy: Strategy) -> Strategy:
    match strategy.name:
        case "operator_fusion":
            return replace(strategy, unit="window", width=2, parameters=fusion.depths, propose=fusion.operator_fusion)
        case "operator_fission":
            return replace(strategy, unit="window", parameters=fission.cuts, propose=fission.operator_fission)
        case "compute_inline":
            return replace(strategy, unit="program", parameters=inlining.consumers, propose=inlining.compute_inline)
        case "expression_reorder":
            return replace(strategy, unit="window", width=2, parameters=fission.swaps, propose=fission.expression_reorder)
        case "loop_reorder":
            return replace(strategy, unit="schedule", parameters=loops.orders, propose=loops.loop_reorder)
        case "loop_split":
            return replace(strategy, unit="schedule", parameters=loops.splits, propose=loops.loop_split)
        case "loop_binding":
            return replace(strategy, unit="schedule", parameters=loops.bindings, propose=loops.loop_binding)
        case "loop_tiling":
            return replace(strategy, unit="schedule", parameters=tiling.tilings, propose=tiling.loop_tiling)
        case "loop_fusion":
            return replace(strategy, unit="schedule", parameters=tiling.neighbours, propose=tiling.loop_fusion)
        case "loop_unrolling":
            return replace(strategy, unit="schedule", parameters=kinds.serial_loops, propose=kinds.loop_unrolling)
        case "loop_parallelization":
            return replace(strategy, unit="schedule", parameters=kinds.parallelizable, propose=kinds.loop_parallelization)
        case "loop_vectorization":
            return replace(strategy, unit="schedule", parameters=kinds.innermost_loop, propose=kinds.loop_vectorization)
        case "reduction_factorization":
            return replace(
                strategy, unit="window", parameters=partial_reductions.cuts, propose=partial_reductions.reduction_factorization
            )
        case "factorization":
            return replace(strategy, unit="scalar", parameters=factorization.parameters, propose=factorization.propose)
        case "expand_factorization":
            return replace(strategy, unit="scalar", parameters=expansion.parameters, propose=expansion.propose)
        case "powsimp":
            return replace(strategy, unit="scalar", parameters=powers.parameters, propose=powers.propose)
        case "online_softmax":
            return replace(strategy, unit="window", width=3, parameters=streaming.parameters, propose=streaming.online_softmax)
        case _:
            return strategy


STRATEGIES: tuple[Strategy, ...] = tuple(
    map(
        _with_implementation,
        (
            *_rows("graph", _GRAPH),
            *_rows("operator", _OPERATOR),
            *_rows("memory", _MEMORY),
            *_rows("mathematics", _MATHEMATICS),
        ),
    )
)
"""Every strategy, in the order of strategies.md."""

_BY_NAME: Mapping[str, Strategy] = {strategy.name: strategy for strategy in STRATEGIES}


def find(name: str) -> Strategy | None:
    """The strategy of that name, or None."""
    return _BY_NAME.get(name)
