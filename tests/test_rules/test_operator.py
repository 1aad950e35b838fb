"""loop_split, loop_reorder and loop_binding: their parameter spaces, and what they make, law by law."""

from __future__ import annotations

from rewrite.enumerate import Found, enumerate_steps
from tests.test_rewrite.checked import applied, program, refused, text

MATMUL = """
# A f32[8,16] input
# C f32[16,12] input
# D f32[8,12] output
L^{8}_{a=0}L^{12}_{c=0}L^{16}_{d=0}[D^{f32,g}_{a,c}=D^{f32,g}_{a,c}+A^{f32,g}_{a,d}*C^{f32,g}_{d,c};];
"""
COPY = """
# A f32[6,4] input
# C f32[6,4] output
L^{6}_{a=0}L^{4}_{c=0}[C^{f32,g}_{a,c}=A^{f32,g}_{a,c};];
"""


def space(source: str, strategy: str) -> list[str]:
    """The arguments of every step of a strategy, legal or not."""
    outcomes = enumerate_steps(program(source), strategies=[strategy], refusals=True)
    return [str(outcome.step).removeprefix(f"{strategy} ") for outcome in outcomes]


# ------------------------------------------------------------------------------------------------------------------------ split


def test_split_offers_every_proper_divisor_of_every_loop() -> None:
    assert space(COPY, "loop_split") == ["0 loop=0 factor=2", "0 loop=0 factor=3", "0 loop=1 factor=2"]


def test_split_takes_the_first_free_index_along_all_paths() -> None:
    nested = """
    # A f32[4,6] input
    # C f32[4,6] output
    L^{4}_{a=0}[L^{6}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c};];L^{6}_{d=0}[C^{f32,g}_{a,d}=D^{f32,g}_{a,d};];];
    """
    assert text(applied(nested, "loop_split 0 loop=0 factor=2")).startswith(
        "L^{2}_{f=0}L^{2}_{a=0}[L^{6}_{c=0}[D^{f32,g}_{f*2+a,c}="
    )
    inner = text(applied(nested, "loop_split 0.1 loop=0 factor=3"))
    assert inner.endswith("L^{2}_{c=0}L^{3}_{d=0}[C^{f32,g}_{a,c*3+d}=D^{f32,g}_{a,c*3+d};];];")


def test_split_of_a_fused_loop_cuts_at_digit_boundaries_only() -> None:
    fused = """
    # A f32[4,3] input
    # C f32[4,3] output
    L^{12}_{a=0}[C^{f32,g}_{a//3,a%3}=A^{f32,g}_{a//3,a%3};];
    """
    assert space(fused, "loop_split") == ["0 loop=0 factor=3", "0 loop=0 factor=6"]
    assert text(applied(fused, "loop_split 0 loop=0 factor=3")) == "L^{4}_{c=0}L^{3}_{a=0}[C^{f32,g}_{c,a}=A^{f32,g}_{c,a};];"
    cut = text(applied(fused, "loop_split 0 loop=0 factor=6"))
    assert cut == "L^{2}_{c=0}L^{6}_{a=0}[C^{f32,g}_{c*2+a//3,a%3}=A^{f32,g}_{c*2+a//3,a%3};];"


def test_split_keeps_the_kind_and_the_name_of_the_inner_loop() -> None:
    for kind, name in (("P", "a"), ("U", "a"), ("V", "a"), ("B", "tx")):
        source = COPY.replace("L^{6}_{a=0}", f"{kind}^{{6}}_{{{name}=0}}").replace("_{a,c}", f"_{{{name},c}}")
        outer = "d" if name == "a" else "a"
        made = applied(source, "loop_split 0 loop=0 factor=3")
        assert text(made).startswith(
            f"L^{{2}}_{{{outer}=0}}{kind}^{{3}}_{{{name}=0}}L^{{4}}_{{c=0}}[C^{{f32,g}}_{{{outer}*3+{name},c}}"
        )
        assert made.rounding == "bitwise"


def test_split_of_a_bound_loop_must_leave_its_index_one_extent() -> None:
    source = """
    # A f32[2,4] input
    # C f32[2,4] output
    L^{2}_{a=0}[B^{4}_{tx=0}[D^{f32,g}_{a,tx}=A^{f32,g}_{a,tx};];B^{4}_{tx=0}[C^{f32,g}_{a,tx}=D^{f32,g}_{a,tx};];];
    """
    assert refused(source, "loop_split 0.0 loop=0 factor=2").code == "axis-extents"


# ---------------------------------------------------------------------------------------------------------------------- reorder


def test_reorder_offers_all_orders_of_up_to_four_loops() -> None:
    assert space(COPY, "loop_reorder") == ["0 order=1,0"]
    assert len(space(MATMUL, "loop_reorder")) == 5


def test_reorder_of_more_loops_swaps_two_or_moves_one() -> None:
    five = """
    # A f32[2,2,2,2,2] input
    # C f32[2,2,2,2,2] output
    L^{2}_{a=0}L^{2}_{c=0}L^{2}_{d=0}L^{2}_{f=0}L^{2}_{g=0}[C^{f32,g}_{a,c,d,f,g}=A^{f32,g}_{a,c,d,f,g};];
    """
    offered = space(five, "loop_reorder")
    assert len(offered) == len(set(offered)) == 22  # 10 swaps and 20 moves, of which 4 adjacent ones come three times
    assert "0 order=4,1,2,3,0" in offered
    assert "0 order=1,2,3,4,0" in offered
    assert "0 order=4,3,2,1,0" not in offered


