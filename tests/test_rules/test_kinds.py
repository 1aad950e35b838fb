"""loop_unrolling, loop_parallelization and loop_vectorization: their parameter spaces, and what is refused, law by law."""

from __future__ import annotations

import pytest

from rewrite.enumerate import enumerate_steps
from rules.strategy import Target
from tests.test_rewrite.checked import applied, program, refused, text

MATMUL = """
# A f32[8,16] input
# C f32[16,4] input
# D f32[8,4] output
L^{8}_{a=0}L^{4}_{c=0}L^{16}_{d=0}[D^{f32,g}_{a,c}=D^{f32,g}_{a,c}+A^{f32,g}_{a,d}*C^{f32,g}_{d,c};];
"""
COPY = """
# A f32[6,4] input
# C f32[6,4] output
L^{6}_{a=0}L^{4}_{c=0}[C^{f32,g}_{a,c}=A^{f32,g}_{a,c};];
"""


def space(source: str, strategy: str, target: Target = "llvm") -> list[str]:
    """The arguments of every step of a strategy, legal or not."""
    outcomes = enumerate_steps(program(source), target, [strategy], refusals=True)
    return [str(outcome.step).removeprefix(f"{strategy} ") for outcome in outcomes]


def copy(extent: int, dtype: str = "f32", read: str = "a", written: str = "a", size: int | None = None) -> str:
    """One loop that copies, with the subscripts given."""
    header = f"# A {dtype}[{size or extent}] input\n# C {dtype}[{size or extent}] output\n"
    rest = f"L^{{{size or extent}}}_{{c=0}}[C^{{{dtype},g}}_{{c}}=0;];" if written != "a" else ""
    return f"{header}{rest}L^{{{extent}}}_{{a=0}}[C^{{{dtype},g}}_{{{written}}}=A^{{{dtype},g}}_{{{read}}};];"


# -------------------------------------------------------------------------------------------------------------------- unrolling


def test_unrolling_offers_every_serial_loop_and_keeps_every_bit() -> None:
    assert space(MATMUL, "loop_unrolling") == ["0 loop=0", "0 loop=1", "0 loop=2"]
    assert space(MATMUL.replace("L^{4}", "U^{4}"), "loop_unrolling") == ["0 loop=0", "0 loop=2"]
    assert applied(MATMUL, "loop_unrolling 0 loop=2").rounding == "bitwise"


def test_at_most_256_copies_of_an_equation_on_one_path() -> None:
    once = applied(MATMUL, "loop_unrolling 0 loop=2").program
    twice = applied(once, "loop_unrolling 0 loop=0").program
    refusal = refused(twice, "loop_unrolling 0 loop=1")
    assert (refusal.code, refusal.witness) == ("unroll-limit", None)
    assert refusal.message == "with loop c unrolled an equation would be repeated 512 times, and the limit is 256"


def test_copies_count_along_a_path_and_not_over_sibling_items() -> None:
    source = """
    # A f32[16,16] input
    # C f32[16,16] output
    L^{16}_{a=0}[U^{16}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c};];U^{16}_{d=0}[C^{f32,g}_{a,d}=D^{f32,g}_{a,d};];];
    """
    applied(source, "loop_unrolling 0 loop=0")
    assert refused(source.replace("16", "20"), "loop_unrolling 0 loop=0").code == "unroll-limit"
    inner = source.replace("L^{16}_{a=0}", "U^{16}_{a=0}").replace("U^{16}_{c=0}", "L^{16}_{c=0}")
    applied(inner, "loop_unrolling 0.0 loop=0")


# ----------------------------------------------------------------------------------------------------------------------- parallel


def test_parallelization_offers_serial_loops_inside_no_parallel_or_vectorized_one() -> None:
    assert space(COPY, "loop_parallelization") == ["0 loop=0", "0 loop=1"]
    assert space(COPY.replace("L^{6}", "P^{6}"), "loop_parallelization") == []
    assert space(COPY.replace("L^{4}", "P^{4}"), "loop_parallelization") == ["0 loop=0"]
    nested = """
    # A f32[4,6] input
    # C f32[4,6] output
    P^{4}_{a=0}[L^{6}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c};];L^{6}_{d=0}[C^{f32,g}_{a,d}=D^{f32,g}_{a,d};];];
    """
    assert space(nested, "loop_parallelization") == []
    assert space(nested.replace("P^{4}", "L^{4}"), "loop_parallelization") == ["0 loop=0", "0.0 loop=0", "0.1 loop=0"]


def test_a_parallel_reduction_is_refused_with_two_iterations_that_meet() -> None:
    refusal = refused(MATMUL, "loop_parallelization 0 loop=2")
    assert refusal.code == "carried-dependence"
    assert refusal.message == (
        "iteration a=0,c=0,d=1 accumulates into D[0,0], which iteration a=0,c=0,d=0 accumulates into; "
        "the P loop d would run both at once"
    )


def test_a_parallel_loop_inside_a_kernel_is_legal() -> None:
    kernel = COPY.replace("L^{6}_{a=0}", "B^{6}_{bx=0}").replace("_{a,c}", "_{bx,c}")
    assert text(applied(kernel, "loop_parallelization 0 loop=1", "cuda")).startswith("B^{6}_{bx=0}P^{4}_{c=0}[")


# ------------------------------------------------------------------------------------------------------------------------ vectors


