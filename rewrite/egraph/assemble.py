"""From a choice of kernels to a program: which are needed, in which order, and what their tensors are called.

A kernel that updates a value in place needs that value's storage for itself: it runs after all other readers, and two such kernels
for one value, or one for an input, make no program. That, and what else the checker finds, is a `Problem`, not an error.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leir.check import check, has_errors
from leir.ir import Program
from leir.lift import make_program
from leir.names import fresh_tensor
from rewrite.egraph.classes import Choice, Classes
from rewrite.egraph.templates import renamed


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a choice makes no program."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Assembled:
    """A program and the kernel that each of its expressions is."""

    program: Program
    kernels: tuple[int, ...]


Tie = Callable[[int], tuple[float, int]]
"""Which of several kernels that may come next does: the one with the least."""


def assemble(view: Classes, choice: Choice, window: Sequence[int] = (), tie: Tie | None = None) -> Assembled | Problem:
    """The program of a choice, which passes the checker. The kernels in ``window`` stand side by side, in that order."""
    flow = view.flow
    needed = _needed(view, choice)
    if isinstance(needed, Problem):
        return needed
    kernels, maker = needed
    if any(kernel not in kernels for kernel in window):
        return Problem("unused", "a kernel of the window is not on the way to an output")
    edges = _edges(view, kernels, maker)
    if isinstance(edges, Problem):
        return edges
    order = _ordered(kernels, edges, window, tie or (lambda k: (flow.place[k], k)))
    if order is None:
        return Problem("order", "the kernels need each other in a circle")
    names = _names(view, order, maker)
    if isinstance(names, Problem):
        return names
    return _program(view, order, names)


def needed_kernels(view: Classes, choice: Choice) -> tuple[int, ...] | Problem:
    """The kernels that the outputs need under a choice, each after those that it reads from."""
    found = _needed(view, choice)
    return found if isinstance(found, Problem) else found[0]


Maker = dict[int, tuple[int, int] | None]  # by class: kernel and output number that make it; None for an input
Names = dict[tuple[int, int], str]  # by kernel and hole of its template


def _needed(view: Classes, choice: Choice) -> tuple[tuple[int, ...], Maker] | Problem:
    """The kernels that the outputs need, and who makes each class."""
    maker: Maker = {}
    kernels: list[int] = []

    def visit(found: int, above: frozenset[int]) -> Problem | None:
        if found in maker:
            return None
        if view.is_input(found):
            maker[found] = None
            return None
        if found in above:
            return Problem("circle", "a value would be computed from itself")
        kernel = choice.get(found)
        if kernel is None:
            return Problem("no-kernel", "nothing computes a value")
        for operand in view.operands(kernel):
            problem = visit(operand, above | {found})
            if problem is not None:
                return problem
        if kernel not in kernels:
            kernels.append(kernel)
            for number, other in enumerate(view.outputs(kernel)):
                if choice.get(other) == kernel or other == found:
                    maker.setdefault(other, (kernel, number))
        return None

    for root in view.roots:
        if view.is_input(root):
            return Problem("output-is-input", "an output is an input, and nothing is left to copy it")
        problem = visit(root, frozenset())
        if problem is not None:
            return problem
    return tuple(kernels), maker


def _edges(view: Classes, kernels: Sequence[int], maker: Maker) -> set[tuple[int, int]] | Problem:
    """Pairs of kernels of which the first comes first."""
    edges: set[tuple[int, int]] = set()
    readers: dict[int, list[int]] = {}
    changers: dict[int, int] = {}
    for kernel in kernels:
        for operand in dict.fromkeys(view.operands(kernel)):
            made = maker[operand]
            if made is not None:
                edges.add((made[0], kernel))
            readers.setdefault(operand, []).append(kernel)
        for at, _ in view.flow.template_of(kernel).in_place:
            changed = view.operands(kernel)[at]
            if maker[changed] is None or changed in view.roots:
                return Problem("overwritten", "an input or an output would be updated in place")
            if changers.setdefault(changed, kernel) != kernel or view.operands(kernel).count(changed) > 1:
                return Problem("versions", "two kernels would update one value in place")
    for changed, kernel in changers.items():
        edges.update((reader, kernel) for reader in readers[changed] if reader != kernel)
    if any(a == b for a, b in edges):
        return Problem("circle", "a kernel needs what it computes")
    return edges


def _ordered(kernels: Sequence[int], edges: set[tuple[int, int]], window: Sequence[int], tie: Tie) -> tuple[int, ...] | None:
    """A topological order in which the window stays together, or None."""
    if any((b, a) in edges for k, a in enumerate(window) for b in window[k + 1 :]):
        return None
    group = dict.fromkeys(window, window[0] if window else 0)
    joined = {(group.get(a, a), group.get(b, b)) for a, b in edges}
    joined = {(a, b) for a, b in joined if a != b}
    nodes = list(dict.fromkeys(group.get(k, k) for k in kernels))
    waiting = {node: sum(b == node for _, b in joined) for node in nodes}
    ready = [(tie(node), node) for node in nodes if waiting[node] == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, node = heapq.heappop(ready)
        order += window if window and node == window[0] else [node]
        for a, b in sorted(joined):
            if a == node:
                waiting[b] -= 1
                if waiting[b] == 0:
                    heapq.heappush(ready, (tie(b), b))
    return tuple(order) if len(order) == len(kernels) else None


def _names(view: Classes, order: Sequence[int], maker: Maker) -> Names | Problem:
    """Names for the tensors of every kernel. What is updated in place keeps its name; known tensors have theirs; temporaries get
    the name that they wish for where it is free."""
    flow = view.flow
    storage: dict[tuple[int, int], int] = {}  # by kernel and output: the storage that it lives in
    wish: list[str] = []
    for kernel in order:
        plain = flow.template_of(kernel)
        in_place = {output: at for at, output in plain.in_place}
        for output in range(len(plain.writes)):
            at = in_place.get(output)
            if at is not None:
                made = maker[view.operands(kernel)[at]]
                assert made is not None
                storage[kernel, output] = storage[made]
            else:
                storage[kernel, output] = len(wish)
                wish.append(flow.values[flow.outputs(kernel)[output]].name)
    fixed: dict[int, str] = {}
    for name, root in flow.roots.items():
        made = maker[view.leader[root]]
        assert made is not None
        if fixed.setdefault(storage[made], name) != name:
            return Problem("one-value-two-outputs", "two outputs are one value, and no kernel copies it")
    taken = {tensor.name for tensor in flow.signature.tensors}
    names: dict[int, str] = {}
    for number, wished in enumerate(wish):
        name = fixed.get(number) or (fresh_tensor(taken) if wished in taken else wished)
        taken.add(name)
        names[number] = name
    found: Names = {}
    for kernel in order:
        plain = flow.template_of(kernel)
        for hole, operand in zip(plain.reads, view.operands(kernel), strict=True):
            made = maker[operand]
            found[kernel, hole] = flow.values[operand].name if made is None else names[storage[made]]
        for output, hole in enumerate(plain.writes):
            found[kernel, hole] = names[storage[kernel, output]]
    return found


def _program(view: Classes, order: Sequence[int], names: Names) -> Assembled | Problem:
    flow = view.flow
    nests = []
    for kernel in order:
        nest = flow.template_of(kernel).nest
        count = sum(k == kernel for k, _ in names)
        nests.append(renamed(nest, tuple(names[kernel, hole] for hole in range(count))))
    program = make_program(flow.signature, nests)
    if program.nests != tuple(nests):
        return Problem("init-changes", "the text would be read with another initialisation, or in another order")
    found = check(program)
    if has_errors(found):
        return Problem("check", "; ".join(f"{d.code}: {d.message}" for d in found if d.severity == "error"))
    return Assembled(program, tuple(order))
