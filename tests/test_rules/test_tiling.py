"""loop_tiling and loop_fusion: their parameter spaces, what they make, and what is refused, law by law."""

from __future__ import annotations

from random import Random

import pytest

from rewrite.apply import Applied, apply
from rewrite.enumerate import enumerate_steps
from rewrite.step import Site, Step
from tests.generators import SMALL, random_program
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
STENCIL = """
# A f32[4,4] input
# X f32[4,4] output
L^{4}_{a=0}L^{4}_{c=0}[X^{f32,g}_{a,c}=if_then_else(1<=a&c<3,X^{f32,g}_{a-1,c+1},A^{f32,g}_{a,c});];
"""


def space(source: str, strategy: str) -> list[str]:
    """The arguments of every step of a strategy, legal or not."""
    outcomes = enumerate_steps(program(source), strategies=[strategy], refusals=True)
    return [str(outcome.step).removeprefix(f"{strategy} ") for outcome in outcomes]


# ----------------------------------------------------------------------------------------------------------------------- tiling


def test_tiling_offers_two_proper_divisors_for_every_pair_of_neighbours() -> None:
    assert space(COPY, "loop_tiling") == ["0 pair=0 factors=2,2", "0 pair=0 factors=3,2"]
    assert len(space(MATMUL, "loop_tiling")) == 2 * 4 + 4 * 3
    assert space(COPY.replace("L^{4}", "L^{5}").replace(",4]", ",5]"), "loop_tiling") == []


def test_the_inner_loops_keep_their_kinds_and_the_outer_ones_are_serial() -> None:
    source = MATMUL.replace("L^{8}", "P^{8}").replace("L^{12}", "U^{12}")
    made = text(applied(source, "loop_tiling 0 pair=0 factors=4,6"))
    assert made.startswith("L^{2}_{f=0}L^{2}_{g=0}P^{4}_{a=0}U^{6}_{c=0}L^{16}_{d=0}[D^{f32,g}_{f*4+a,g*6+c}=")


def test_a_tile_is_two_splits_and_a_reorder() -> None:
    tiled = applied(MATMUL, "loop_tiling 0 pair=1 factors=6,8")
    split = applied(applied(MATMUL, "loop_split 0 loop=1 factor=6").program, "loop_split 0 loop=3 factor=8").program
    assert text(applied(split, "loop_reorder 0 order=0,1,3,2,4")) == text(tiled)
    assert tiled.rounding == "bitwise"


def test_a_tile_over_a_reduction_may_reassociate() -> None:
    two = """
    # A f32[3,4,4] input
    # C f32[3] output
    L^{3}_{a=0}L^{4}_{c=0}L^{4}_{d=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+A^{f32,g}_{a,c,d};];
    """
    assert applied(two, "loop_tiling 0 pair=1 factors=2,2").rounding == "reassociates"
    assert applied(two.replace("f32", "i64"), "loop_tiling 0 pair=1 factors=2,2").rounding == "bitwise"


def test_a_tile_that_cuts_across_a_dependence_is_refused() -> None:
    refusal = refused(STENCIL, "loop_tiling 0 pair=0 factors=2,2")
    assert refusal.code == "dependence-reversed"
    assert refusal.message == (
        "iteration a=1,c=1 reads X[0,2], which iteration a=0,c=2 writes; loop f would run them the other way round"
    )
    applied(STENCIL.replace("c+1", "c"), "loop_tiling 0 pair=0 factors=2,2")


# ----------------------------------------------------------------------------------------------------------------------- fusion


def test_fusion_offers_every_pair_of_neighbours() -> None:
    assert space(MATMUL, "loop_fusion") == ["0 pair=0", "0 pair=1"]
    assert space("# A f32[4] output\nL^{4}_{a=0}[A^{f32,g}_{a}=1;];", "loop_fusion") == []


def test_fused_loops_stand_as_quotient_and_remainder() -> None:
    made = applied(COPY, "loop_fusion 0 pair=0")
    assert text(made) == "L^{24}_{c=0}[C^{f32,g}_{c//4,c%4}=A^{f32,g}_{c//4,c%4};];"
    assert made.rounding == "bitwise"
    assert made.program.nests[0].axes == (6, 4)
    assert text(applied(made.program, "loop_split 0 loop=0 factor=4")) == text(program(COPY))


@pytest.mark.parametrize("seed", range(60))
def test_fusion_undoes_every_split(seed: int) -> None:
    start = random_program(Random(seed), SMALL)
    for found in enumerate_steps(start, strategies=["loop_split"]):
        number = dict(found.step.args)["loop"]
        outcome = apply(found.program, Step("loop_fusion", Site(found.step.site.path), (("pair", number),)))
        if isinstance(outcome, Applied):
            assert outcome.program == start
        else:  # serial around parallel or unrolled: the kinds differ now
            assert outcome.code == "kinds-differ"


