"""What this machine offers: library versions against the pins, the torch build, TVM's targets, compilers, devices.

Libraries are loaded in child processes, one each, so that one that crashes or hangs is a finding and not the end of the report.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal, TypeAlias

from packaging.requirements import Requirement

State: TypeAlias = Literal["ok", "missing", "wrong", "broken", "absent"]

PROBE_SECONDS = 120
TOOLKIT = "/usr/local/cuda"  # where NVIDIA's installers put the current toolkit

# Each prints one line of JSON: what only the loaded library knows.
PROBES: Mapping[str, str] = {
    "torch": (
        "import json, torch; cuda = torch.version.cuda;"
        "names = [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())];"
        "print(json.dumps({'build': f'CUDA {cuda}' if cuda else 'CPU', 'devices': names}))"
    ),
    # save_json is what crashes when the ffi library does not fit (facts-tvm.md, section 0)
    "apache-tvm": (
        "import json, tvm; tvm.ir.save_json(tvm.ir.Range(0, 1));"
        "enabled = tvm.runtime.enabled('llvm');"
        "cpu = tvm.target.codegen.llvm_get_system_cpu() if enabled else None;"
        "print(json.dumps({'llvm': bool(enabled), 'mcpu': cpu}))"
    ),
    "islpy": (
        "import json, islpy; works = islpy.Set('{ [i] : 0 <= i < 4 }').count_val().to_python() == 4;"
        "print(json.dumps({'works': works}))"
    ),
    "egglog": "import json, egglog; egglog.EGraph(); print(json.dumps({}))",
    "sympy": "import json, sympy; print(json.dumps({}))",
    "transformers": "import json, transformers; print(json.dumps({}))",
    "pyarrow": "import json, pyarrow; print(json.dumps({}))",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. ``absent`` marks something optional that is not here; it does not make the report unhealthy."""

    name: str
    state: State
    detail: str
    help: str = ""

    @property
    def healthy(self) -> bool:
        return self.state in ("ok", "absent")


@dataclass(frozen=True, slots=True)
class Report:
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        return all(f.healthy for f in self.findings)

    def to_json(self) -> dict[str, bool | list[dict[str, str]]]:
        rows = [{"name": f.name, "state": str(f.state), "detail": f.detail, "help": f.help} for f in self.findings]
        return {"healthy": self.healthy, "findings": rows}

    def to_text(self) -> str:
        width = max(len(f.name) for f in self.findings)
        lines = []
        for f in self.findings:
            lines.append(f"{f.state:8}{f.name:{width}}  {f.detail}")
            if f.help:
                lines.append(f"{'':8}{'':{width}}  help: {f.help}")
        troubles = sum(not f.healthy for f in self.findings)
        lines.append("everything required is here" if not troubles else f"{troubles} required part(s) missing or unfit")
        return "\n".join(lines)


def examine() -> Report:
    """Looks at everything; takes as long as loading every library, some ten seconds."""
    return Report((*machine(), *libraries(), *compilers()))


def machine() -> tuple[Finding, ...]:
    """Python, processor and memory."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return (
        Finding("python", "ok", f"{platform.python_version()} ({sys.executable})"),
        Finding("cpu", "ok", f"{usable} usable core(s), {platform.machine()}"),
    )


def libraries() -> tuple[Finding, ...]:
    """Every run-time dependency of the distribution ``leir``: is it here, in a version that the distribution accepts, and does
    it load?"""
    try:
        lines = metadata.requires("leir") or []
    except metadata.PackageNotFoundError:
        return (Finding("leir", "missing", "the distribution is not installed", "make venv"),)
    requirements = [Requirement(line) for line in lines]
    needed = [r for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})]
    return tuple(library(requirement) for requirement in needed)


def library(requirement: Requirement) -> Finding:
    """The finding for one dependency."""
    name = requirement.name
    way_out = f"pip install -c constraints.txt '{requirement}'"
    try:
        installed = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(name, "missing", f"{requirement.specifier} is required", way_out)
    if not requirement.specifier.contains(installed, prereleases=True):
        return Finding(name, "wrong", f"{installed} is installed, {requirement.specifier} is required", way_out)
    if name not in PROBES:
        return Finding(name, "ok", installed)
    return _loaded(name, installed, way_out)


def _loaded(name: str, installed: str, way_out: str) -> Finding:
    try:
        run = subprocess.run(
            [sys.executable, "-c", PROBES[name]], capture_output=True, text=True, timeout=PROBE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Finding(name, "broken", f"{installed} does not load within {PROBE_SECONDS} s", way_out)
    if run.returncode:
        last = run.stderr.strip().splitlines()[-1:] or [f"the process ended with {run.returncode}"]
        return Finding(name, "broken", f"{installed} does not load: {last[0]}", way_out)
    known = json.loads(run.stdout.strip().splitlines()[-1])
    match name:
        case "torch":
            devices = ", ".join(known["devices"]) or "no CUDA device"
            return Finding(name, "ok", f"{installed}, {known['build']} build, {devices}")
        case "apache-tvm" if not known["llvm"]:
            return Finding(name, "broken", f"{installed} has no LLVM target", way_out)
        case "apache-tvm":
            return Finding(name, "ok", f"{installed}, target llvm (mcpu {known['mcpu']})")
        case "islpy" if not known["works"]:
            return Finding(name, "broken", f"{installed} counts the points of a set wrongly", way_out)
    return Finding(name, "ok", installed)


def compilers() -> tuple[Finding, ...]:
    """What compiles CUDA sources: optional, and needed only to check that CUDA code builds."""
    return nvcc(), nvrtc()


def nvcc() -> Finding:
    found = shutil.which("nvcc") or shutil.which("nvcc", path=f"{TOOLKIT}/bin")
    if found is None:
        return Finding("nvcc", "absent", "not on PATH; CUDA sources cannot be compiled with it (optional)")
    run = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=PROBE_SECONDS, check=False)
    release = next((line.strip() for line in run.stdout.splitlines() if "release" in line), f"status {run.returncode}")
    return Finding("nvcc", "ok" if not run.returncode else "broken", f"{found}: {release}")


def nvrtc() -> Finding:
    """The run-time compiler, from a package of torch's CUDA build or from the CUDA toolkit that nvcc belongs to."""
    for distribution in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12"):
        try:
            return Finding("nvrtc", "ok", f"{distribution} {metadata.version(distribution)}")
        except metadata.PackageNotFoundError:
            continue
    for library in sorted(Path(TOOLKIT).glob("**/libnvrtc.so*")):
        return Finding("nvrtc", "ok", str(library))
    return Finding("nvrtc", "absent", "not installed; it comes with a CUDA build of torch (optional)")
