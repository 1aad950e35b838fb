"""Run a LEIR text with both walks of the interpreter, and insist that they agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leir.interpret import Mode, bits, run_flat
from leir.ir import Known, Signature
from leir.parser import parse_nests

_DTYPES = {"float16": "f16", "float32": "f32", "float64": "f64", "int8": "i8", "int32": "i32", "int64": "i64", "bool": "bool"}


def run(
    text: str, mode: Mode = "native", bound: dict[str, tuple[int, int]] | None = None, **tensors: Any
) -> dict[str, NDArray[Any]]:
    """The outputs of ``text``. An array is an input, of its own dtype; ``("f32", (4, 6))`` declares an output; ``bound`` gives
    the ranges of integer inputs."""
    inputs = {name: value for name, value in tensors.items() if isinstance(value, np.ndarray)}
    known = [Known(n, _DTYPES[a.dtype.name], a.shape, "input", (bound or {}).get(n)) for n, a in inputs.items()]
    known += [Known(name, *value, "output") for name, value in tensors.items() if not isinstance(value, np.ndarray)]
    signature, nests = Signature("test", tuple(known)), parse_nests(text).nests
    by_points = run_flat(signature, nests, inputs, mode=mode, walk="points")
    by_vector = run_flat(signature, nests, inputs, mode=mode, walk="vector")
    for name, array in by_points.items():
        assert array.dtype == by_vector[name].dtype
        assert np.array_equal(bits(array), bits(by_vector[name])), name
    return by_vector
