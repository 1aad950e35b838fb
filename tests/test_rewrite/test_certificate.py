"""Certificates: what was done, what proved it, and a reader that says what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leir.key import key
from rewrite.certificate import BadCertificate, certificate_from_json, certify, refusal_to_json
from tests.test_rewrite.checked import applied, refused

SOURCE = """
# A f32[4,6] input
# C f32[4] output
L^{4}_{a=0}L^{6}_{c=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+A^{f32,g}_{a,c};];
"""


def test_a_certificate_names_both_programs_and_every_proof() -> None:
    made = applied(SOURCE, "loop_binding 0 loop=0 axis=tx")
    certificate = certify(made)
    assert (certificate.before, certificate.after) == (key(made.before), key(made.program))
    assert [proof.condition for proof in certificate.proofs] == ["order", "kernel", "blocks", "init"]
    assert certificate.rounding == "bitwise"
    assert {name for name, _ in certificate.versions} == {"python", "leir", "islpy"}
    assert certificate.evidence is None


def test_json_both_ways() -> None:
    certificate = certify(applied(SOURCE, "loop_split 0 loop=1 factor=2")).with_evidence({"seeds": [1, 2, 3], "ulp": 0.0})
    assert certificate_from_json(json.loads(json.dumps(certificate.to_json()))) == certificate


GOOD = certify(applied(SOURCE, "loop_split 0 loop=1 factor=2")).to_json()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({**GOOD, "certificate_version": 9}, "format version is 9, and this LEIR reads version 1"),
        ({**GOOD, "step": {**GOOD["step"], "step_version": 0}}, "step's format version is 0"),
        ({**GOOD, "target": "tpu"}, "\"target\" is 'tpu'"),
        ({**GOOD, "rounding": "exact"}, '"rounding"'),
        ({**GOOD, "proofs": [{"condition": "order"}]}, '"proofs" is a list'),
        ({**GOOD, "versions": []}, '"versions"'),
        ({**GOOD, "evidence": 3}, '"evidence"'),
        ({**GOOD, "before": None}, '"before" is no string'),
        ({k: v for k, v in GOOD.items() if k != "proofs"}, "a certificate has the keys"),
        ("", "a certificate is an object"),
    ],
)
def test_bad_json_is_named(changed: Any, message: str) -> None:
    with pytest.raises(BadCertificate, match=message):
        certificate_from_json(changed)


def test_a_refusal_as_json_has_its_witness_by_loop_names() -> None:
    refusal = refusal_to_json(refused(SOURCE, "loop_binding 0 loop=1 axis=tx"))
    assert refusal["code"] == "reduction-bound"
    assert refusal["witness"] == {
        "tensor": "C",
        "element": [0],
        "kind": "accumulation",
        "first": {"path": [0], "point": {"a": 0, "c": 0}},
        "second": {"path": [0], "point": {"a": 0, "c": 1}},
    }
    assert json.dumps(refusal)