def test_reorder_keeps_bits_unless_an_accumulation_runs_in_another_order() -> None:
    two = """
    # A f32[3,4,5] input
    # C f32[3] output
    L^{3}_{a=0}L^{4}_{c=0}L^{5}_{d=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+A^{f32,g}_{a,c,d};];
    """
    assert applied(two, "loop_reorder 0 order=1,0,2").rounding == "bitwise"
    assert applied(two, "loop_reorder 0 order=0,2,1").rounding == "reassociates"
    assert applied(two.replace("f32", "i32"), "loop_reorder 0 order=0,2,1").rounding == "bitwise"
    largest = two.replace("C^{f32,g}_{a}+A^{f32,g}_{a,c,d}", "max(C^{f32,g}_{a},A^{f32,g}_{a,c,d})")
    assert applied(largest, "loop_reorder 0 order=0,2,1").rounding == "bitwise"


def test_reorder_of_the_digits_of_one_reduction() -> None:
    split = """
    # A f32[3,12] input
    # C f32[3] output
    L^{3}_{a=0}L^{4}_{c=0}L^{3}_{d=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+A^{f32,g}_{a,c*3+d};];
    """
    assert applied(split, "loop_reorder 0 order=1,0,2").rounding == "bitwise"
    assert applied(split, "loop_reorder 0 order=0,2,1").rounding == "reassociates"


def test_bound_loops_may_move() -> None:
    source = MATMUL.replace("L^{8}_{a=0}", "B^{8}_{tx=0}").replace("_{a,", "_{tx,")
    assert text(applied(source, "loop_reorder 0 order=2,1,0")).startswith("L^{16}_{d=0}L^{12}_{c=0}B^{8}_{tx=0}[")


# ---------------------------------------------------------------------------------------------------------------------- binding


def test_binding_offers_serial_loops_on_indices_that_no_path_has() -> None:
    source = COPY.replace("L^{6}_{a=0}", "B^{6}_{bx=0}").replace("_{a,c}", "_{bx,c}")
    assert space(source, "loop_binding") == [f"0 loop=1 axis={axis}" for axis in ("by", "bz", "tx", "ty", "tz")]
    assert space(COPY.replace("L^", "P^"), "loop_binding") == []


def test_binding_a_reduction_is_refused_with_two_iterations_that_meet() -> None:
    refusal = refused(MATMUL, "loop_binding 0 loop=2 axis=tx")
    assert refusal.code == "reduction-bound"
    assert refusal.message == (
        "iteration a=0,c=0,d=1 accumulates into D[0,0], which iteration a=0,c=0,d=0 accumulates into; "
        "the B loop tx would run both at once"
    )


def test_binding_stays_within_the_limits_of_a_gpu() -> None:
    def wide(extent: int) -> str:
        header = f"# A f32[{extent},64] input\n# C f32[{extent},64] output\n"
        return f"{header}L^{{{extent}}}_{{a=0}}L^{{64}}_{{c=0}}[C^{{f32,g}}_{{a,c}}=A^{{f32,g}}_{{a,c}};];"

    assert refused(wide(1025), "loop_binding 0 loop=0 axis=tx").code == "thread-limit"
    assert refused(wide(65), "loop_binding 0 loop=0 axis=tz").code == "thread-limit"
    assert refused(wide(65536), "loop_binding 0 loop=0 axis=by").code == "grid-limit"
    applied(wide(65536), "loop_binding 0 loop=0 axis=bx")
    both = text(applied(wide(16), "loop_binding 0 loop=0 axis=ty"))
    assert both.startswith("B^{16}_{ty=0}L^{64}_{c=0}")
    full = applied(applied(wide(32), "loop_binding 0 loop=0 axis=tx").program, "loop_split 0 loop=1 factor=32").program
    applied(full, "loop_binding 0 loop=2 axis=ty")
    over = applied(wide(32), "loop_binding 0 loop=0 axis=tx").program
    assert refused(over, "loop_binding 0 loop=1 axis=ty").code == "thread-limit"


def test_an_item_must_stay_under_the_block_indices_of_its_kernel() -> None:
    source = """
    # A f32[4,6] input
    # C f32[4,6] output
    # D f32[4] output
    L^{4}_{a=0}[L^{6}_{c=0}[C^{f32,g}_{a,c}=A^{f32,g}_{a,c};];D^{f32,g}_{a}=1;];
    """
    assert refused(source, "loop_binding 0.0 loop=0 axis=bx").code == "outside-block"
    applied(source, "loop_binding 0.0 loop=0 axis=tx")
    applied(source, "loop_binding 0 loop=0 axis=bx")


def test_found_and_refused_cover_the_space() -> None:
    found = [o for o in enumerate_steps(program(MATMUL), strategies=["loop_binding"]) if isinstance(o, Found)]
    assert len(found) == 12
    assert len(space(MATMUL, "loop_binding")) == 18
