"""The command demo: the whole path on one program, with an account of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leir.cli.demo_search import seek
from leir.cli.execution import Workers
from leir.cli.inputs import program_text, write_text
from leir.cli.report import AsJson, BadInput, emit, emit_json, end_no

if TYPE_CHECKING:
    from leir.ir import Program
    from lower.verify import Verdict
    from lower.workers import WorkerPool
    from rewrite.enumerate import Found, Refused

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "softmax_matmul.py"
SHOWN = 2  # steps that are listed per strategy


def demo(
    file: Annotated[Path, typer.Argument(metavar="FILE.py", help="A PyTorch module, as for leir import.")] = EXAMPLE,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the files go.")] = Path("out/demo"),
    workers: Workers = 2,
    json: AsJson = False,
) -> None:
    """Run the whole path on a softmax-matmul program.

    PyTorch to LEIR, check, legal steps with proofs, verification by execution, timing, the best program of the e-graph, searches
    beside it, dataset rows. FILE.py is run, as by leir import. Ends with 1 if a step that was proved legal does not verify.

    Example: leir demo
    """
    from lower.workers import WorkerPool

    start = time.perf_counter()
    tell: Callable[[str], None] = _silent if json else emit
    tell(f"1. From PyTorch: {_short(file)}")
    program, error = _imported(file)
    tell(_indented(program_text(program, Path("p.leir")).replace(";];", ";];\n").rstrip()))
    tell(f"   LEIR's interpreter and PyTorch differ by at most {error:.3g} on the example inputs.")

    tell("\n2. The checker")
    _checked(program, tell)

    tell("\n3. Legal single steps (target llvm): what changes, rounding class, what proved each condition")
    legal, refused = _enumerated(program)
    _list_steps(legal, refused, tell)

    tell("\n4. Every legal step, run against the original: TVM's LLVM and the float64 interpreter, three draws of inputs")
    with WorkerPool(workers=workers) as pool:
        verdicts = _verified(program, legal, pool)
        answers = Counter(verdict.answer for verdict in verdicts)
        tell("   " + ", ".join(f"{count} {answer}" for answer, count in answers.items()))
        for found, verdict in zip(legal, verdicts, strict=True):
            if verdict.answer != "equal":
                tell(f"   {verdict.answer}: {found.step}: {verdict.reason}")
        tell("\n5. Time on this CPU, the original and one step of each strategy")
        times = _timed(program, legal, pool, tell)

    sought = seek(program, output, workers, tell)

    tell("\n8. Dataset rows: one chat per verified step")
    written = _written(program, legal, verdicts, output)
    tell(f"   {written.rows} rows. The reasoning of the first, which is written from its certificate:")
    tell(_indented(written.reasoning, "   | "))
    seconds = time.perf_counter() - start
    tell(f"\nWritten in {seconds:.1f} s:")
    files = (*written.files, *sought.files)
    for path in files:
        tell(f"   {path}  {path.stat().st_size:,} bytes")
    if json:
        emit_json(
            {
                "program": program.name,
                "legal": len(legal),
                "refused": len(refused),
                "verdicts": {str(answer): count for answer, count in answers.items()},
                "interpreter_error": error,
                "median_s": times,
                "speedup": sought.measured_speedup,
                "model_speedups": dict(sought.speedups),
                "rows": written.rows,
                "files": [str(path) for path in files],
                "seconds": round(seconds, 1),
            }
        )
    if set(answers) != {"equal"} or not sought.sound:
        end_no()


# ----------------------------------------------------------------------------------------------------------------------- stages


def _imported(file: Path) -> tuple[Program, float]:
    """The program, and how far its interpretation is from PyTorch's own outputs (largest absolute difference)."""
    import numpy as np

    from leir.import_torch import ImportRefused, ModelFileError, import_module, load_file
    from leir.import_torch.importer import array
    from leir.interpret import interpret

    try:
        module, inputs = load_file(file)
        imported = import_module(module, inputs, name=file.stem)
    except (ModelFileError, ImportRefused) as error:
        raise BadInput(str(error)) from error
    returned = module.eval()(*inputs)
    expected = returned if isinstance(returned, tuple | list) else (returned,)
    computed = interpret(imported.program, imported.arguments(inputs))
    gaps = [np.max(np.abs(computed[n] - array(t))) for n, t in zip(imported.outputs, expected, strict=True)]
    return imported.program, float(max(gaps))