def test_the_kinds_agree_or_one_loop_is_bound_and_the_other_serial() -> None:
    def kinds(first: str, second: str) -> str:
        made = COPY.replace("L^{6}_{a=0}", first).replace("L^{4}_{c=0}", second)
        for loop, name in ((first, "a"), (second, "c")):
            if loop.startswith("B"):
                made = made.replace(f"{{{name},", f"{{{loop[-5:-3]},").replace(f",{name}}}", f",{loop[-5:-3]}}}")
        return made

    for kind in "LPUV":
        assert text(applied(kinds(f"{kind}^{{6}}_{{a=0}}", f"{kind}^{{4}}_{{c=0}}"), "loop_fusion 0 pair=0")).startswith(
            f"{kind}^{{24}}"
        )
        for other in set("LPUV") - {kind}:
            assert refused(kinds(f"{kind}^{{6}}_{{a=0}}", f"{other}^{{4}}_{{c=0}}"), "loop_fusion 0 pair=0").code == "kinds-differ"
    serial_bound = kinds("L^{6}_{a=0}", "B^{4}_{tx=0}")
    assert text(applied(serial_bound, "loop_fusion 0 pair=0")).startswith("B^{24}_{tx=0}[C^{f32,g}_{tx//4,tx%4}")
    assert text(applied(kinds("B^{6}_{by=0}", "L^{4}_{c=0}"), "loop_fusion 0 pair=0")).startswith("B^{24}_{by=0}[")
    assert text(applied(kinds("B^{6}_{bx=0}", "B^{4}_{tx=0}"), "loop_fusion 0 pair=0")).startswith("B^{24}_{tx=0}[")
    assert (
        refused(kinds("U^{6}_{a=0}", "B^{4}_{tx=0}"), "loop_fusion 0 pair=0").message == "loop a is unrolled and loop tx is bound"
    )


def test_a_reduction_loop_stays_apart_from_a_spatial_one() -> None:
    refusal = refused(MATMUL, "loop_fusion 0 pair=1")
    assert refusal.code == "reduction-with-spatial"
    assert refusal.message == "D is accumulated over loop d and not over loop c; they stay apart"
    applied(MATMUL, "loop_fusion 0 pair=0")
    total = "# A f32[3,4] input\n# C f32[] output\nL^{3}_{a=0}L^{4}_{c=0}[C^{f32,g}=C^{f32,g}+A^{f32,g}_{a,c};];"
    applied(total, "loop_fusion 0 pair=0")


def test_a_serial_loop_that_carries_a_dependence_is_not_bound_by_fusion() -> None:
    source = """
    # A f32[3,4] input
    # X f32[3,4] output
    L^{3}_{a=0}B^{4}_{tx=0}[X^{f32,g}_{a,tx}=if_then_else(a<1,0,X^{f32,g}_{a-1,tx})+A^{f32,g}_{a,tx};];
    """
    refusal = refused(source, "loop_fusion 0 pair=0")
    assert refusal.code == "carried-dependence"
    assert refusal.message == (
        "iteration a=1,tx=0 reads X[0,0], which iteration a=0,tx=0 writes; the B loop tx would run both at once"
    )


def test_a_fused_thread_loop_stays_within_the_limits_of_a_gpu() -> None:
    def threads(rows: int) -> str:
        header = f"# A f32[{rows},64] input\n# C f32[{rows},64] output\n"
        return f"{header}L^{{{rows}}}_{{a=0}}B^{{64}}_{{tx=0}}[C^{{f32,g}}_{{a,tx}}=A^{{f32,g}}_{{a,tx}};];"

    applied(threads(16), "loop_fusion 0 pair=0")
    assert refused(threads(17), "loop_fusion 0 pair=0").code == "thread-limit"
    two = """
    # A f32[3,2,4] input
    # C f32[3,2,4] output
    L^{3}_{a=0}[L^{2}_{c=0}B^{4}_{tx=0}[D^{f32,g}_{a,c,tx}=A^{f32,g}_{a,c,tx};];
    L^{2}_{c=0}B^{4}_{tx=0}[C^{f32,g}_{a,c,tx}=D^{f32,g}_{a,c,tx};];];
    """
    assert refused(two, "loop_fusion 0.0 pair=0").code == "axis-extents"


def test_shared_memory_of_a_block_is_not_spread_over_threads_by_fusion() -> None:
    source = """
    # A f32[2,4] input
    # C f32[2,4] output
    B^{2}_{bx=0}B^{4}_{tx=0}[D^{f32,s}_{tx}=A^{f32,g}_{bx,tx};C^{f32,g}_{bx,tx}=D^{f32,s}_{tx};];
    """
    assert refused(source, "loop_fusion 0 pair=0").code == "carried-dependence"
