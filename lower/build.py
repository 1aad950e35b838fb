"""Compiling for this CPU with TVM's LLVM, calling with NumPy arrays, timing.

Two settings. *Exact*, for checks: no fused multiply-add, so that every operation rounds as leir.md says, at a low optimisation
level. *Fast*, for timing: everything the CPU has, fused multiply-add included. TVM lets LLVM contract ``a*b+c`` and has no switch
for it; so the exact setting takes the instructions away, which is possible on x86-64, and refused elsewhere.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np
import tvm
import tvm_ffi
from numpy.typing import NDArray
from tvm import tirx
from tvm.target import codegen

from leir.ir import Program, Signature
from leir.scalars import STORAGE, rounded
from lower.outcome import Timing
from lower.plan import LoweringRefused
from lower.tir import ENTRY, lower

Setting: TypeAlias = Literal["exact", "fast"]
Array: TypeAlias = NDArray[Any]


PIPELINE = "leir-cpu"


def _pipeline() -> tuple[Any, Any, Any]:
    """The passes from TIR to what TVM's LLVM code generator takes, and none that simplifies.

    TVM simplifies floats as if they were reals (``x-x`` to 0, ``!(x<y)`` to ``y<=x``), which is wrong for NaN and inf. LLVM does
    the same work within the rules, and compiling is faster without.
    """
    passes = tirx.transform
    lowered = tvm.ir.transform.Sequential(
        [
            passes.FlattenBuffer(),
            passes.VectorizeLoop(True),
            passes.UnrollLoop(),
            passes.AnnotateEntryFunc(),
            passes.SplitHostDevice(),
            passes.MakePackedAPI(),
        ]
    )
    host = tvm.ir.transform.Sequential([passes.LowerTVMBuiltin(), passes.LowerIntrin()])
    return lowered, (lambda: host), (lambda: host)


tirx.compilation_pipeline.register_tir_pipeline(PIPELINE, _pipeline)


@cache
def target(setting: Setting) -> Any:
    """The TVM target of a setting. Raises LoweringRefused for "exact" on a CPU that cannot do without fused operations."""
    cpu = codegen.llvm_get_system_cpu()
    if setting == "fast":
        return tvm.target.Target({"kind": "llvm", "mcpu": cpu})
    if platform.machine().lower() not in ("x86_64", "amd64"):
        raise LoweringRefused("contraction", platform.machine(), "fused multiply-add cannot be turned off on this CPU")
    return tvm.target.Target({"kind": "llvm", "mcpu": cpu, "mattr": ["-fma", "-fma4"], "opt-level": 1})


@dataclass(frozen=True, slots=True)
class Built:
    """A compiled program, ready to run in this process."""

    signature: Signature
    executable: Any
    build_s: float

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name, in signature order, in the storage dtypes of `leir.scalars` (bf16 as float32).

        ``inputs``: every known tensor that is no output, with its shape and storage dtype. Raises ValueError where one differs.
        """
        arrays = self._arguments(inputs)
        self.executable[ENTRY](*(tvm_ffi.from_dlpack(a) for a in arrays.values()))
        return {t.name: _decoded(arrays[t.name], t.dtype) for t in self.signature.outputs}

    def time(self, inputs: Mapping[str, Array], *, repeat: int = 7, min_repeat_ms: int = 20) -> Timing:
        """``repeat`` samples of at least ``min_repeat_ms`` milliseconds each, after one call to warm up."""
        arguments = [tvm_ffi.from_dlpack(a) for a in self._arguments(inputs).values()]
        self.executable[ENTRY](*arguments)
        evaluator = self.executable.mod.time_evaluator(ENTRY, tvm.cpu(), number=1, repeat=repeat, min_repeat_ms=min_repeat_ms)
        samples = sorted(float(s) for s in evaluator(*arguments).results)
        median = statistics.median(samples)
        low, _, high = statistics.quantiles(samples, n=4) if len(samples) > 1 else (median, median, median)
        return Timing(median, (high - low) / median if median else 0.0, samples[0], len(samples), self.build_s)

    def _arguments(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        arrays: dict[str, Array] = {}
        for tensor in self.signature.tensors:
            if tensor.role == "output":
                arrays[tensor.name] = np.zeros(tensor.shape, _memory_dtype(tensor.dtype))
                continue
            array = inputs.get(tensor.name)
            if array is None or array.shape != tensor.shape or array.dtype != STORAGE[tensor.dtype]:
                found = "nothing" if array is None else f"{array.dtype.name}{list(array.shape)}"
                raise ValueError(f"{tensor.name}: expected {tensor.dtype}{list(tensor.shape)}, got {found}")
            arrays[tensor.name] = _encoded(array, tensor.dtype)
        return arrays


def build(program: Program, setting: Setting = "exact") -> Built:
    """Lowers and compiles ``program``, code generation included. Raises LoweringRefused; TVM's own errors are bugs."""
    start = time.perf_counter()
    executable = tvm.compile(lower(program), target=target(setting), tir_pipeline=PIPELINE)
    executable[ENTRY]  # machine code is made at the first look-up
    return Built(program.signature, executable, time.perf_counter() - start)


def tir_text(program: Program) -> str:
    """The TIR of ``program`` as TVMScript, for people."""
    return str(lower(program).script())


def _memory_dtype(dtype: str) -> np.dtype[Any]:
    return np.dtype(np.uint16) if dtype == "bf16" else STORAGE[dtype]


def _encoded(array: Array, dtype: str) -> Array:
    if dtype != "bf16":
        return np.ascontiguousarray(array).reshape(array.shape)
    bits = np.asarray(rounded(array, "bf16"), np.float32).view(np.uint32)
    return np.asarray(bits >> np.uint32(16), np.uint16)  # a 0-d array stays one


def _decoded(array: Array, dtype: str) -> Array:
    return array if dtype != "bf16" else np.asarray(array.astype(np.uint32) << np.uint32(16), np.uint32).view(np.float32)
