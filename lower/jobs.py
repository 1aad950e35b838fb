"""What a worker process can be asked to do. Each job is a frozen dataclass that says how to run itself; it travels to the worker
with its program as text in JSON form, and its result comes back as plain data.

This module loads TVM only when a job runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from leir.files import from_json, to_json
from leir.ir import Program
from lower.draws import Kind, draw_inputs
from lower.plan import LoweringRefused

Arrays = dict[str, NDArray[Any]]


class BuildFailed(Exception):
    """TVM or LLVM raised while it compiled."""


class Job(Protocol):
    """One piece of work for a worker."""

    def run(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Draw:
    """The inputs of one run: a seed and a kind, so that arrays need not travel."""

    seed: int
    kind: Kind


def encode(program: Program) -> dict[str, Any]:
    """``program`` as it travels."""
    return to_json(program)


@dataclass(frozen=True, slots=True)
class Execute:
    """Builds a program exactly (`lower.build`) and runs it on every draw; the outputs of each."""

    program: Mapping[str, Any]
    draws: tuple[Draw, ...]

    def run(self) -> list[Arrays]:
        program = from_json(self.program)
        built = _built(program, "exact")
        return [built.run(draw_inputs(program.signature, d.seed, d.kind)) for d in self.draws]


@dataclass(frozen=True, slots=True)
class ExecuteOn:
    """As `Execute`, on the given arrays."""

    program: Mapping[str, Any]
    inputs: Mapping[str, NDArray[Any]]

    def run(self) -> Arrays:
        arrays: Arrays = _built(from_json(self.program), "exact").run(self.inputs)
        return arrays


@dataclass(frozen=True, slots=True)
class Interpret:
    """Runs a program in the float64 interpreter on every draw."""

    program: Mapping[str, Any]
    draws: tuple[Draw, ...]

    def run(self) -> list[Arrays]:
        from leir.interpret import interpret

        program = from_json(self.program)
        return [interpret(program, draw_inputs(program.signature, d.seed, d.kind), mode="f64") for d in self.draws]


@dataclass(frozen=True, slots=True)
class Bound:
    """The first-order error bounds of a program's float outputs on every draw (`lower.error_bound`)."""

    program: Mapping[str, Any]
    draws: tuple[Draw, ...]

    def run(self) -> list[Arrays]:
        from lower.error_bound import error_bounds

        program = from_json(self.program)
        return [error_bounds(program, draw_inputs(program.signature, d.seed, d.kind)) for d in self.draws]


@dataclass(frozen=True, slots=True)
class Measure:
    """Builds a program for speed and times it."""

    program: Mapping[str, Any]
    draw: Draw
    repeat: int
    min_repeat_ms: int

    def run(self) -> Any:
        program = from_json(self.program)
        built = _built(program, "fast")
        return built.time(
            draw_inputs(program.signature, self.draw.seed, self.draw.kind), repeat=self.repeat, min_repeat_ms=self.min_repeat_ms
        )


def _built(program: Program, setting: Any) -> Any:
    from lower.build import build

    try:
        return build(program, setting)
    except (LoweringRefused, MemoryError):
        raise
    except Exception as error:  # TVM raises whatever its C++ code threw
        raise BuildFailed(f"{type(error).__name__}: {error}") from error
