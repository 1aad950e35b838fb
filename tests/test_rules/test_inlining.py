"""compute_inline: what is substituted, what goes, and every reason to refuse."""

from __future__ import annotations

import numpy as np
import pytest

from leir.interpret import bits, interpret
from rewrite.enumerate import enumerate_steps
from rewrite.step import step_from_text
from tests.generators import random_inputs
from tests.test_rewrite.checked import applied, program, refused, text

CHAIN = """
    # A f32[4,3] input
    # C f32[4] input
    # E f32[4,3] output
    # H f32[4] output
    L^{4}_{a=0}L^{3}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c}*2.0;];
    L^{4}_{a=0}L^{3}_{c=0}[E^{f32,g}_{a,c}=D^{f32,g}_{a,c}+C^{f32,g}_{a};];
    L^{4}_{a=0}L^{3}_{c=0}[H^{f32,g}_{a}=max(H^{f32,g}_{a},D^{f32,g}_{a,c});];
"""


def assert_same_bits(source: str, step: str) -> str:
    """The text after a legal step, which computes what the program did."""
    before = program(source)
    after = applied(before, step).program
    for seed in range(3):
        inputs = random_inputs(before, seed)
        expected, found = interpret(before, inputs), interpret(after, inputs)
        for name, array in expected.items():
            np.testing.assert_array_equal(bits(array), bits(found[name]))
    return text(after)


def test_the_producer_stays_while_another_equation_reads_it() -> None:
    once = assert_same_bits(CHAIN, "compute_inline 0.0 consumer=1,0")
    assert once.startswith("L^{4}_{a=0}L^{3}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c}*2.0;];")
    assert "E^{f32,g}_{a,c}=A^{f32,g}_{a,c}*2.0+C^{f32,g}_{a}" in once


def test_the_producer_goes_with_its_last_reader() -> None:
    both = applied(applied(CHAIN, "compute_inline 0.0 consumer=1,0").program, "compute_inline 0.0 consumer=2,0")
    assert "D^{f32,g}" not in text(both)
    assert "max(H^{f32,g}_{a},A^{f32,g}_{a,c}*2.0)" in text(both)
    assert len(both.program.nests) == 2


def test_an_output_stays() -> None:
    source = """
        # A f32[4] input
        # D f32[4] output
        # E f32[4] output
        L^{4}_{a=0}[D^{f32,g}_{a}=exp(A^{f32,g}_{a});];
        L^{4}_{a=0}[E^{f32,g}_{a}=D^{f32,g}_{3-a};];
    """
    assert assert_same_bits(source, "compute_inline 0.0 consumer=1,0").count("exp(") == 2


def test_an_empty_bracket_goes_with_its_producer() -> None:
    source = """
        # A f32[4,3] input
        # E f32[4,3] output
        L^{4}_{a=0}[L^{3}_{c=0}[D^{f32,g}_{a,c}=exp(A^{f32,g}_{a,c});];L^{3}_{d=0}[E^{f32,g}_{a,d}=D^{f32,g}_{a,2-d}/2;];];
    """
    expected = "L^{4}_{a=0}[L^{3}_{d=0}[E^{f32,g}_{a,d}=exp(A^{f32,g}_{a,2-d})/2;];];"
    assert assert_same_bits(source, "compute_inline 0.0.0 consumer=0,1,0") == expected


@pytest.mark.parametrize(
    ("written", "read", "found"),
    [
        ("D^{f32,g}_{a*3+c}", "D^{f32,g}_{f}", "A^{f32,g}_{f//3,f%3}"),
        ("D^{f32,g}_{a*3+c}", "D^{f32,g}_{11-f}", "A^{f32,g}_{(11-f)//3,(11-f)%3}"),
        ("D^{f32,g}_{11-a*3-c}", "D^{f32,g}_{f}", "A^{f32,g}_{3-f//3,2-f%3}"),
        ("D^{f32,g}_{c*4+a}", "D^{f32,g}_{f}", "A^{f32,g}_{f%4,f//4}"),
        ("D^{f32,g}_{a*5+c}", "D^{f32,g}_{f//3*5+f%3}", "A^{f32,g}_{f//3,f%3}"),
        ("D^{f32,g}_{a//2,a%2,c}", "D^{f32,g}_{f//6,f//3%2,f%3}", "A^{f32,g}_{f//6*2+f//3%2,f%3}"),
        ("D^{f32,g}_{c,a+1}", "D^{f32,g}_{f%3,f//3+1}", "A^{f32,g}_{f//3,f%3}"),
        ("D^{f32,g}_{a+1,c}", "if_then_else(1<=f,D^{f32,g}_{(f+2)//3,f%3},0)", "if_then_else(1<=f,A^{f32,g}_{(f+2)//3-1,f%3},0)"),
        ("D^{f32,g}_{a*3+c}", "D^{f32,g}_{f//6*6+f%6}", "A^{f32,g}_{(f//6*6+f%6)//3,(f//6*6+f%6)%3}"),
    ],
)
def test_write_maps_are_solved(written: str, read: str, found: str) -> None:
    source = f"""
        # A f32[4,3] input
        # E f32[12] output
        L^{{4}}_{{a=0}}L^{{3}}_{{c=0}}[{written}=A^{{f32,g}}_{{a,c}};];
        L^{{12}}_{{f=0}}[E^{{f32,g}}_{{f}}={read};];
    """
    assert assert_same_bits(source, "compute_inline 0.0 consumer=1,0") == f"L^{{12}}_{{f=0}}[E^{{f32,g}}_{{f}}={found};];"


