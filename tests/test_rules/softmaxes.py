"""Softmax programs for tests of the streaming strategies, and what it means that two give the same."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leir.interpret import Mode, bits, interpret
from leir.ir import Program
from tests.test_rewrite.checked import program

Inputs = dict[str, NDArray[Any]]


def softmax(
    operand: str = "A_{a,c}",
    maximum: str | None = None,
    total: str | None = None,
    division: str | None = None,
    dtype: str = "f32",
    outputs: str = "ECD",
    rest: str = "",
    size: tuple[int, int] = (4, 6),
) -> str:
    """A softmax of A, with another operand G at hand, over c; the maximum C and the sum D are outputs too. ``maximum``, ``total``
    and ``division`` are the loops of the three expressions."""
    rows, columns = size
    loops = f"L^{{{rows}}}_{{a=0}}L^{{{columns}}}_{{c=0}}"
    shapes = {"E": f"[{rows},{columns}]", "C": f"[{rows}]", "D": f"[{rows}]"}
    known = [f"# {name} {dtype}[{rows},{columns}] input" for name in "AG"]
    known += [f"# {name} {dtype}{shapes[name]} output" for name in outputs]
    lines = (
        f"{maximum or loops}[C_{{a}}=max(C_{{a}},{operand});];",
        f"{total or loops}[D_{{a}}=D_{{a}}+exp({operand}-C_{{a}});];",
        f"{division or loops}[E_{{a,c}}=exp({operand}-C_{{a}})/D_{{a}};];",
        rest,
    )
    return "\n".join((*known, *(typed(line, dtype) for line in lines)))


def typed(source: str, dtype: str) -> str:
    """Superscripts for tensors that have none: capital letters that are no loop kind."""
    return re.sub(r"([A-KM-OQ-SW-Z])(?![\^a-z])", rf"\1^{{{dtype},g}}", source)


def same(before: Program, after: Program, inputs: Inputs, mode: Mode) -> None:
    """The maximum bit by bit; the rest within a few roundings where it is a number, and alike where it is not."""
    expected, found = interpret(before, inputs, mode=mode), interpret(after, inputs, mode=mode)
    for name, values in expected.items():
        if name == "C":
            np.testing.assert_array_equal(bits(found[name]), bits(values))
        eps = float(np.finfo(values.dtype).eps) if mode == "native" else 1e-15
        np.testing.assert_allclose(found[name], values, rtol=64 * eps, atol=4 * float(np.finfo(values.dtype).tiny))


def random_softmax(rng: Random) -> Program:
    """A softmax of a random operand over one or two axes, each expression with its own loop order, names and kinds."""
    dtype = rng.choice(("f16", "f32", "f64"))
    rank = rng.randint(1, 3)
    sizes = [rng.choice((1, 2, 3, 5)) for _ in range(rank)] + [rng.choice((2, 4, 7))]
    reduced = [rank] if rank < 2 or rng.random() < 0.7 else sorted(rng.sample(range(rank + 1), 2))
    rows = [k for k in range(rank + 1) if k not in reduced]
    operand = rng.choice(
        [
            "A_{*}",
            "A_{*}*0.5",
            "A_{*}*G_{*}",
            "A_{*}+G_{*}",
            "if_then_else(G_{*}>0,A_{*},-inf)",
            "A_{*}-G_{*}*2",
            "max(A_{*},G_{*})",
            "-A_{*}",
        ]
    )
    turned = rng.random() < 0.3
    shape = ",".join(map(str, sizes))
    row_shape = [str(sizes[k]) for k in rows]
    keep = rng.random() < 0.3
    lines = []
    for kind in ("max", "sum", "divide"):
        letters = rng.sample("acdfgh", rank + 1)
        order = rng.sample(range(rank + 1), rank + 1)
        loops = "".join(f"{_kind(rng, k in reduced and kind != 'divide')}^{{{sizes[k]}}}_{{{letters[k]}=0}}" for k in order)
        every = ",".join(letters)
        maxima = [letters[k] for k in rows]
        sums = list(reversed(maxima)) if turned else maxima
        if keep:
            maxima = [*maxima, "0"]
        c = f"C_{{{','.join(maxima)}}}" if maxima else "C"
        d = f"D_{{{','.join(sums)}}}" if sums else "D"
        x = operand.replace("*}", every + "}")
        body = {
            "max": f"{c}=max({c},{x})" if rng.random() < 0.5 else f"{c}=max({x},{c})",
            "sum": f"{d}={d}+exp({x}-{c})",
            "divide": f"E_{{{every}}}=exp({x}-{c})/{d}",
        }[kind]
        lines.append(f"{loops}[{body};];")
    c_shape = ",".join([*row_shape, "1"] if keep else row_shape)
    d_shape = ",".join(reversed(row_shape) if turned else row_shape)
    head = [f"# A {dtype}[{shape}] input", f"# G {dtype}[{shape}] input", f"# E {dtype}[{shape}] output"]
    head += [f"# C {dtype}[{c_shape}] output", f"# D {dtype}[{d_shape}] output"]
    return program("\n".join((*head, *(typed(line, dtype) for line in lines))))


def _kind(rng: Random, serial: bool) -> str:
    return rng.choice("LLLU") if serial else rng.choice("LLLPU")
