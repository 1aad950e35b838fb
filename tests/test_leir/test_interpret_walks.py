"""The vectorised walk is the point-by-point walk, to the bit; and it is fast."""

from __future__ import annotations

import time
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from leir.interpret import InterpretError, Mode, Walk, bits, interpret, run_flat
from leir.interpreter import vector
from leir.ir import Known, Loop, Nest, Program, Signature
from leir.lift import make_program
from leir.parser import parse_nests
from tests.generators import programs, random_inputs
from tests.test_leir.flat_programs import FlatProgram, flat_programs


def outcome(program: FlatProgram, nests: tuple[Nest, ...], mode: Mode, walk: Walk) -> dict[str, NDArray[Any]] | None:
    try:
        return run_flat(program.signature, nests, program.inputs(), mode=mode, walk=walk)
    except InterpretError:
        return None


def assert_walks_agree(program: FlatProgram, mode: Mode = "native") -> bool:
    """Whether the program has a meaning; both walks must think alike."""
    nests = parse_nests(program.text).nests
    by_points = outcome(program, nests, mode, "points")
    by_vector = outcome(program, nests, mode, "vector")
    if by_points is None or by_vector is None:
        assert by_points is by_vector
        return False
    for name, array in by_points.items():
        assert array.dtype == by_vector[name].dtype
        assert np.array_equal(bits(array), bits(by_vector[name])), name
    return True


@settings(max_examples=500)
@given(flat_programs())
def test_walks_agree_on_programs_with_a_meaning(program: FlatProgram) -> None:
    assert assert_walks_agree(program)


@settings(max_examples=150)
@given(flat_programs())
def test_walks_agree_in_f64(program: FlatProgram) -> None:
    assert assert_walks_agree(program, "f64")


@settings(max_examples=250)
@given(flat_programs(wild=True))
def test_walks_refuse_the_same_programs(program: FlatProgram) -> None:
    event("has a meaning" if assert_walks_agree(program) else "has none")


@pytest.mark.parametrize("points", [1, 4, 20])
@settings(max_examples=120)
@given(flat_programs())
def test_blocks_do_not_show(points: int, program: FlatProgram) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector, "POINTS_AT_ONCE", points)
        patch.setattr(vector, "_SHORT_ROW", points % 2 * 256)
        assert assert_walks_agree(program)


def fused(nest: Nest, rng: Random) -> Nest:
    """``nest`` with some neighbouring loops made one: another text, the same order."""
    loops: list[Loop] = []
    for loop in nest.schedule:
        if loops and rng.random() < 0.6:
            loops[-1] = Loop("L", loops[-1].name, loops[-1].digits + loop.digits)
        else:
            loops.append(loop)
    return Nest(nest.axes, tuple(loops), tuple(fused(item, rng) if isinstance(item, Nest) else item for item in nest.body))


@settings(max_examples=150)
@given(programs(), st.integers(0, 2**16))
def test_fusing_loops_changes_no_bit(program: Program, seed: int) -> None:
    rng = Random(seed)
    other = make_program(program.signature, tuple(fused(nest, rng) for nest in program.nests))
    inputs = random_inputs(program, seed)
    reference = interpret(program, inputs, walk="points")
    for result in (interpret(program, inputs), interpret(other, inputs), interpret(other, inputs, walk="points")):
        for name, array in reference.items():
            assert np.array_equal(bits(array), bits(result[name])), name


def fastest(text: str, tensors: tuple[Known, ...]) -> float:
    """Seconds for one run, the best of five."""
    signature, nests = Signature("timed", tensors), parse_nests(text).nests
    rng = np.random.default_rng(0)
    inputs = {tensor.name: rng.standard_normal(tensor.shape, np.float32) for tensor in signature.inputs}
    times = []
    for _ in range(5):
        start = time.perf_counter()
        run_flat(signature, nests, inputs)
        times.append(time.perf_counter() - start)
    return min(times)


@pytest.mark.parametrize("order", ["acd", "adc", "dac"])
def test_a_matmul_takes_milliseconds(order: str) -> None:
    loops = "".join(f"L^{{64}}_{{{index}=0}}" for index in order)
    square = (64, 64)
    seconds = fastest(
        f"{loops}[D^{{f32,g}}_{{a,c}}=D^{{f32,g}}_{{a,c}}+A^{{f32,g}}_{{a,d}}*C^{{f32,g}}_{{d,c}};];",
        (Known("A", "f32", square, "input"), Known("C", "f32", square, "input"), Known("D", "f32", square, "output")),
    )
    assert seconds < 0.02  # 0.5 ms on an idle core


def test_a_padded_convolution_takes_less_than_a_second() -> None:
    seconds = fastest(
        "L^{4}_{a=0}L^{32}_{c=0}L^{32}_{d=0}L^{32}_{f=0}L^{16}_{g=0}L^{3}_{h=0}L^{3}_{i=0}"
        "[D^{f32,g}_{a,c,d,f}=D^{f32,g}_{a,c,d,f}+"
        "if_then_else(1<=d+h<33&1<=f+i<33,A^{f32,g}_{a,g,d+h-1,f+i-1},0)*W^{f32,g}_{c,g,h,i};];",
        (
            Known("A", "f32", (4, 16, 32, 32), "input"),
            Known("W", "f32", (32, 16, 3, 3), "input"),
            Known("D", "f32", (4, 32, 32, 32), "output"),
        ),
    )
    assert seconds < 1  # 27 ms on an idle core, for 19 million points
