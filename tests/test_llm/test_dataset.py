"""Rows: what they hold can be read, replayed and checked again, and does not depend on how many workers wrote it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from leir.files import from_json
from leir.ir import Known, Program, Signature
from leir.key import key
from leir.parser import parse
from leir.printer import print_program
from llm.dataset import Account, BadRow, Sampling, read_rows, rows, sample_steps, write_rows
from lower.verify import Verdict, Verifier
from lower.workers import WorkerPool
from rewrite.apply import Applied, apply
from rewrite.certificate import certificate_from_json

SOFTMAX = parse(
    "L^{6}_{a=0}L^{8}_{c=0}[D^{f32,g}_{a}=max(D^{f32,g}_{a},A^{f32,g}_{a,c});];"
    "L^{6}_{a=0}L^{8}_{c=0}[E^{f32,g}_{a}=E^{f32,g}_{a}+exp(A^{f32,g}_{a,c}-D^{f32,g}_{a});];"
    "L^{6}_{a=0}L^{8}_{c=0}[C^{f32,g}_{a,c}=exp(A^{f32,g}_{a,c}-D^{f32,g}_{a})/E^{f32,g}_{a};];",
    Signature("softmax", (Known("A", "f32", (6, 8), "input"), Known("C", "f32", (6, 8), "output"))),
)
BLEND = parse(
    "L^{12}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{a}*0.5+D^{f32,g}_{a}*0.5;];",
    Signature("blend", (Known("A", "f32", (12,), "input"), Known("D", "f32", (12,), "input"), Known("C", "f32", (12,), "output"))),
)


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with WorkerPool(workers=2) as pool:
        yield Verifier(pool, seed=1)


def test_a_row_can_be_replayed_from_what_it_holds(verifier: Verifier, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    account = write_rows(path, [SOFTMAX, BLEND], verifier, Sampling(seed=3, per_strategy=3))
    entries = list(read_rows(path))
    assert len(entries) == account.rows == sum(account.by_strategy.values())
    assert not account.left_out, account.reasons
    assert {e["strategy"] for e in entries} >= {"loop_split", "loop_reorder", "loop_binding", "operator_fusion", "factorization"}
    for entry in entries:
        before, after = from_json(entry["program"]), from_json(entry["result"])
        certificate = certificate_from_json(entry["certificate"])
        outcome = apply(before, certificate.step, certificate.target)
        assert isinstance(outcome, Applied)
        assert outcome.program == after
        assert (certificate.before, certificate.after) == (key(before), key(after))
        assert certificate.evidence is not None
        assert certificate.evidence["answer"] == "equal"
        assert_chat(entry, before, after)


def assert_chat(entry: dict[str, object], before: Program, after: Program) -> None:
    messages = entry["messages"]
    assert isinstance(messages, list)
    assert [m["role"] for m in messages] == ["system", "user", "assistant"]
    user, assistant = messages[1]["content"], messages[2]["content"]
    assert print_program(before) in user
    for tensor in before.signature.tensors:
        assert f"- {tensor.name}: {tensor.role}, {tensor.dtype}[" in user
    thoughts, _, rest = assistant.removeprefix("<think>\n").partition("\n</think>\n")
    answer = json.loads(rest.removeprefix("<answer>\n").removesuffix("\n</answer>"))
    assert answer == {"strategy": entry["strategy"], "leir": print_program(after)}
    assert str(entry["strategy"]) in thoughts
    assert "This is legal:" in thoughts


def test_sampling_is_by_seed_and_keeps_the_order_of_enumeration() -> None:
    first = sample_steps(SOFTMAX, Sampling(seed=1, per_strategy=2))
    assert first == sample_steps(SOFTMAX, Sampling(seed=1, per_strategy=2))
    assert first != sample_steps(SOFTMAX, Sampling(seed=2, per_strategy=2))
    everything = sample_steps(SOFTMAX, Sampling(per_strategy=None))
    assert [f.step for f in everything if f in first] == [f.step for f in first]


def test_any_number_of_workers_writes_the_same_bytes(verifier: Verifier, tmp_path: Path) -> None:
    write_rows(tmp_path / "two", [SOFTMAX], verifier, Sampling(per_strategy=2))
    with WorkerPool(workers=1) as pool:
        write_rows(tmp_path / "one", [SOFTMAX], Verifier(pool, seed=1), Sampling(per_strategy=2))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


class Doubting(Verifier):
    """Finds every second step different or undecided."""

    def __init__(self) -> None:
        pass

    def verify_many(self, a: Program, others: object) -> list[Verdict]:
        assert isinstance(others, list)
        answers = ("equal", "different", "undecided")
        return [Verdict(answers[k % 3], "bitwise", (), 0, reason="doubt") for k in range(len(others))]  # type: ignore[arg-type]


def test_only_steps_that_execution_found_equal_become_rows() -> None:
    account = Account()
    steps = sample_steps(SOFTMAX, Sampling(per_strategy=2))
    written = list(rows(SOFTMAX, steps, Doubting(), account))
    assert len(written) == account.rows == (len(steps) + 2) // 3
    assert account.left_out["different"] + account.left_out["undecided"] == len(steps) - len(written)
    assert "doubt" in account.reasons[0]


@pytest.mark.parametrize(
    ("line", "message"),
    [("{", "not JSON"), ("[]", "version is None"), ('{"rows_version": 7}', "version is 7, and this LEIR reads version 1")],
)
def test_a_file_that_is_no_row_file_is_refused_by_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(BadRow, match=message) as problem:
        list(read_rows(path))
    assert f"{path}:1:" in str(problem.value)
