"""TVM MetaSchedule as a baseline: four CPU programs tuned for a wall-clock budget, then timed like ours.

Tuning runs in a process group of its own, which is killed when the budget is spent; what it had measured by then lies in its
database on disk. Out of the box every build fails on a machine like ours (facts-tvm.md, f): the builder's workers import all tensor
intrinsics against a 30 s limit. So this brings its own build function.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "matmul": ((256, 256), (256, 256), (256, 256)),
    "softmax": ((512, 1024), (512, 1024)),
    "layer_norm": ((512, 768), (768,), (768,), (512, 768)),
    "softmax_matmul": ((64, 96), (96, 32), (64, 32)),
}
"""Inputs, then the output, of each workload; all float32."""


def tuned_seconds(name: str, budget_s: float) -> float | None:
    """The median run time of ``name`` after tuning for ``budget_s`` seconds, None if nothing was built by then."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("w") as output:
            tuner = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.metaschedule", "tune", name, folder],
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                tuner.wait(budget_s)
            except subprocess.TimeoutExpired:
                os.killpg(tuner.pid, signal.SIGKILL)
                tuner.wait()
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.metaschedule", "time", name, folder], capture_output=True, text=True, check=False
        )
        last = done.stdout.strip().splitlines()[-1:] or ["null"]
        seconds = json.loads(last[0]) if done.returncode == 0 else None
        return None if seconds is None else float(seconds)


def _workload(name: str) -> Any:
    from tvm import te, topi

    tensors = [te.placeholder(shape, "float32", name=f"A{k}") for k, shape in enumerate(SHAPES[name][:-1])]
    match name:
        case "matmul":
            result = _matmul(te, tensors[0], tensors[1])
        case "softmax":
            result = topi.nn.softmax(tensors[0])
        case "layer_norm":
            result = topi.nn.layer_norm(tensors[0], tensors[1], tensors[2], axis=[1])
        case "softmax_matmul":
            result = _matmul(te, topi.nn.softmax(tensors[0]), tensors[1])
    return te.create_prim_func([*tensors, result])


def _matmul(te: Any, a: Any, b: Any) -> Any:
    k = te.reduce_axis((0, a.shape[1]), "k")
    return te.compute((a.shape[0], b.shape[1]), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="matmul")


def _target() -> Any:
    import tvm

    return tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu(), "num-cores": os.cpu_count() or 1})


def register_build() -> None:
    """Registers the build function in a builder's worker, without the tensor intrinsics."""
    import tvm
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock
    from tvm_ffi import register_global_func

    def build(module: Any, target: Any, _parameters: Any) -> Any:
        return tvm.tirx.build(RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module), target=target)

    register_global_func("leir.metaschedule_build", build, override=True)


def _module(name: str) -> Any:
    import tvm

    return tvm.IRModule({"main": _workload(name).with_attr("global_symbol", "main")})


def tune(name: str, folder: str) -> None:
    """Tune until killed; the database in ``folder`` grows with every batch."""
    from tvm.s_tir import meta_schedule as ms

    builder = ms.builder.LocalBuilder(max_workers=2, timeout_sec=30, f_build="leir.metaschedule_build", initializer=register_build)
    ms.tune_tir(
        _module(name),
        target=_target(),
        work_dir=folder,
        max_trials_global=100_000,
        num_trials_per_iter=16,
        cost_model="random",
        num_tuning_cores=2,
        builder=builder,
    )


def time_best(name: str, folder: str) -> float | None:
    """The median seconds of the best schedule in the database."""
    import numpy as np
    import tvm
    from tvm.s_tir import meta_schedule as ms

    database = ms.database.JSONDatabase(work_dir=folder)
    schedule = ms.tir_integration.compile_tir(database, _module(name), _target())
    if schedule is None:
        return None
    built = tvm.compile(schedule.mod, target=_target())
    rng = np.random.default_rng(0)
    arguments = [tvm.runtime.tensor(rng.standard_normal(shape).astype("float32")) for shape in SHAPES[name]]
    timer = built.mod.time_evaluator("main", tvm.cpu(), number=3, repeat=7, min_repeat_ms=20)
    return float(timer(*arguments).median)


def main() -> None:
    what, name, folder = sys.argv[1:4]
    if what == "tune":
        tune(name, folder)
    else:
        print(json.dumps(time_best(name, folder)))


if __name__ == "__main__":
    main()