def test_a_read_that_looks_like_the_target_keeps_its_terms_only_inside_the_range() -> None:
    inside = """
        # A f32[4,3] input
        # E f32[4,3] output
        L^{4}_{a=0}L^{3}_{c=0}[D^{f32,g}_{a*3+c}=A^{f32,g}_{a,c}/a;];
        L^{4}_{f=0}L^{3}_{g=0}[E^{f32,g}_{f,g}=D^{f32,g}_{f*3+g};];
    """
    assert "=A^{f32,g}_{f,g}/f;" in assert_same_bits(inside, "compute_inline 0.0 consumer=1,0")
    outside = inside.replace("E f32[4,3]", "E f32[2,6]").replace("L^{4}_{f=0}L^{3}_{g=0}", "L^{2}_{f=0}L^{6}_{g=0}")
    made = assert_same_bits(outside.replace("D^{f32,g}_{f*3+g}", "D^{f32,g}_{f*3+g}"), "compute_inline 0.0 consumer=1,0")
    assert "A^{f32,g}_{(f*3+g)//3,(f*3+g)%3}" in made


def test_rounding_stays_where_it_was() -> None:
    wraps = """
        # A i8[4] input
        # E i8[4] output
        L^{4}_{a=0}[D^{i8,g}_{a}=a*100;];
        L^{4}_{a=0}[E^{i8,g}_{a}=D^{i8,g}_{a}//2+A^{i8,g}_{a};];
    """
    assert "cast_i8(a*100)//2" in assert_same_bits(wraps, "compute_inline 0.0 consumer=1,0")
    plain = wraps.replace("a*100", "7")
    assert "cast_i8(7)//2" in assert_same_bits(plain, "compute_inline 0.0 consumer=1,0")
    added = plain.replace("D^{i8,g}_{a}//2", "D^{i8,g}_{a}")
    assert "=7+A^{i8,g}_{a}" in assert_same_bits(added, "compute_inline 0.0 consumer=1,0")
    third = """
        # E f64[4] output
        L^{4}_{a=0}[D^{f32,g}_{a}=1/3;];
        L^{4}_{a=0}[E^{f64,g}_{a}=cast_f64(D^{f32,g}_{a});];
    """
    assert "cast_f64(cast_f32(1/3))" in assert_same_bits(third, "compute_inline 0.0 consumer=1,0")


def test_an_index_that_becomes_data_is_refused_where_it_is_a_value() -> None:
    source = """
        # A f32[4] input
        # J i64[3] input range[0,3]
        # E f32[3] output
        L^{4}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a}*a;];
        L^{3}_{c=0}[E^{f32,g}_{c}=D^{f32,g}_{J^{i64,g}_{c}};];
    """
    assert refused(source, "compute_inline 0.0 consumer=1,0").code == "typing-changes"
    gathered = source.replace("A^{f32,g}_{a}*a", "A^{f32,g}_{a}*2")
    assert "A^{f32,g}_{J^{i64,g}_{c}}*2" in assert_same_bits(gathered, "compute_inline 0.0 consumer=1,0")


def test_a_read_in_a_subscript_is_refused() -> None:
    source = """
        # A f32[4] input
        # E f32[4] output
        L^{4}_{a=0}[D^{i64,g}_{a}=3-a;];
        L^{4}_{a=0}[E^{f32,g}_{a}=if_then_else(0<=D^{i64,g}_{a}<4,A^{f32,g}_{D^{i64,g}_{a}},0);];
    """
    assert refused(source, "compute_inline 0.0 consumer=1,0").code == "read-in-subscript"


OVERWRITTEN = """
    # A f32[4] input
    # E f32[4] output
    L^{4}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a}*2.0;];
    L^{2}_{a=0}[D^{f32,g}_{a}=1.0;];
    L^{4}_{a=0}[E^{f32,g}_{a}=D^{f32,g}_{a};];
"""


def test_another_writer_in_between_is_refused_with_its_iteration() -> None:
    refusal = refused(OVERWRITTEN, "compute_inline 0.0 consumer=2,0")
    assert refusal.code == "other-source"
    assert refusal.message == "iteration a=0 reads D[0], which iteration a=0 writes; that value is not the producer's"
    assert refusal.witness is not None
    assert refusal.witness.first.path == (1, 0)
    assert refused(OVERWRITTEN, "compute_inline 1.0 consumer=2,0").witness is not None
    beside = OVERWRITTEN.replace("E f32[4]", "E f32[2]").replace(
        "L^{4}_{a=0}[E^{f32,g}_{a}=D^{f32,g}_{a};]", "L^{2}_{a=0}[E^{f32,g}_{a}=D^{f32,g}_{a+2};]"
    )
    made = assert_same_bits(beside, "compute_inline 0.0 consumer=2,0")
    assert made == "L^{2}_{a=0}[D^{f32,g}_{a}=1.0;];L^{2}_{a=0}[E^{f32,g}_{a}=A^{f32,g}_{a+2}*2.0;];"