@pytest.mark.parametrize("target", ["llvm", "cuda"])
def test_vectorization_offers_the_innermost_loop_of_a_few_extents(target: Target) -> None:
    for extent in range(1, 18):
        offered = space(copy(extent), "loop_vectorization", target)
        assert offered == (["0 loop=0"] if extent in (2, 3, 4, 8, 16) else [])
    assert space(COPY, "loop_vectorization", target) == ["0 loop=1"]
    assert space(COPY.replace("L^{4}", "U^{4}"), "loop_vectorization", target) == []


def test_only_a_loop_with_no_loop_inside_is_innermost() -> None:
    nested = """
    # A f32[4,8] input
    # C f32[4] output
    L^{4}_{a=0}[D^{f32,g}_{a}=0.5;L^{8}_{c=0}[C^{f32,g}_{a}=max(C^{f32,g}_{a},A^{f32,g}_{a,c}*D^{f32,g}_{a});];];
    """
    assert space(nested, "loop_vectorization") == ["0.1 loop=0"]
    assert refused(nested, "loop_vectorization 0.1 loop=0").code == "carried-dependence"


def test_a_gpu_takes_at_most_16_bytes() -> None:
    for extent, dtype, fits in ((4, "f32", True), (8, "f32", False), (8, "f16", True), (2, "f64", True), (3, "f64", False)):
        step = "loop_vectorization 0 loop=0"
        applied(copy(extent, dtype), step, "llvm")
        if fits:
            applied(copy(extent, dtype), step, "cuda")
        else:
            refusal = refused(copy(extent, dtype), step, "cuda")
            assert refusal.code == "vector-access"
            assert refusal.message.startswith(f"C[a]: {extent} lanes of {dtype} are ")


def test_a_store_has_neighbouring_elements_in_lane_order() -> None:
    step = "loop_vectorization 1 loop=0"
    strided = refused(copy(4, written="a*2", size=8), step)
    assert strided.code == "vector-access"
    assert strided.message == "C[a*2]: at a=0 the next lane is 2 elements away, and not the next element"
    assert "the next lane is -1 elements away" in refused(copy(4, written="3-a", size=8), step).message
    transposed = "# A f32[4,4] input\n# C f32[4,4] output\nL^{4}_{a=0}L^{4}_{c=0}[C^{f32,g}_{c,a}=A^{f32,g}_{a,c};];"
    assert "at a=0, c=0 the next lane is 4 elements away" in refused(transposed, "loop_vectorization 0 loop=1").message


def test_a_store_starts_at_a_multiple_of_its_lanes() -> None:
    step = "loop_vectorization 1 loop=0"
    applied(copy(4, written="a+4", size=8), step)
    refusal = refused(copy(4, written="a+1", size=8), step)
    assert refusal.message == "C[a+1]: at a=0 the vector starts at element 1, and not at a multiple of 4"
    rows = "# A f32[3,4] input\n# C f32[3,4] output\nL^{3}_{a=0}L^{2}_{c=0}[C^{f32,g}_{a,c}=A^{f32,g}_{a,c};];"
    rest = "L^{3}_{a=0}L^{2}_{c=0}[C^{f32,g}_{a,c+2}=0;];"
    applied(rows + rest, "loop_vectorization 0 loop=1")
    narrow = rows.replace("3,4] output", "3,3] output") + rest.replace("L^{2}_{c=0}", "").replace("c+2", "2")
    assert "at a=1, c=0 the vector starts at element 3" in refused(narrow, "loop_vectorization 0 loop=1").message


def test_the_shape_of_a_temporary_is_that_of_all_its_writers() -> None:
    source = """
    # A f32[2,2] input
    # C f32[2,3] output
    L^{2}_{a=0}L^{2}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c};];
    L^{2}_{a=0}[D^{f32,g}_{a,2}=1;];
    L^{2}_{a=0}L^{3}_{c=0}[C^{f32,g}_{a,c}=D^{f32,g}_{a,c};];
    """
    for target in ("llvm", "cuda"):
        refusal = refused(source, "loop_vectorization 0 loop=1", target)  # type: ignore[arg-type]
        assert "at a=1, c=0 the vector starts at element 3" in refusal.message
    wide = source.replace("D^{f32,g}_{a,2}=1;", "D^{f32,g}_{a,2}=1;D^{f32,g}_{a,3}=1;")
    applied(wide, "loop_vectorization 0 loop=1")


def test_digits_of_a_fused_loop_may_be_lanes() -> None:
    fused = "# A f32[3,2,2] input\n# C f32[3,2,2] output\nL^{3}_{c=0}L^{4}_{a=0}[C^{f32,g}_{c,a//2,a%2}=A^{f32,g}_{c,a//2,a%2};];"
    applied(fused, "loop_vectorization 0 loop=1")
    assert refused(fused, "loop_vectorization 0 loop=1", "cuda").code == "vector-access"  # the text is not linear in the lane


def test_on_a_gpu_reads_are_vectors_too() -> None:
    step = "loop_vectorization 0 loop=0"
    broadcast = copy(4).replace("A^{f32,g}_{a}", "A^{f32,g}_{0}")
    applied(broadcast, step, "cuda")
    strided = copy(4, read="a*2").replace("A f32[4]", "A f32[8]")
    applied(strided, step, "llvm")
    refusal = refused(strided, step, "cuda")
    assert refusal.code == "vector-access"
    assert "steps by 2 elements" in refusal.message
