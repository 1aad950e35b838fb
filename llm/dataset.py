"""Dataset rows from verified steps: sampled, certified, executed, written as JSON lines.

Which steps are taken is the one matter of chance here, and it depends on the seed and the program alone; the rows are in the order
of enumeration. So the same call gives the same bytes for any number of workers.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from leir.files import to_json
from leir.ir import Program
from leir.key import key
from llm.chat import chat
from llm.place import describe_place
from llm.reasoning import Thought, reasoning
from rewrite.apply import Applied
from rewrite.certificate import Certificate, certify
from rewrite.enumerate import Found, enumerate_steps
from rules.catalogue import find
from rules.strategy import Target

if TYPE_CHECKING:
    from lower.verify import Verdict, Verifier

ROWS_VERSION = 1


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many steps of each strategy to take from a program (None: all), chosen by ``seed``."""

    seed: int = 0
    per_strategy: int | None = 4


@dataclass(slots=True)
class Account:
    """What became of the sampled steps: rows written, and steps left out, by verdict."""

    rows: int = 0
    by_strategy: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    reasons: list[str] = field(default_factory=list)


def sample_steps(program: Program, sampling: Sampling, target: Target = "llvm") -> list[Found]:
    """Legal steps of ``program``, at most ``sampling.per_strategy`` of each strategy, in the order of enumeration."""
    groups: dict[str, list[tuple[int, Found]]] = defaultdict(list)
    for number, found in enumerate(enumerate_steps(program, target)):
        groups[found.step.strategy].append((number, found))
    rng = Random(f"{sampling.seed}:{key(program)}")
    chosen: list[tuple[int, Found]] = []
    for group in groups.values():
        count = len(group) if sampling.per_strategy is None else min(sampling.per_strategy, len(group))
        chosen += rng.sample(group, count)
    return [found for _, found in sorted(chosen, key=lambda entry: entry[0])]


def rows(
    program: Program, steps: Sequence[Found], verifier: Verifier, account: Account, target: Target = "llvm"
) -> Iterator[dict[str, Any]]:
    """A row for each step that execution found equal; the others are counted in ``account``, with the reason."""
    verdicts = verifier.verify_many(program, [(found.program, found.rounding) for found in steps])
    for found, verdict in zip(steps, verdicts, strict=True):
        if verdict.answer == "equal":
            account.rows += 1
            account.by_strategy[found.step.strategy] += 1
            yield row(program, found, verdict, target)
        else:
            account.left_out[verdict.answer] += 1
            account.reasons.append(f"{program.name}: {found.step}: {verdict.answer}: {verdict.reason}")


def row(program: Program, found: Found, verdict: Verdict, target: Target = "llvm") -> dict[str, Any]:
    """One step as a chat, with everything needed to check it again: the program, the step, the certificate with its evidence."""
    applied = Applied(found.step, program, found.program, found.rounding, found.proofs, target)
    certificate = certify(applied, {"oracles": ["tvm-llvm", "interpreter-f64"], **verdict.to_json()})
    strategy = find(found.step.strategy)
    assert strategy is not None
    thoughts = reasoning(
        Thought(
            program,
            found.program,
            strategy,
            describe_place(found.step, program),
            found.step.args,
            found.rounding,
            found.proofs,
        )
    )
    return {
        "rows_version": ROWS_VERSION,
        "id": _identity(certificate),
        "messages": chat(program, found.program, strategy.name, thoughts),
        "strategy": strategy.name,
        "level": strategy.level,
        "difficulty": strategy.difficulty,
        "program": to_json(program),
        "result": to_json(found.program),
        "certificate": certificate.to_json(),
    }


def _identity(certificate: Certificate) -> str:
    text = f"{certificate.before} {certificate.after} {certificate.step}"
    return blake2b(text.encode(), digest_size=12).hexdigest()


def write_rows(
    path: str | PathLike[str],
    programs: Iterable[Program],
    verifier: Verifier,
    sampling: Sampling,
    target: Target = "llvm",
    progress: Callable[[Program, Account], None] | None = None,
) -> Account:
    """Sample, verify and write the rows of ``programs`` to a JSON lines file, which appears only when it is complete."""
    account = Account()
    final = Path(path)
    partial = final.with_name(final.name + ".partial")
    final.parent.mkdir(parents=True, exist_ok=True)
    with partial.open("w", encoding="utf-8", newline="\n") as file:
        for program in programs:
            for entry in rows(program, sample_steps(program, sampling, target), verifier, account, target):
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
            if progress is not None:
                progress(program, account)
    partial.replace(final)
    return account


class BadRow(ValueError):
    """A line that is no row; the message names the line, and the version where that is what is wrong."""


def read_rows(path: str | PathLike[str]) -> Iterator[dict[str, Any]]:
    """The rows of a file. Raises BadRow."""
    with Path(path).open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                entry = json.loads(line)
            except json.JSONDecodeError as problem:
                raise BadRow(f"{path}:{number}: not JSON: {problem.msg}") from None
            version = entry.get("rows_version") if isinstance(entry, dict) else None
            if version != ROWS_VERSION:
                raise BadRow(
                    f"{path}:{number}: the row's format version is {version!r}, and this LEIR reads version {ROWS_VERSION}"
                )
            yield entry
