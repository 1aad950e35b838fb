"""Applying stored steps, replaying a list of them, and what is said when one does not exist."""

from __future__ import annotations

import pytest

from leir.printer import print_program
from rewrite.apply import Applied, apply, replay
from rewrite.step import BadStep, Site, Step, step_from_text
from rules.strategy import Refusal
from tests.test_rewrite.checked import applied, assert_sound, program, refused, text

SOURCE = """
# A f32[8,16] input
# E f32[8,16] output
L^{8}_{a=0}L^{16}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c}*2;];
L^{8}_{a=0}L^{16}_{c=0}[E^{f32,g}_{a,c}=D^{f32,g}_{a,c}+1;];
"""


def test_what_a_step_does_not_touch_stays_letter_for_letter() -> None:
    before = program(SOURCE)
    made = applied(before, "loop_split 1 loop=1 factor=4")
    assert text(made)[: len(print_program(before)) // 2] == print_program(before)[: len(print_program(before)) // 2]
    assert made.program.nests[0] is before.nests[0]


def test_the_order_of_arguments_does_not_matter() -> None:
    one, two = applied(SOURCE, "loop_split 1 loop=1 factor=4"), applied(SOURCE, "loop_split 1 factor=4 loop=1")
    assert one.step == two.step
    assert one.program == two.program


def test_replay_carries_on_from_step_to_step() -> None:
    steps = [
        step_from_text(line)
        for line in (
            "operator_fusion 0 depth=2",
            "loop_split 0 loop=0 factor=4",
            "loop_binding 0 loop=0 axis=bx",
            "loop_binding 0 loop=1 axis=tx",
            "loop_reorder 0 order=0,2,1",
        )
    ]
    done = replay(program(SOURCE), steps)
    assert done.refusal is None
    assert [a.step for a in done.applied] == steps
    for step in done.applied:
        assert_sound(step.program)
    assert print_program(done.program) == (
        "B^{2}_{bx=0}L^{16}_{c=0}B^{4}_{tx=0}[D^{f32,g}_{bx*4+tx,c}=A^{f32,g}_{bx*4+tx,c}*2;E^{f32,g}_{bx*4+tx,c}=D^{f32,g}_{bx*4+tx,c}+1;];"
    )


def test_replay_stops_at_a_refusal_and_numbers_the_step() -> None:
    rows = "# A f32[4,3] input\n# C f32[4] output\nL^{4}_{a=0}L^{3}_{c=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+A^{f32,g}_{a,c};];"
    steps = [step_from_text("loop_reorder 0 order=1,0"), step_from_text("loop_binding 0 loop=0 axis=tx")]
    done = replay(program(rows), steps)
    assert len(done.applied) == 1
    assert isinstance(done.refusal, Refusal)
    assert done.refusal.message.startswith("step 2, loop_binding 0 loop=0 axis=tx: iteration")
    assert done.program == done.applied[0].program
    with pytest.raises(BadStep, match="step 1, loop_binding 3 loop=0 axis=tx: loop_binding has no site 3"):
        replay(program(rows), [step_from_text("loop_binding 3 loop=0 axis=tx")])


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("loop_splitting 0 loop=0 factor=2", "'loop_splitting' is no strategy"),
        ("apart 0:0 at=0", "apart is described in the catalogue but not implemented"),
        ("loop_split 7 loop=0 factor=2", "loop_split has no site 7 in example; its sites are: 0 1"),
        ("loop_split 0.0 loop=0 factor=2", "loop_split has no site 0.0"),
        ("operator_fusion 1 depth=1", "operator_fusion has no site 1 in example; its sites are: 0"),
        ("loop_split 0 loop=0 factor=3", "loop_split at 0 does not take loop=0 factor=3; it takes: loop=0 factor=2; "),
        ("loop_split 0 loop=0", "does not take loop=0"),
        ("loop_reorder 0 order=0,1", "loop_reorder at 0 does not take order=0,1; it takes: order=1,0"),
        ("loop_binding 0 loop=0 axis=tw", "does not take loop=0 axis=tw"),
    ],
)
def test_a_step_that_does_not_exist_is_named_with_what_does(step: str, message: str) -> None:
    with pytest.raises(BadStep) as problem:
        apply(program(SOURCE), step_from_text(step))
    assert message in str(problem.value)


def test_arguments_of_the_wrong_type_do_not_exist_either() -> None:
    with pytest.raises(BadStep, match="does not take"):
        apply(program(SOURCE), Step("loop_split", Site((0,)), (("loop", "a"), ("factor", 2))))


def test_values_in_shared_memory_stay_where_they_live() -> None:
    """The producer of a shared tensor fuses into its consumer's kernel; a kernel whose values escape is left alone until then."""
    source = """
    # A f32[8,16] input
    # E f32[8,16] output
    B^{8}_{bx=0}B^{16}_{tx=0}[D^{f32,s}_{bx,tx}=A^{f32,g}_{bx,tx}*2;];
    B^{8}_{bx=0}B^{16}_{tx=0}[E^{f32,g}_{bx,tx}=D^{f32,s}_{bx,tx}+1;];
    """
    assert refused(source, "loop_split 0 loop=1 factor=4").code == "scope-escapes-kernel"
    fused = applied(source, "operator_fusion 0 depth=2")
    assert isinstance(fused, Applied)
    applied(fused.program, "loop_split 0 loop=1 factor=4")


def test_each_thread_has_its_own_local_memory() -> None:
    source = """
    # A f32[8] input
    # E f32[8] output
    B^{8}_{tx=0}[D^{f32,l}=A^{f32,g}_{tx}*2;E^{f32,g}_{tx}=D^{f32,l}+1;];
    """
    applied(source, "loop_split 0 loop=0 factor=4")
    serial = source.replace("B^{8}_{tx=0}", "L^{8}_{a=0}").replace("_{tx}", "_{a}")
    applied(serial, "loop_binding 0 loop=0 axis=tx")
    assert refused(serial.replace("f32,l", "f32,g"), "loop_binding 0 loop=0 axis=tx").code == "carried-dependence"
