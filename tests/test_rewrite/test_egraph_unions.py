"""Unions that would be wrong, each in the program that shows it; and native unions that are right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from leir.printer import print_program
from rewrite.egraph.child import Saturator
from rewrite.egraph.options import PHASES, Limits, Options
from rewrite.egraph.result import EGraphResult, Sample, programs
from tests.test_rewrite.checked import program
from tests.test_rewrite.test_egraph import assert_members_equal

OPTIONS = Options(limits=dict.fromkeys(PHASES, Limits(iterations=3, rows=6_000, seconds=4.0)), beam=4, cycles=1)


@pytest.fixture(scope="module")
def saturator() -> Iterator[Saturator]:
    with Saturator() as process:
        yield process


def saturated(saturator: Saturator, source: str, strategies: tuple[str, ...] | None = None) -> EGraphResult:
    return saturator.saturate(program(source), replace(OPTIONS, strategies=strategies))


def texts(result: EGraphResult, count: int = 60) -> set[str]:
    return {print_program(member.program) for member in programs(result, Random(1), count)}


def check_members(result: EGraphResult, count: int = 40) -> Sample:
    sample = Sample()
    assert assert_members_equal(result, 5, count, sample) > 0
    return sample


def roots(result: EGraphResult) -> dict[str, int]:
    return {name: result.leader[value] for name, value in result.flow.roots.items()}


RECURRENCES = """
    # A f32[4] input
    # E f32[4] output
    # F f32[4] output
    L^{4}_{a=0}L^{4}_{c=0}[E^{f32,g}_{c}=if_then_else(c-1<0,1.0,E^{f32,g}_{c-1})*0.5+A^{f32,g}_{a};];
    L^{4}_{c=0}L^{4}_{a=0}[F^{f32,g}_{c}=if_then_else(c-1<0,1.0,F^{f32,g}_{c-1})*0.5+A^{f32,g}_{a};];
"""


def test_a_recurrence_in_another_order_is_another_value(saturator: Saturator) -> None:
    """The last iteration over a wins in both, but E reads the neighbour of this sweep and F the finished one."""
    result = saturated(saturator, RECURRENCES)
    assert len(set(roots(result).values())) == 2
    check_members(result)


def test_equal_recurrences_are_one_value(saturator: Saturator) -> None:
    source = RECURRENCES.replace("L^{4}_{c=0}L^{4}_{a=0}[F", "L^{4}_{a=0}L^{4}_{c=0}[F")
    assert len(set(roots(saturated(saturator, source, ())).values())) == 1


def test_an_accumulation_and_its_restart_are_two_values(saturator: Saturator) -> None:
    """D is continued in place: the first sum and the second have one text, and are two versions."""
    result = saturated(
        saturator,
        """
        # A f32[4,6] input
        # E f32[4] output
        # F f32[4] output
        L^{4}_{a=0}L^{6}_{c=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+A^{f32,g}_{a,c};];
        L^{4}_{a=0}[E^{f32,g}_{a}=D^{f32,g}_{a}*2.0;];
        L^{4}_{a=0}L^{6}_{c=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+A^{f32,g}_{a,c};];
        L^{4}_{a=0}[F^{f32,g}_{a}=D^{f32,g}_{a}*2.0;];
        """,
    )
    assert len(set(roots(result).values())) == 2
    check_members(result)


INDEX_FACTS = """
    # A f32[8] input
    # E f32[4] output
    # F f32[8] output
    L^{4}_{a=0}[E^{f32,g}_{a}=if_then_else(a<4,A^{f32,g}_{a},0.5)*2.0;];
    L^{8}_{a=0}[F^{f32,g}_{a}=if_then_else(a<4,A^{f32,g}_{a},0.5)*2.0;];
