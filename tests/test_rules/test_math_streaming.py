"""online_softmax: what is recognised, what it becomes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from leir.ir import Program
from rewrite.apply import apply
from rewrite.enumerate import Refused, enumerate_steps
from rewrite.step import step_from_text
from rules.mathematics.streaming import online_softmax
from rules.strategy import Refusal, WindowUnit
from tests.generators import random_inputs
from tests.test_rewrite.checked import applied, assert_sound, program, text
from tests.test_rules.softmaxes import same, softmax, typed

INF, NAN = float("inf"), float("nan")


def streamed(source: str | Program) -> Program:
    return applied(source, "online_softmax 0").program


@pytest.mark.parametrize(
    "operand",
    [
        "A_{a,c}",
        "A_{a,c}*0.125",
        "A_{a,c}*0.125+G_{a,c}",
        "if_then_else(c<a+3,A_{a,c},-inf)",
        "if_then_else(G_{a,c}>0,A_{a,c}*2,-1e+30)",
        "-A_{a,5-c}",
    ],
)
def test_the_operand_is_any_scalar_expression(operand: str) -> None:
    made = streamed(softmax(operand))
    assert len(made.nests) == 2
    written = typed(operand, "f32")
    assert text(made).startswith(
        "L^{4}_{a=0}L^{6}_{c=0}[F^{f32,g}_{a}=if_then_else(c-1<0,-inf,C^{f32,g}_{a});"
        f"C^{{f32,g}}_{{a}}=max(F^{{f32,g}}_{{a}},{written});"
        "D^{f32,g}_{a}=if_then_else(c-1<0|F^{f32,g}_{a}==-inf,0,D^{f32,g}_{a}*exp(F^{f32,g}_{a}-C^{f32,g}_{a}))"
        f"+exp({written}-C^{{f32,g}}_{{a}});];"
    )


@pytest.mark.parametrize(
    ("maximum", "total", "division"),
    [
        ("L^{6}_{c=0}L^{4}_{a=0}", "L^{4}_{a=0}L^{6}_{c=0}", "L^{4}_{a=0}L^{6}_{c=0}"),
        ("P^{4}_{a=0}U^{6}_{c=0}", "L^{6}_{c=0}L^{4}_{a=0}", "L^{6}_{c=0}L^{4}_{a=0}"),
        ("L^{2}_{d=0}L^{4}_{a=0}L^{3}_{f=0}", "L^{4}_{a=0}L^{6}_{c=0}", "L^{4}_{a=0}L^{6}_{c=0}"),
        ("L^{3}_{f=0}L^{4}_{a=0}L^{2}_{d=0}", "L^{4}_{a=0}L^{6}_{c=0}", "L^{4}_{a=0}L^{6}_{c=0}"),
        ("L^{24}_{g=0}", "L^{4}_{a=0}L^{6}_{c=0}", "P^{4}_{a=0}L^{6}_{c=0}"),
    ],
)
def test_loops_may_be_in_any_order_and_cut_in_any_way(maximum: str, total: str, division: str) -> None:
    source = softmax(maximum=maximum, total=total, division=division)
    first, *rest = source.split("];\n")
    if "d=0" in maximum:
        first = first.replace("_{a,c}", "_{a,d*3+f}")
    if "g=0" in maximum:
        first = first.replace("_{a,c}", "_{g//6,g%6}").replace("^{f32,g}_{a}", "^{f32,g}_{g//6}")
    before = program("];\n".join((first, *rest)))
    made = streamed(before)
    assert text(made).startswith(maximum)
    same(before, made, {k: v * 4 for k, v in random_inputs(before, 1).items()}, "f64")


def test_any_rank_and_several_reduced_axes() -> None:
    source = program("""
        # A f32[2,3,4,5] input
        # E f32[2,3,4,5] output
        L^{2}_{a=0}L^{3}_{c=0}L^{4}_{d=0}L^{5}_{f=0}[C^{f32,g}_{a,0,d}=max(C^{f32,g}_{a,0,d},A^{f32,g}_{a,c,d,f});];
        L^{4}_{d=0}L^{2}_{g=0}L^{5}_{a=0}L^{3}_{c=0}[D^{f32,g}_{d,g}=D^{f32,g}_{d,g}+exp(A^{f32,g}_{g,c,d,a}-C^{f32,g}_{g,0,d});];
        L^{2}_{a=0}L^{3}_{c=0}L^{4}_{d=0}L^{5}_{f=0}[E^{f32,g}_{a,c,d,f}=exp(A^{f32,g}_{a,c,d,f}-C^{f32,g}_{a,0,d})/D^{f32,g}_{d,a};];
    """)
    made = streamed(source)
    assert "if_then_else(c+f-1<0|F^{f32,g}_{a,0,d}==-inf,0,D^{f32,g}_{d,a}*" in text(made)
    same(source, made, random_inputs(source, 3), "f64")


def test_a_half_precision_softmax_with_a_wider_sum() -> None:
    """As it is imported from PyTorch."""
    source = program("""
        # A f16[4,8] input
        # E f16[4,8] output
        L^{4}_{a=0}L^{8}_{c=0}[C^{f16,g}_{a}=max(C^{f16,g}_{a},A^{f16,g}_{a,c});];
        L^{4}_{a=0}L^{8}_{c=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+exp(cast_f32(A^{f16,g}_{a,c})-cast_f32(C^{f16,g}_{a}));];
        L^{4}_{a=0}L^{8}_{c=0}[E^{f16,g}_{a,c}=cast_f16(exp(cast_f32(A^{f16,g}_{a,c})-cast_f32(C^{f16,g}_{a}))/D^{f32,g}_{a});];
    """)
    made = streamed(source)
    assert "D^{f32,g}_{a}*exp(cast_f32(F^{f16,g}_{a})-cast_f32(C^{f16,g}_{a}))" in text(made)
    a = np.array([[-INF] * 8, [-INF] * 5 + [60000, -60000, 1], [65504] * 8, [NAN] + [1] * 7], np.float16)
    same(source, made, {"A": a}, "native")


def test_on_a_gpu_a_row_stays_in_its_thread() -> None:
    rows = "B^{4}_{tx=0}L^{6}_{c=0}"
    source = softmax(maximum=rows, total=rows, division=rows).replace("_{a}", "_{tx}").replace("_{a,c}", "_{tx,c}")
    made = applied(source, "online_softmax 0", "cuda")
    assert text(made).startswith(rows + "[F^{f32,g}_{tx}=")


# ----------------------------------------------------------------------------------------------------------------- other readers


def test_other_readers_of_maximum_and_sum_stay_right() -> None:
    """A log-sum-exp of the same row, after the window; the name F is taken there."""
    rest = "L^{4}_{a=0}[F_{a}=log(D_{a})+C_{a};];\nL^{4}_{a=0}[H_{a}=F_{a}*2;];"
    source = program(softmax(outputs="E", rest=rest).replace("# E", "# H f32[4] output\n# E"))
    made = streamed(source)
    assert "I^{f32,g}_{a}=if_then_else(c-1<0,-inf,C^{f32,g}_{a})" in text(made)
    a = np.array([[-INF] * 6, [-INF, 2, -INF, -INF, 3, 1], [INF, 1, 2, 3, -INF, 0], [3, 2, 1, 0, NAN, 0]], np.float32)
    same(source, made, {"A": a, "G": a}, "native")


# -------------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("change", "instead"),
    [
        (("exp(A^{f32,g}_{a,c}-C^{f32,g}_{a});", "exp(G^{f32,g}_{a,c}-C^{f32,g}_{a});"), "another operand in the sum"),
        (("exp(A^{f32,g}_{a,c}-C^{f32,g}_{a})/", "exp(G^{f32,g}_{a,c}-C^{f32,g}_{a})/"), "another operand in the division"),
        (("exp(A^{f32,g}_{a,c}-C^{f32,g}_{a})/", "(A^{f32,g}_{a,c}-C^{f32,g}_{a})/"), "no exponential"),
        (("=max(C", "=min(C"), "a minimum"),
        (("D^{f32,g}_{a}+exp", "D^{f32,g}_{a}-exp"), "a difference"),
        (("D^{f32,g}_{a}+exp", "D^{f32,g}_{a}*exp"), "a product"),
        (("exp(A^{f32,g}_{a,c}-C^{f32,g}_{a});", "exp(A^{f32,g}_{a,5-c}-C^{f32,g}_{a});"), "another element"),
        (("exp(A^{f32,g}_{a,c}-C^{f32,g}_{a});", "exp(A^{f32,g}_{a,c}-C^{f32,g}_{3-a});"), "another row's maximum"),
        (("/D^{f32,g}_{a};", "/D^{f32,g}_{3-a};"), "another row's sum"),
    ],
)
def test_what_is_no_softmax_is_not_offered(change: tuple[str, str], instead: str) -> None:
    source = softmax()
    assert source.count(change[0]) >= 1, instead
    changed = program(source.replace(*change))
    assert_sound(changed)
    assert list(enumerate_steps(changed, strategies=["online_softmax"], refusals=True)) == [], instead


def test_a_sum_over_another_part_of_the_row_is_not_offered() -> None:
    source = softmax(total="L^{4}_{a=0}L^{5}_{c=0}")
    assert list(enumerate_steps(program(source), strategies=["online_softmax"], refusals=True)) == []


def test_a_maximum_that_continues_from_earlier_values_is_refused() -> None:
    start = "L^{4}_{a=0}[C^{f32,g}_{a}=1;];\n"
    source = program(softmax().replace("L^{4}", start + "L^{4}", 1))
    (entry,) = enumerate_steps(source, strategies=["online_softmax"], refusals=True)
    assert isinstance(entry, Refused)
    assert entry.refusal.code == "init-changes"
    assert entry.refusal.message == "C continues from what is there, and a stream would start anew"


def test_a_loop_that_runs_a_rows_values_at_once_is_refused() -> None:
    """As foreign text sometimes has it."""
    source = program(softmax(maximum="L^{4}_{a=0}P^{6}_{c=0}"))
    refusal = apply(source, step_from_text("online_softmax 0"))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "carried-dependence"


def test_the_step_takes_no_arguments_and_has_the_proofs_it_needs() -> None:
    made = applied(softmax(), "online_softmax 0")
    assert made.rounding == "real"
    assert [(proof.condition, proof.by) for proof in made.proofs] == [
        ("values", "construction"),
        ("C", "construction"),
        ("equal over the reals", "sympy"),
        ("equal over the reals", "field"),
        ("D", "construction"),
        ("infinite values", "construction"),
        ("order", "construction"),
        ("init", "construction"),
    ]
    assert made.proofs[2].detail == "expand((exp(s0-s1)*exp(s1-s2))-(exp(s0-s2)))==0"
    refusal = online_softmax(WindowUnit(program(softmax()).nests, "llvm", program(softmax()).signature), (("axis", 1),))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "no-such-form"
