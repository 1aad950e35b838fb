"""The commands search and compare: programs sought by a policy under a budget, and runs side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leir.cli.execution import TimeLimit, Workers, sound_program
from leir.cli.inputs import ProgramFile, program_text, read_text, write_text
from leir.cli.report import AsJson, BadInput, Json, emit, emit_json, note
from leir.cli.steps import Target, TargetOption

if TYPE_CHECKING:
    from leir.ir import Program
    from llm.search.evaluator import Evaluator, Modelled
    from llm.search.policy import Policy
    from llm.search.run_file import RunLog
    from llm.search.search import Search
    from lower.verify import Verifier


OTHER_RUN = "name another file with -o, or give the options of that run"


class AlgorithmName(StrEnum):
    """How the search chooses where to go on."""

    greedy = "greedy"
    beam = "beam"


class PolicyName(StrEnum):
    """Who proposes what to try."""

    uniform = "uniform"
    roofline = "roofline"
    endpoint = "endpoint"


class EvaluatorName(StrEnum):
    """What says how fast a program is."""

    model = "model"
    measure = "measure"


def search(
    file: ProgramFile,
    algorithm: Annotated[AlgorithmName, typer.Option(help="How to choose where to go on.")] = AlgorithmName.greedy,
    policy: Annotated[PolicyName, typer.Option(help="Who proposes what to try.")] = PolicyName.uniform,
    evaluator: Annotated[EvaluatorName, typer.Option(help="What says how fast a program is.")] = EvaluatorName.model,
    evaluations: Annotated[int, typer.Option("--evaluations", "-n", min=1, help="How many programs may be evaluated.")] = 50,
    seconds: Annotated[float | None, typer.Option(min=0, help="Stop after this time.")] = None,
    depth: Annotated[int | None, typer.Option(min=1, help="Go at most this many steps from the original.")] = None,
    width: Annotated[int, typer.Option(min=1, help="Programs in the beam.")] = 2,
    branch: Annotated[int, typer.Option(min=0, help="Programs evaluated from each before choosing; 0: all.")] = 8,
    seed: Annotated[int, typer.Option(help="Seed of the uniform policy and of the inputs that are drawn.")] = 0,
    device: Annotated[str | None, typer.Option(help="Device of the model: a name or a file.")] = None,
    target: TargetOption = Target.llvm,
    url: Annotated[str | None, typer.Option("--endpoint", metavar="URL", help="OpenAI-compatible, as http://host:8000/v1.")] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="The endpoint's model.")] = "default",
    key_file: Annotated[Path | None, typer.Option(metavar="FILE", help="Holds the endpoint's key.")] = None,
    temperature: Annotated[float, typer.Option(min=0, help="Of the endpoint's model.")] = 0.3,
    answer_timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one answer of the endpoint.")] = 120.0,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="RUN", help="The run file, JSON lines.")] = Path("run.jsonl"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in that file.")] = False,
    best: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the best program there.")] = None,
    workers: Workers = 2,
    timeout: TimeLimit = 60.0,
    json: AsJson = False,
) -> None:
    """Search for a faster program, step by step.

    Every program tried is a legal step, or written by a model and found equal by execution. The run file says what was tried and
    what came of it; an interrupted run goes on with --resume. leir compare sets runs side by side.

    Example: leir search prog.leir --algorithm beam --policy roofline --evaluator measure -n 40 -o run.jsonl
    """
    from llm.search.algorithms import ALGORITHMS
    from llm.search.budget import Budget
    from llm.search.run_file import RunMismatch, header
    from llm.search.search import RootFailed, Search

    program = sound_program(file)
    budget = Budget(evaluations, seconds, depth=depth)
    with ExitStack() as stack:
        verifier = _verifier(stack, workers, timeout, seed)
        roofline = cache(lambda: _roofline(target, device))
        scorer = _evaluator(evaluator, target, program, roofline, verifier)
        proposer = (
            _chat(stack, program, target, verifier, url, model, key_file, temperature, answer_timeout)
            if policy is PolicyName.endpoint
            else _policy(policy, seed, roofline)
        )
        settings = {
            "label": f"{algorithm}-{policy}" + (f"-{width}" if algorithm is AlgorithmName.beam else ""),
            "algorithm": algorithm.value,
            "policy": proposer.settings,
            "evaluator": scorer.name,
            "target": target.value,
            "width": width,
            "branch": branch,
            "seed": seed,
        }
        log = stack.enter_context(_log(output, header(program, settings, budget), resume))
        try:
            run = Search(
                program,
                proposer,
                scorer,
                budget,
                target=target.value,
                width=width,
                branch=branch or None,
                log=log,
                progress=_Progress(),
            )
            reason = run.run(ALGORITHMS[algorithm])
        except RunMismatch as error:
            raise BadInput(f"{output}: {error}", help=OTHER_RUN) from error
        except RootFailed as error:
            raise BadInput(f"{file}: {error}") from error
        except KeyboardInterrupt:
            note(f"stopped; {output} holds what was done, and --resume goes on with it")
            raise
    if best is not None:
        write_text(best, program_text(run.best.program, best))
    if json:
        emit_json(_outcome(run, output, reason))
    else:
        emit(_told(run, output, reason))


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run files of leir search or leir optimize.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Plot best-so-far: .svg or .png.")] = None,
    json: AsJson = False,
) -> None:
    """Set runs side by side, at equal numbers of evaluated programs.

    The table shows the best time so far, in microseconds, after 1, 2, 5, 10, ... evaluated programs. Runs must be of one program,
    scored in one way.

    Example: leir compare run1.jsonl run2.jsonl -o plot.svg
    """
    from llm.search.comparison import NotComparable, read_run
    from llm.search.comparison import compare as set_side_by_side
    from llm.search.run_file import BadRun

    if output is not None and output.suffix not in (".svg", ".png"):
        raise BadInput(f"{output}: the suffix {output.suffix!r} is none of .svg and .png", help="name the file so")
    read = []
    for path in runs:
        try:
            read.append(read_run(path))
        except BadRun as error:
            raise BadInput(str(error)) from error
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror}") from error
    try:
        comparison = set_side_by_side(read)
    except NotComparable as error:
        raise BadInput(str(error)) from error
    if output is not None:
        from llm.search.plot import plot_curves

        curves = {label: run.curve for label, run in zip(comparison.labels, read, strict=True)}
        title = f"{read[0].program.name}, {read[0].evaluator}"
        try:
            plot_curves(curves, output, title)
        except OSError as error:
            raise BadInput(f"{output}: {error.strerror}") from error
        note(f"{output}: written")
    if json:
        emit_json(comparison.to_json())
        return
    emit(f"{read[0].program.name}: best so far in microseconds ({read[0].evaluator}), by evaluated programs")
    for line in columns(comparison.table()):
        emit(line)


# ------------------------------------------------------------------------------------------------------------------- what it needs


def _log(output: Path, start: Mapping[str, Any], resume: bool) -> RunLog:
    from llm.search.run_file import BadRun, RunLog, RunMismatch

    try:
        return RunLog(output, start, resume=resume)
    except FileExistsError as error:
        raise BadInput(f"{output}: the file exists", help="--resume goes on with it; -o names another") from error
    except (BadRun, RunMismatch) as error:
        raise BadInput(str(error), help=OTHER_RUN) from error
    except OSError as error:
        raise BadInput(f"{output}: {error.strerror}") from error


def _verifier(stack: ExitStack, workers: int, timeout: float, seed: int) -> Callable[[], Verifier]:
    """A verifier whose worker processes start when it is first asked for, and end with ``stack``."""

    @cache
    def started() -> Verifier:
        from lower.verify import Verifier
        from lower.workers import WorkerPool

        return Verifier(stack.enter_context(WorkerPool(workers=workers, timeout_s=timeout)), seed=seed)

    return started


def _roofline(target: Target, device: str | None) -> Modelled:
    from extract.device import DeviceError
    from llm.search.evaluator import roofline

    try:
        return roofline(target.value, device)
    except DeviceError as error:
        raise BadInput(str(error)) from error
    except OSError as error:
        raise BadInput(f"{device}: {error.strerror}") from error


def _evaluator(
    name: EvaluatorName,
    target: Target,
    program: Program,
    roofline: Callable[[], Modelled],
    verifier: Callable[[], Verifier],
) -> Evaluator:
    from llm.search.evaluator import Measured

    if name is EvaluatorName.model:
        return roofline()
    if target is not Target.llvm:
        raise BadInput("only programs for llvm can be measured here", help="--evaluator model")
    return Measured(program, verifier())


def _policy(name: PolicyName, seed: int, roofline: Callable[[], Modelled]) -> Policy:
    from llm.search.policy import RooflineGreedy, Uniform

    return Uniform(seed) if name is PolicyName.uniform else RooflineGreedy(roofline())


def _chat(
    stack: ExitStack,
    program: Program,
    target: Target,
    verifier: Callable[[], Verifier],
    url: str | None,
    model: str,
    key_file: Path | None,
    temperature: float,
    timeout: float,
) -> Policy:
    from llm.search.chat_policy import ChatPolicy
    from llm.search.endpoint import BadEndpoint, Endpoint
    from llm.search.judge import Judge

    if url is None:
        raise BadInput("--policy endpoint asks a model, and no address is given", help="--endpoint http://127.0.0.1:8000/v1")
    secret = "" if key_file is None else read_text(key_file).strip()
    try:
        endpoint = Endpoint(url, model, secret, temperature=temperature, timeout_s=timeout)
    except BadEndpoint as error:
        raise BadInput(str(error)) from error
    judge = Judge(program, target.value, lambda other: verifier().verify(program, other, "real"))
    return ChatPolicy(endpoint, stack.enter_context(judge))


# ---------------------------------------------------------------------------------------------------------------------- the output


class _Progress:
    """Tells every improvement."""

    def __init__(self) -> None:
        self.told = -1

    def __call__(self, run: Search) -> None:
        if run.best.number > self.told:
            self.told = run.best.number
            speedup = run.root.seconds / run.best.seconds
            note(f"{run.evaluations:5} evaluated: {run.best.seconds * 1e6:.4g} us, {speedup:.2f}x  {_last_move(run)}")


def _last_move(run: Search) -> str:
    moves = run.best.moves
    if not moves:
        return "the original"
    return moves[-1] if isinstance(moves[-1], str) else "a program that the model wrote"


def _outcome(run: Search, output: Path, reason: str) -> Json:
    from leir.files import to_json

    return {
        "file": str(output),
        "reason": reason,
        "evaluations": run.evaluations,
        "answers": run.answers,
        "verdicts": dict(sorted(run.verdicts.items())),
        "work": dict(run.policy.work),
        "root_seconds": run.root.seconds,
        "seconds": run.best.seconds,
        "speedup": run.root.seconds / run.best.seconds,
        "steps": run.best.moves,
        "key": run.best.key,
        "program": to_json(run.best.program),
    }


def _told(run: Search, output: Path, reason: str) -> str:
    best = run.best
    lines = [f"{run.evaluations} programs evaluated ({reason}); the run is in {output}"]
    if run.answers:
        lines.append("answers: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(run.verdicts.items())))
    speedup = run.root.seconds / best.seconds
    lines.append(f"best {best.seconds * 1e6:.4g} us, {speedup:.2f}x the original's {run.root.seconds * 1e6:.4g} us, by")
    lines += [f"  {move if isinstance(move, str) else 'written: ' + move['leir']}" for move in best.moves] or ["  no step"]
    return "\n".join(lines)


def columns(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return ["  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]) for row in rows]