"""


def test_index_facts_do_not_leak(saturator: Saturator) -> None:
    """In E the condition always holds and goes; in F the same text must keep it."""
    result = saturated(saturator, INDEX_FACTS)
    found = texts(result)
    assert any("E^{f32,g}_{a}=A^{f32,g}_{a}*2.0" in text for text in found)
    assert all("<4" in text.split("F^{f32,g}_{a}=")[1].split(";")[0] for text in found if "F^{f32,g}_{a}=" in text)
    check_members(result)


def test_reads_keep_their_guards(saturator: Saturator) -> None:
    """No member reads A at -1: each was proved defined again, and none had to be skipped for that."""
    result = saturated(
        saturator,
        """
        # A f32[6] input
        # C f32[6] input
        # D f32[6] input
        # F f32[6] output
        L^{6}_{a=0}[E^{f32,g}_{a}=if_then_else(1<=a,A^{f32,g}_{a-1},0.0)*C^{f32,g}_{a}+if_then_else(1<=a,A^{f32,g}_{a-1},0.0)*D^{f32,g}_{a};];
        L^{6}_{a=0}[F^{f32,g}_{a}=if_then_else(1<=a,E^{f32,g}_{a-1},0.0)-E^{f32,g}_{a};];
        """,
    )
    sample = check_members(result, 80)
    assert set(sample.skipped) <= {"seen"}, sample


def test_facts_of_one_tensor_stay_with_it(saturator: Saturator) -> None:
    """exp gives D no negative element, so its abs goes; that of A stays."""
    result = saturated(
        saturator,
        """
        # A f32[6] input
        # E f32[6] output
        # F f32[6] output
        L^{6}_{a=0}[D^{f32,g}_{a}=exp(A^{f32,g}_{a});];
        L^{6}_{a=0}[E^{f32,g}_{a}=abs(D^{f32,g}_{a})*3.0;];
        L^{6}_{a=0}[F^{f32,g}_{a}=abs(A^{f32,g}_{a})*3.0;];
        """,
        (),
    )
    found = texts(result)
    assert any("E^{f32,g}_{a}=D^{f32,g}_{a}*3.0" in text for text in found)
    assert all("abs(A" in text for text in found)
    check_members(result)


def test_rounded_comparisons_are_left_alone(saturator: Saturator) -> None:
    """Over the reals the condition always holds; next to rounding it may not, and the branches differ."""
    result = saturated(
        saturator,
        """
        # A f32[6] input
        # E f32[6] output
        L^{6}_{a=0}[E^{f32,g}_{a}=if_then_else(0.0<exp(A^{f32,g}_{a}),1.0,2.0);];
        """,
    )
    assert all("if_then_else" in text for text in texts(result))


def test_a_value_under_two_schedules_is_computed_once(saturator: Saturator) -> None:
    """Congruence: two expressions with other loops and one body are one class, so a member computes it once for both readers."""
    result = saturated(
        saturator,
        """
        # A f32[4,6] input
        # E f32[4,6] output
        L^{4}_{a=0}L^{6}_{c=0}[C^{f32,g}_{a,c}=exp(A^{f32,g}_{a,c});];
        L^{6}_{c=0}P^{4}_{a=0}[D^{f32,g}_{a,c}=exp(A^{f32,g}_{a,c});];
        L^{4}_{a=0}L^{6}_{c=0}[E^{f32,g}_{a,c}=C^{f32,g}_{a,c}*D^{f32,g}_{a,c};];
        """,
        (),
    )
    assert any(text.count("exp") == 1 for text in texts(result))
    check_members(result)


def test_a_wrong_union_would_be_found(saturator: Saturator) -> None:
    """The hunt itself: with two different values called one, random members differ from the original."""
    result = saturated(
        saturator,
        """
        # A f32[6] input
        # E f32[6] output
        L^{6}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{a}+1.0;];
        L^{6}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a}*2.0;];
        L^{6}_{a=0}[E^{f32,g}_{a}=C^{f32,g}_{a}-D^{f32,g}_{a};];
        """,
        (),
    )
    first, second = (result.leader[result.flow.outputs(kernel)[0]] for kernel in (0, 1))
    wrong = replace(result, leader=tuple(first if v == second else v for v in result.leader))
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_members(wrong)