def _checked(program: Program, tell: Callable[[str], None]) -> None:
    from leir.check import check, has_errors

    found = check(program)
    for diagnostic in found:
        tell(_indented(str(diagnostic)))
    if has_errors(found):
        raise BadInput(f"{program.name}: the checker rejects it")
    tell("   nothing to report" if not found else f"   {len(found)} warnings")


def _enumerated(program: Program) -> tuple[list[Found], list[Refused]]:
    from rewrite.enumerate import Found, Refused, enumerate_steps

    entries = list(enumerate_steps(program, refusals=True))
    return [e for e in entries if isinstance(e, Found)], [e for e in entries if isinstance(e, Refused)]


def _list_steps(legal: list[Found], refused: list[Refused], tell: Callable[[str], None]) -> None:
    names = [found.step.strategy for found in legal] + [entry.step.strategy for entry in refused]
    for name in dict.fromkeys(names):
        own = [found for found in legal if found.step.strategy == name]
        count = sum(entry.step.strategy == name for entry in refused)
        tell(f"   {name}: {len(own)} legal, {count} refused")
        for found in own[:SHOWN]:
            proofs = ", ".join(f"{p.condition} ({p.by})" for p in found.proofs)
            tell(f"      {found.step!s:40} {found.rounding:12} {proofs}")
        if len(own) > SHOWN:
            tell(f"      ... {len(own) - SHOWN} more (leir steps lists them)")
    codes = Counter(entry.refusal.code for entry in refused)
    if codes:
        tell("   Refused, one of each reason:")
    for code, count in codes.items():
        example = next(entry for entry in refused if entry.refusal.code == code)
        tell(f"      {code} ({count} times): {example.step}")
        tell(f"         {example.refusal.message}")


def _verified(program: Program, legal: list[Found], pool: WorkerPool) -> list[Verdict]:
    from lower.verify import Verifier

    return Verifier(pool).verify_many(program, [(found.program, found.rounding) for found in legal])


def _timed(program: Program, legal: list[Found], pool: WorkerPool, tell: Callable[[str], None]) -> dict[str, float]:
    """Median seconds per call, by step; a program that does not run is told and left out."""
    from lower.outcome import Timing
    from lower.verify import measure

    firsts = {found.step.strategy: found for found in reversed(legal)}
    chosen = [("original", program), *((str(f.step), f.program) for f in reversed(firsts.values()))]
    times: dict[str, float] = {}
    for name, candidate in chosen:
        timing = measure(candidate, pool=pool)
        if isinstance(timing, Timing):
            times[name] = timing.median_s
            tell(f"   {name:40} {timing.median_s * 1e6:10.1f} us  (quartiles {timing.spread:.0%} apart)")
        else:
            tell(f"   {name:40} {timing.status}: {timing.message}")
    return times


@dataclass(frozen=True, slots=True)
class _Written:
    files: tuple[Path, ...]
    rows: int
    reasoning: str


def _written(program: Program, legal: list[Found], verdicts: list[Verdict], folder: Path) -> _Written:
    """The program in both forms, the certificates and the rows of the steps that verified."""
    from json import dumps

    from llm.dataset import row

    rows = [row(program, f, verdict) for f, verdict in zip(legal, verdicts, strict=True) if verdict.answer == "equal"]
    certificates = [entry["certificate"] for entry in rows]
    programs = [folder / f"{program.name}{suffix}" for suffix in (".leir", ".json")]
    texts = {path: program_text(program, path) for path in programs}
    texts[folder / "certificates.jsonl"] = "".join(dumps(c, ensure_ascii=False) + "\n" for c in certificates)
    texts[folder / "rows.jsonl"] = "".join(dumps(r, ensure_ascii=False) + "\n" for r in rows)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: {error.strerror}") from error
    for path, text in texts.items():
        write_text(path, text)
    first = rows[0]["messages"][-1]["content"] if rows else "(no row)"
    return _Written(tuple(texts), len(rows), first)


# ------------------------------------------------------------------------------------------------------------------------- text


def _silent(_: str) -> None:
    """With ``--json`` nothing is told on the way."""


def _indented(text: str, margin: str = "   ") -> str:
    return "\n".join(f"{margin}{line}".rstrip() for line in text.splitlines())


def _short(path: Path) -> str:
    """The path as seen from the working directory, where it lies below."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
