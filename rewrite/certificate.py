"""What was done, and what showed that it may be done: enough to check a step again, anywhere (architecture.md)."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast, get_args

from leir.key import key
from rewrite.apply import Applied
from rewrite.step import BadStep, Step, step_from_json
from rules.strategy import Proof, Refusal, Rounding, Target, Witness

CERTIFICATE_VERSION = 1

_TOOLS: Mapping[str, str] = {"isl": "islpy", "sympy": "sympy"}


class BadCertificate(ValueError):
    """A certificate that cannot be read; names the version if that is what is wrong."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A step with its proofs. ``before`` and ``after`` are the keys of the two programs; ``evidence`` is what verification by
    execution adds (oracles, shapes, dtypes, seeds, errors), None until then; ``versions`` are those of what checked it."""

    step: Step
    before: str
    after: str
    target: Target
    rounding: Rounding
    proofs: tuple[Proof, ...]
    versions: tuple[tuple[str, str], ...]
    evidence: Mapping[str, Any] | None = None

    def with_evidence(self, evidence: Mapping[str, Any]) -> Certificate:
        return replace(self, evidence=evidence)

    def to_json(self) -> dict[str, Any]:
        """The certificate as a JSON object; `certificate_from_json` is the inverse."""
        return {
            "certificate_version": CERTIFICATE_VERSION,
            "step": self.step.to_json(),
            "before": self.before,
            "after": self.after,
            "target": self.target,
            "rounding": self.rounding,
            "proofs": [{"condition": p.condition, "by": p.by, "detail": p.detail} for p in self.proofs],
            "versions": dict(self.versions),
            "evidence": None if self.evidence is None else dict(self.evidence),
        }


def certify(applied: Applied, evidence: Mapping[str, Any] | None = None) -> Certificate:
    """The certificate of a step that was carried out."""
    packages = ["leir", *sorted({_TOOLS[p.by] for p in applied.proofs if p.by in _TOOLS})]
    versions = (("python", platform.python_version()), *((name, _version(name)) for name in packages))
    return Certificate(
        applied.step,
        key(applied.before),
        key(applied.program),
        applied.target,
        applied.rounding,
        applied.proofs,
        versions,
        evidence,
    )


def certificate_from_json(obj: object) -> Certificate:
    """The certificate in a JSON object. Raises BadCertificate."""
    if not isinstance(obj, dict):
        raise BadCertificate(f"a certificate is an object, not {type(obj).__name__}")
    found = obj.get("certificate_version")
    if type(found) is not int or found != CERTIFICATE_VERSION:
        raise BadCertificate(f"the certificate's format version is {found!r}, and this LEIR reads version {CERTIFICATE_VERSION}")
    expected = {"certificate_version", "step", "before", "after", "target", "rounding", "proofs", "versions", "evidence"}
    if set(obj) != expected:
        raise BadCertificate(f"a certificate has the keys {', '.join(sorted(expected))}, not {', '.join(sorted(map(str, obj)))}")
    try:
        step = step_from_json(obj["step"])
    except BadStep as problem:
        raise BadCertificate(str(problem)) from None
    return Certificate(
        step,
        _text(obj, "before"),
        _text(obj, "after"),
        cast(Target, _one_of(obj, "target", get_args(Target))),
        cast(Rounding, _one_of(obj, "rounding", get_args(Rounding))),
        _proofs(obj["proofs"]),
        _versions(obj["versions"]),
        _evidence(obj["evidence"]),
    )


def refusal_to_json(refusal: Refusal) -> dict[str, Any]:
    """A refusal as a JSON object, its witness by loop names and values."""
    return {"code": refusal.code, "message": refusal.message, "witness": _witness_to_json(refusal.witness)}


def _witness_to_json(witness: Witness | None) -> dict[str, Any] | None:
    if witness is None:
        return None
    first, second = ({"path": list(instance.path), "point": dict(instance.point)} for instance in (witness.first, witness.second))
    return {"tensor": witness.tensor, "element": list(witness.element), "kind": witness.kind, "first": first, "second": second}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "uninstalled"


def _text(obj: Mapping[str, object], name: str) -> str:
    value = obj[name]
    if not isinstance(value, str):
        raise BadCertificate(f'"{name}" is no string')
    return value


def _one_of(obj: Mapping[str, object], name: str, words: tuple[str, ...]) -> str:
    value = _text(obj, name)
    if value not in words:
        raise BadCertificate(f'"{name}" is {value!r}, and none of {", ".join(words)}')
    return value


def _proofs(value: object) -> tuple[Proof, ...]:
    keys = ("condition", "by", "detail")
    if not isinstance(value, list) or not all(isinstance(p, dict) and set(p) == set(keys) for p in value):
        raise BadCertificate(f'"proofs" is a list of objects with the keys {", ".join(keys)}')
    if not all(isinstance(p[k], str) for p in value for k in keys):
        raise BadCertificate('"proofs" holds something that is no string')
    return tuple(Proof(p["condition"], p["by"], p["detail"]) for p in value)


def _versions(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise BadCertificate('"versions" is an object of strings')
    return tuple(value.items())


def _evidence(value: object) -> Mapping[str, Any] | None:
    if value is not None and not isinstance(value, dict):
        raise BadCertificate('"evidence" is no object')
    return value
