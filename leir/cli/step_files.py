"""Files of steps: one a line, each in text (``loop_split 0 loop=0 factor=4``), as a JSON object, or as a certificate.

Blank lines and lines that start with ``#`` are passed over.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leir.cli.inputs import read_text
from leir.cli.report import BadInput

if TYPE_CHECKING:
    from rewrite.step import Step


@dataclass(frozen=True, slots=True)
class StoredStep:
    """A step and its line; from a certificate also the keys of the programs before and after."""

    step: Step
    line: int
    before: str | None = None
    after: str | None = None


def read_steps(path: Path) -> list[StoredStep]:
    """The steps in a file. Raises BadInput, with the line of what cannot be read."""
    from rewrite.certificate import BadCertificate
    from rewrite.step import BadStep

    stored = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            stored.append(_stored(text, number))
        except (BadStep, BadCertificate) as error:
            raise BadInput(f"{path}:{number}: {error}") from error
    return stored


def step_of(text: str) -> Step:
    """The step in a text, which may be JSON. Raises BadStep."""
    from rewrite.step import step_from_json, step_from_text

    return step_from_json(_object(text)) if text.startswith("{") else step_from_text(text)


def _stored(text: str, line: int) -> StoredStep:
    from rewrite.certificate import certificate_from_json

    obj = _object(text) if text.startswith("{") else None
    if isinstance(obj, dict) and "certificate_version" in obj:
        certificate = certificate_from_json(obj)
        return StoredStep(certificate.step, line, certificate.before, certificate.after)
    return StoredStep(step_of(text), line)


def _object(text: str) -> object:
    from rewrite.step import BadStep

    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadStep(f"not a step in JSON: {error}") from error
