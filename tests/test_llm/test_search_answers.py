"""What a model may say, and the verdict on it; hostile text gets one in less than a second."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest

from leir.ir import Program
from leir.key import key
from leir.printer import print_program
from llm.search.answer import Picked, Unreadable, Written, read_answer
from llm.search.guard import Guard
from llm.search.judge import Judge
from llm.search.node import Node, Proposal
from lower.verify import Verdict, Verifier
from lower.workers import WorkerPool
from rewrite.enumerate import enumerate_steps
from tests.test_llm.searching import CHAIN

LEGAL = tuple(enumerate_steps(CHAIN))
FUSED = "L^{4}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a}*2;E^{f32,g}_{a}=D^{f32,g}_{a}+1;];"
DIRECT = "L^{4}_{a=0}[E^{f32,g}_{a}=A^{f32,g}_{a}*2+1;];"


def never_run(program: Program) -> Verdict:
    raise AssertionError(f"this must not be run: {print_program(program)}")


Judged = Callable[[str], Proposal]


@pytest.fixture(scope="module")
def guard() -> Iterator[Guard]:
    with Guard(CHAIN, "llvm") as guard:
        yield guard


@pytest.fixture
def judged(guard: Guard) -> Judged:
    """The verdict on an answer about the chain, of which the first three legal steps were shown."""
    node = Node(0, CHAIN, key(CHAIN), 1.0)
    judge = Judge(CHAIN, "llvm", never_run, guard)
    return lambda content: judge.judge(content, node, LEGAL[:3], LEGAL)


@pytest.fixture
def writes(judged: Judged) -> Judged:
    return lambda text: judged(json.dumps({"leir": text}))


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with WorkerPool(workers=2) as pool:
        yield Verifier(pool)


# ------------------------------------------------------------------------------------------------------------- reading the answer


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"step": 3}', Picked(3)),
        ('  {"strategy": "loop_split", "leir": "L"} ', Written("L")),
        ('<think>{"step": 1}</think>\n<answer>\n{"step": 2}\n</answer>', Picked(2)),
        ('<think>I could <answer>{"step": 1}</answer></think><answer>{"step": 2}</answer> thanks', Picked(2)),
        ('so: <answer>{"step": 1}</answer> no: <answer>{"step": 2}</answer>', Picked(2)),
        ('```json\n{"step": 4}\n```', Picked(4)),
        ('<answer>```json\n{"step": 4}\n```</answer>', Picked(4)),
        ('{"step": -1}', Picked(-1)),
    ],
)
def test_an_answer_of_the_agreed_form(content: str, said: Picked | Written) -> None:
    assert read_answer(content) == said


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "the answer is empty"),
        ("step 3", "no JSON object"),
        ('<answer>{"step": 3}', "cut off"),
        ('{"step": 3', "no JSON"),
        ('{"step": 3} {"step": 4}', "no JSON"),
        ("{'step': 3}", "no JSON"),
        ('{"step": 3, "leir": "L"}', "either"),
        ("{}", "either"),
        ('{"step": true}', "no integer"),
        ('{"step": 3.0}', "no integer"),
        ('{"step": "3"}', "no integer"),
        ('{"leir": ["L"]}', "no string"),
        ("[3]", "no JSON object"),
        ("{" * 10_000_000, "and the limit is"),
        ('{"a":' * 150_000, "RecursionError"),
        ('{"step": ' + "9" * 100_000 + "}", "ValueError"),
        ("<answer>" * 1_000_000, "cut off"),
        ("```" * 1_000_000, "the answer is empty"),
    ],
)
def test_anything_else_is_unreadable(content: str, reason: str) -> None:
    start = time.monotonic()
    said = read_answer(content)
    assert time.monotonic() - start < 1
    assert isinstance(said, Unreadable)
    assert reason in said.reason


# -------------------------------------------------------------------------------------------------------------------- the verdicts


def test_a_number_picks_one_of_the_steps_that_were_shown(judged: Judged) -> None:
    proposal = judged('{"step": 2}')
    assert (proposal.verdict, proposal.step) == ("legal-step", LEGAL[1].step)
    for number in (0, -1, 4, 10**30):
        wrong = judged(f'{{"step": {number}}}')
        assert wrong.verdict == "malformed-answer"
        assert wrong.detail.endswith("the steps are 1 to 3")


def test_a_written_neighbour_is_a_legal_step_whatever_its_names(writes: Judged) -> None:
    renamed = FUSED.replace("_{a", "_{q").replace("D^", "Xy^")
    for text in (FUSED, renamed, "# leir 1 chain\n# A f32[4] input\n# E f32[4] output\n" + FUSED + "\n"):
        proposal = writes(text)
        assert proposal.verdict == "legal-step"
        assert str(proposal.step) == "operator_fusion 0 depth=1"


@pytest.mark.parametrize(
    ("text", "verdict", "detail"),
    [
        (print_program(CHAIN), "no-change", "given"),
        (print_program(CHAIN).replace("D^", "Z^"), "no-change", "given"),
        ("import os; os.system('true')", "parse-error", "1:1"),
        ("__import__('os').system('true')", "parse-error", "1:1"),
        ("", "wrong-signature", "never writes the output E"),
        (DIRECT[:-3], "parse-error", "never closed"),
        (DIRECT.replace("{4}", "{1000000000000000000}"), "parse-error", "an extent from 1 to"),
        (DIRECT.replace("*2", "*2" * 1000), "parse-error", "operations inside one another"),
        ("[" * 2000, "parse-error", "nested"),
        ("9" * 2000, "parse-error", "digits"),
        ("(" * 10_000, "parse-error", "and the limit here is"),
        ("(" * 10_000_000, "malformed-answer", "and the limit is"),
        ("# leir 2 chain\n" + DIRECT, "parse-error", "version"),
        ("# leir 1 chain\n# A f32[5] input\n# E f32[4] output\n" + DIRECT, "wrong-signature", "other known tensors"),
        (DIRECT.replace("E^{f32", "E^{f64"), "wrong-signature", "E is f32, not f64"),
        (DIRECT.replace("A^{f32,g}", "A^{f32,s}"), "wrong-signature", "A is in global memory"),
        (DIRECT.replace("A^{f32,g}_{a}", "A^{f32,g}_{a,0}"), "wrong-signature", "A has 1 dimensions, not 2"),
        (DIRECT.replace("E^", "D^"), "wrong-signature", "never writes the output E"),
        (DIRECT + "L^{4}_{a=0}[A^{f32,g}_{a}=1;];", "wrong-signature", "it writes A, which is no output"),
        (DIRECT.replace("{4}", "{2147483647}"), "ill-formed", "[out-of-bounds]"),
        (DIRECT.replace("A^{f32,g}_{a}", "A^{f32,g}_{a*1000000000000000000}"), "ill-formed", ""),
        (DIRECT.replace("A^{f32,g}_{a}", "Z^{f32,g}_{a}"), "ill-formed", ""),
        (DIRECT.replace("+1", "+1" * 100 + "+Z^{f32,g}"), "ill-formed", ""),
        ("L^{2147483647}_{c=0}L^{2147483647}_{d=0}" + DIRECT, "undecided", "too large to run"),
        ("L^{65536}_{a=0}L^{65536}_{c=0}[Z^{f32,g}_{a,c}=1;];" + DIRECT, "undecided", "too large to run"),
    ],
)
def test_verdicts_on_what_cannot_be_taken(writes: Judged, text: str, verdict: str, detail: str) -> None:
    start = time.monotonic()
    proposal = writes(text)
    assert time.monotonic() - start < 1
    assert (proposal.verdict, proposal.program, proposal.key) == (verdict, None, "")
    assert detail in proposal.detail


HARD = (
    "P^{60}_{a=0}P^{80}_{c=0}[" + "Z^{f32,g}_{(a*7+c*3)%60,(a+c)//2%80}="
    "if_then_else((a*5+c)%7<3&(c*3)%11>2,1,Z^{f32,g}_{(a*5+c)%60,(a*11+c)%80});" * 18 + "];"
)


def test_text_that_the_checker_would_take_minutes_for_is_undecided_within_a_second(writes: Judged) -> None:
    for _ in range(2):
        start = time.monotonic()
        proposal = writes(HARD + DIRECT)
        assert time.monotonic() - start < 1
        assert proposal.verdict == "undecided"
        assert proposal.detail.startswith("the checker did not finish within ")
        assert writes(FUSED).verdict == "legal-step"


# ------------------------------------------------------------------------------------------------------------------- by execution


def test_execution_decides_what_no_step_gives(verifier: Verifier, guard: Guard) -> None:
    judge = Judge(CHAIN, "llvm", lambda program: verifier.verify(CHAIN, program, "real"), guard)
    node = Node(0, CHAIN, key(CHAIN), 1.0)
    other = DIRECT.replace("*2+1", "+A^{f32,g}_{a}+1")
    good = judge.judge_text(other, node, LEGAL)
    assert (good.verdict, good.step, good.rounding) == ("equal-by-execution", None, "real")
    assert good.program is not None
    assert print_program(good.program) == other
    bad = judge.judge_text(DIRECT.replace("+1", "+1.001"), node, LEGAL)
    assert (bad.verdict, bad.program) == ("different", None)
    assert "elements differ" in bad.detail
