"""The interpreter: what a program computes, in NumPy (leir.md, section 3).

    interpret(program, inputs)                     the meaning: every operation rounds in its dtype
    interpret(program, inputs, mode="f64")         the reference for tolerances: every float is an f64, inputs included
    interpret(program, inputs, walk="points")      by definition, element by element
    interpret(program, inputs, walk="vector")      the same bits, with whole axes at a time

Loop kinds do not matter here: the sequential reading is the meaning. Both walks run on the flat form, detect reads out of bounds
and reads of elements that nobody wrote, and initialise implicitly by a written flag per element, at run time, so they do not
depend on the `init` predicates that rewrites carry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leir import scalars
from leir.interpreter.points import walk_points
from leir.interpreter.state import Buffer, InterpretError, Mode, prepare, storage
from leir.interpreter.vector import walk_vector
from leir.ir import INT_DTYPES, Known, Loop, Nest, Program, Signature
from leir.lift import flatten, flatten_program
from leir.shapes import ShapeError, temporary_shapes, walk_equations

__all__ = ["InterpretError", "Mode", "Walk", "bits", "interpret", "run_flat"]

Walk = Literal["auto", "points", "vector"]


def interpret(
    program: Program, inputs: Mapping[str, NDArray[Any]], *, mode: Mode = "native", walk: Walk = "auto"
) -> dict[str, NDArray[Any]]:
    """The outputs of ``program`` by name, in signature order.

    ``inputs`` holds every known tensor that is no output, in its own dtype and shape; a bf16 tensor comes as float32 (or as
    ml_dtypes' bfloat16) and is rounded. Outputs have their own dtypes, bf16 as float32; in mode "f64" every float
    output is float64.
    Raises InterpretError for wrong inputs, integers outside their range, and programs that break leir.md's definedness.
    """
    nests = flatten_program(program) if walk == "points" else tuple(flatten(_unfused(nest)) for nest in program.nests)
    return run_flat(program.signature, nests, inputs, mode=mode, walk=walk)


def _unfused(nest: Nest) -> Nest:
    """``nest`` with one loop per digit: the same order, and the vectorised walk can tell the digits of a fused loop apart."""
    loops = tuple(part for loop in nest.schedule for part in _digit_loops(loop))
    return Nest(nest.axes, loops, tuple(_unfused(item) if isinstance(item, Nest) else item for item in nest.body))


def _digit_loops(loop: Loop) -> Iterator[Loop]:
    """The digits of a fused loop as loops of their own, named for messages by what they are of it: ``a//12``, ``a//4%3``,
    ``a%4``."""
    if len(loop.digits) == 1:
        yield loop
        return
    below = loop.extent
    for position, digit in enumerate(loop.digits):
        below //= digit.extent
        divided = f"{loop.name}//{below}" if below > 1 else loop.name
        yield Loop("L", f"{divided}%{digit.extent}" if position else divided, (digit,))


def run_flat(
    signature: Signature,
    nests: Sequence[Nest],
    inputs: Mapping[str, NDArray[Any]],
    *,
    mode: Mode = "native",
    walk: Walk = "auto",
) -> dict[str, NDArray[Any]]:
    """As `interpret`, on flat nests: foreign text can be run before it is lifted. A loop that fuses a reduction with other loops
    is then stepped one iteration at a time."""
    surplus = sorted(inputs.keys() - {tensor.name for tensor in signature.inputs})
    if surplus:
        raise InterpretError(f"{', '.join(surplus)}: no input of {signature.name}")
    with np.errstate(all="ignore"):  # overflow and NaN are ordinary values here
        store = {tensor.name: _input(tensor, inputs.get(tensor.name), mode) for tensor in signature.inputs}
        store.update((tensor.name, _unwritten(tensor.name, tensor.dtype, tensor.shape, mode)) for tensor in signature.outputs)
        store.update(_temporaries(signature, nests, mode))
        prepared = prepare(nests, store, mode)
        (walk_points if walk == "points" else walk_vector)(prepared, store)
        return {tensor.name: _output(tensor, store[tensor.name]) for tensor in signature.outputs}


def _input(tensor: Known, array: NDArray[Any] | None, mode: Mode) -> Buffer:
    if array is None:
        raise InterpretError(f"{tensor.name}: input missing")
    if array.shape != tensor.shape:
        raise InterpretError(f"{tensor.name}: shape {list(array.shape)}, expected {list(tensor.shape)}")
    if tensor.dtype == "bf16" and array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    if array.dtype != scalars.STORAGE[tensor.dtype]:
        raise InterpretError(f"{tensor.name}: dtype {array.dtype.name}, expected {tensor.dtype}")
    _check_range(tensor, array)
    if tensor.dtype == "bf16":
        array = scalars.rounded(array, "bf16")
    data = np.ascontiguousarray(array, storage(tensor.dtype, mode)).reshape(-1)
    return Buffer(tensor.name, tensor.dtype, tensor.shape, data, np.ones(data.size, np.bool_), given=True, complete=True)


def _unwritten(name: str, dtype: str, shape: tuple[int, ...], mode: Mode) -> Buffer:
    size = prod(shape)
    return Buffer(name, dtype, shape, np.zeros(size, storage(dtype, mode)), np.zeros(size, np.bool_), given=False, complete=False)


def _temporaries(signature: Signature, nests: Sequence[Nest], mode: Mode) -> dict[str, Buffer]:
    try:
        shapes = temporary_shapes(signature, nests)
    except ShapeError as problem:
        raise InterpretError(str(problem)) from problem
    dtypes: dict[str, str] = {}
    for _, _, equation in walk_equations(nests):
        dtypes.setdefault(equation.target.tensor.name, equation.target.tensor.dtype)
    return {name: _unwritten(name, dtypes[name], shape, mode) for name, shape in shapes.items()}


def _output(tensor: Known, buffer: Buffer) -> NDArray[Any]:
    if not buffer.written.all():
        element = np.unravel_index(int(np.argmin(buffer.written)), tensor.shape)
        raise InterpretError(f"{tensor.name}[{','.join(str(int(k)) for k in element)}]: an output that is never written")
    array = buffer.data.reshape(tensor.shape)
    _check_range(tensor, array)
    return array


def _check_range(tensor: Known, array: NDArray[Any]) -> None:
    if tensor.range is None or tensor.dtype not in INT_DTYPES or array.size == 0:
        return
    low, high = tensor.range
    least, greatest = int(array.min()), int(array.max())
    if least < low or greatest > high:
        found = least if least < low else greatest
        raise InterpretError(f"{tensor.name}: holds {found}, outside its range [{low}, {high}]")


def bits(array: NDArray[Any]) -> NDArray[Any]:
    """``array`` as unsigned integers, with every NaN alike: two results are the same exactly where these are equal."""
    if array.dtype.kind != "f":
        return array
    plain = np.where(np.isnan(array), np.asarray(np.nan, array.dtype), array)
    return plain.view(f"u{array.dtype.itemsize}")