def test_an_operand_that_changes_is_refused_with_the_write() -> None:
    source = """
        # A f32[4] input
        # E f32[4] output
        # F f32[4] output
        L^{4}_{a=0}[F^{f32,g}_{a}=A^{f32,g}_{a};];
        L^{4}_{a=0}[D^{f32,g}_{a}=F^{f32,g}_{a}*2.0;];
        L^{4}_{a=0}[F^{f32,g}_{a}=1.0;];
        L^{4}_{a=0}[E^{f32,g}_{a}=D^{f32,g}_{3-a};];
    """
    refusal = refused(source, "compute_inline 1.0 consumer=3,0")
    assert refusal.code == "operand-changes"
    assert refusal.message == "iteration a=3 reads F[0], which iteration a=0 writes; the producer read it before that"
    assert refusal.witness is not None
    assert (refusal.witness.first.path, refusal.witness.second.path) == ((2, 0), (3, 0))


def test_an_accumulation_is_no_producer_and_may_be_a_consumer() -> None:
    source = """
        # A f32[4,3] input
        # E f32[4] output
        L^{4}_{a=0}L^{3}_{c=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+A^{f32,g}_{a,c};];
        L^{4}_{a=0}[E^{f32,g}_{a}=D^{f32,g}_{a}*2.0;];
    """
    assert list(enumerate_steps(program(source), "llvm", ["compute_inline"], refusals=True)) == []
    continued = """
        # A f32[4] input
        # C f32[4] input
        # E f32[4] output
        L^{4}_{a=0}[E^{f32,g}_{a}=exp(C^{f32,g}_{a});];
        L^{4}_{a=0}[E^{f32,g}_{a}=E^{f32,g}_{a}+A^{f32,g}_{a};];
    """
    made = assert_same_bits(continued, "compute_inline 0.0 consumer=1,0")
    assert made.endswith("E^{f32,g}_{a}=exp(C^{f32,g}_{a})+A^{f32,g}_{a};];")
    repeated = continued.replace("L^{4}_{a=0}[E^{f32,g}_{a}=E", "L^{4}_{a=0}L^{2}_{c=0}[E^{f32,g}_{a}=E")
    assert refused(repeated, "compute_inline 0.0 consumer=1,0").code == "other-source"


def test_what_would_become_a_carried_dependence_is_refused() -> None:
    source = """
        # A f32[4] input
        # E f32[4] output
        L^{4}_{a=0}[E^{f32,g}_{a}=A^{f32,g}_{a};];
        L^{4}_{a=0}[D^{f32,g}_{a}=if_then_else(a<3,E^{f32,g}_{a+1},0)+1.0;];
        P^{4}_{a=0}[E^{f32,g}_{a}=D^{f32,g}_{a};];
    """
    assert refused(source, "compute_inline 1.0 consumer=2,0").code == "carried-dependence"
    serial = assert_same_bits(source.replace("P^{4}", "L^{4}"), "compute_inline 1.0 consumer=2,0")
    assert serial.endswith("L^{4}_{a=0}[E^{f32,g}_{a}=if_then_else(a<3,E^{f32,g}_{a+1},0)+1.0;];")


def test_a_target_that_does_not_tell_the_iteration_is_refused() -> None:
    source = """
        # A f32[4,3] input
        # E f32[4] output
        L^{4}_{a=0}L^{3}_{c=0}[D^{f32,g}_{a}=A^{f32,g}_{a,c};];
        L^{4}_{a=0}[E^{f32,g}_{a}=D^{f32,g}_{a};];
    """
    assert refused(source, "compute_inline 0.0 consumer=1,0").code == "write-map"


def test_a_read_that_no_instance_reaches_is_replaced_too() -> None:
    source = """
        # A f32[4] input
        # E f32[4] output
        L^{4}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a}*2.0;];
        L^{4}_{a=0}[E^{f32,g}_{a}=if_then_else(a<4,D^{f32,g}_{a},D^{f32,g}_{a+1});];
    """
    made = assert_same_bits(source, "compute_inline 0.0 consumer=1,0")
    assert made == "L^{4}_{a=0}[E^{f32,g}_{a}=if_then_else(a<4,A^{f32,g}_{a}*2.0,A^{f32,g}_{a+1}*2.0);];"


def test_a_step_reads_and_writes_itself() -> None:
    step = "compute_inline 0.0 consumer=1,0"
    made = applied(CHAIN, step)
    assert str(made.step) == step
    assert made.step == step_from_text(step)
    assert [p.condition for p in made.proofs] == ["write map", "value flow", "operands", "rounding", "init"]
    assert made.rounding == "bitwise"
