"""Random small flat programs, as text, for comparing the interpreter's two walks.

They are dense in what makes vectorising hard rather than in what is typical: recurrences, targets that several points write,
accumulators that move under only some loops, partly written temporaries, gathers and guards. Every dimension is six long. With
``wild=False`` every subscript stays in bounds and every temporary is written in full first; a wild program may be undefined.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from leir.ir import FLOAT_DTYPES, Known, Signature
from leir.scalars import STORAGE, rounded

SIZE = 6
RANKS = {"A": 2, "C": 1, "E": 2, "F": 1, "X": 2, "Y": 1, "Z": 0}
INPUTS, OUTPUTS, TEMPORARIES = ("A", "C"), ("E", "F"), ("X", "Y", "Z")
LETTERS = "acdfghijk"


@dataclass(frozen=True)
class FlatProgram:
    signature: Signature
    text: str
    seed: int

    def inputs(self) -> dict[str, NDArray[Any]]:
        """Values whose sums and products round; every other seed has some zeros of both signs, infinities and NaNs."""
        rng = np.random.default_rng(self.seed)
        share = 0.1 if self.seed % 2 else 0.0
        arrays: dict[str, NDArray[Any]] = {}
        for tensor in self.signature.inputs:
            if tensor.dtype in FLOAT_DTYPES:
                values = rng.standard_normal(tensor.shape) * 10.0 ** rng.integers(-2, 3, tensor.shape)
                special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], tensor.shape)
                values = np.where(rng.random(tensor.shape) < share, special, values)
                arrays[tensor.name] = np.asarray(rounded(values, tensor.dtype))
            else:
                low, high = tensor.range or (-100, 100)
                arrays[tensor.name] = rng.integers(low, high, tensor.shape, STORAGE[tensor.dtype], endpoint=True)
        return arrays


@st.composite
def flat_programs(draw: st.DrawFn, *, wild: bool = False) -> FlatProgram:
    dtype = draw(st.sampled_from(["f16", "bf16", "f32", "f64", "i8", "i32"]))
    writer = _Writer(draw, dtype, wild)
    filled = [name for name in (*OUTPUTS, *TEMPORARIES) if not wild or draw(st.integers(0, 7)) > 0]
    text = "".join(writer.fill(name) for name in filled)
    text += "".join(writer.nest((), 0) for _ in range(draw(st.integers(1, 3))))
    shape = {name: (SIZE,) * rank for name, rank in RANKS.items()}
    known = [Known(name, dtype, shape[name], "input") for name in INPUTS]
    known.append(Known("I", "i32", (SIZE,), "input", (0, SIZE - 1)))
    known += [Known(name, dtype, shape[name], "output") for name in OUTPUTS]
    return FlatProgram(Signature("random", tuple(known)), text, draw(st.integers(0, 2**16)))


class _Writer:
    def __init__(self, draw: st.DrawFn, dtype: str, wild: bool) -> None:
        self.draw, self.dtype, self.wild = draw, dtype, wild
        self.floating = dtype in FLOAT_DTYPES
        self.aligned = draw(st.sampled_from(["", "", "a", "c"]))  # this loop, if any, subscripts what is written alike everywhere
        self.written = (*OUTPUTS, *TEMPORARIES) if not self.aligned else (*OUTPUTS, "X", "Y")

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def access(self, name: str, subscripts: list[str]) -> str:
        return f"{name}^{{{self.dtype},g}}" + (f"_{{{','.join(subscripts)}}}" if subscripts else "")

    def fill(self, name: str) -> str:
        letters = LETTERS[: RANKS[name]]
        loops = "".join(f"L^{{{SIZE}}}_{{{letter}=0}}" for letter in letters)
        source = self.access("C", [letters[-1]]) if letters else "2"
        return f"{loops}[{self.access(name, list(letters))}={source}*3;];"

    def nest(self, outer: tuple[tuple[str, int], ...], depth: int) -> str:
        count = self.pick(0, 1, 1, 2, 2, 3) if depth else self.pick(1, 2, 3, 3)
        count = min(count, 4 - len(outer))
        own = tuple((LETTERS[len(outer) + k], self.pick(1, 2, 3, 3, SIZE)) for k in range(count))
        loops = "".join(f"{self.pick('L', 'P', 'V', 'U')}^{{{extent}}}_{{{letter}=0}}" for letter, extent in own)
        path = outer + own
        items = [
            self.nest(path, depth + 1) if depth < 2 and self.pick(False, False, True) else self.equation(path) + ";"
            for _ in range(self.pick(1, 1, 1, 2, 3))
        ]
        return f"{loops}[{''.join(items)}];"

    def equation(self, path: tuple[tuple[str, int], ...]) -> str:
        name = self.pick(*self.written)
        target = self.access(name, self.subscripts(name, path, target=True))
        match self.pick("plain", "plain", "sum", "sum", "chain", "product", "max", "min"):
            case "sum":
                return f"{target}={target}{self.pick('+', '-')}{self.factor(path, 2)}"
            case "chain":
                return f"{target}={target}+{self.factor(path, 1)}-{self.factor(path, 1)}"
            case "product":
                return f"{target}={target}*({self.value(path, 1)})"
            case "max" | "min" as call:
                pair = [target, self.value(path, 2)]
                return f"{target}={call}({','.join(self.draw(st.permutations(pair)))})"
            case _:
                return f"{target}={self.value(path, 3)}"

    def subscripts(self, name: str, path: tuple[tuple[str, int], ...], target: bool = False) -> list[str]:
        found = [self.subscript(path, target) for _ in range(RANKS[name])]
        if found and name not in INPUTS and self.aligned in dict(path) and self.draw(st.integers(0, 15)):
            found[0] = self.aligned
        return found

    def subscript(self, path: tuple[tuple[str, int], ...], target: bool) -> str:
        forms = ["0", str(SIZE - 1)]
        for letter, extent in path:
            forms += [letter, letter, letter, f"{SIZE - 1}-{letter}", f"{letter}//2", f"{letter}%2"]
            if self.wild and self.draw(st.integers(0, 9)) == 0:
                forms += [f"{letter}+1", f"{letter}-1", f"{letter}*2"]
            elif extent < SIZE:
                forms += [f"{letter}+1", f"{letter}+2"]
            if not target:
                forms.append(f"I^{{i32,g}}_{{{letter}}}")
        for (high, outer), (low, inner) in pairwise(path):
            forms.append(f"({high}+{low})%{SIZE}")
            if outer + inner <= SIZE:
                forms.append(f"{high}+{low}")
            if outer * inner <= SIZE:
                forms += [f"{high}*{inner}+{low}"] * 3
        return str(self.pick(*forms))

    def read(self, path: tuple[tuple[str, int], ...]) -> str:
        name = self.pick(*INPUTS, *INPUTS, *self.written)
        return self.access(name, self.subscripts(name, path))

    def factor(self, path: tuple[tuple[str, int], ...], depth: int) -> str:
        return f"({self.value(path, depth)})" if self.pick(True, False) else self.read(path)

    def value(self, path: tuple[tuple[str, int], ...], depth: int) -> str:
        if depth == 0:
            return self.read(path)
        match self.pick("read", "binary", "binary", "call", "guard", "index"):
            case "binary":
                return f"{self.factor(path, depth - 1)}{self.pick('+', '-', '*')}{self.factor(path, depth - 1)}"
            case "call" if self.floating:
                call = self.pick("exp", "sqrt", "abs", "tanh", "sigmoid", "floor", "sin", "erf", "log")
                return f"{call}({self.value(path, depth - 1)})"
            case "call":
                return f"{self.pick('max', 'min')}({self.value(path, depth - 1)},{self.read(path)})"
            case "guard" if path:
                letter, _ = self.pick(*path)
                guarded = f"{self.access('C', [f'{letter}-1'])}*{self.value(path, depth - 1)}"
                other = self.pick("0", self.value(path, depth - 1))
                test = self.pick(f"1<={letter}", f"{letter}>0&{self.read(path)}<1", f"!({letter}==0)")
                return f"if_then_else({test},{guarded},{other})"
            case "index" if path:
                letter, _ = self.pick(*path)
                return f"{self.read(path)}*({letter}*3-1)"
            case _:
                return self.read(path)
