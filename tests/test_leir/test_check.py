"""The checker's reports: places, messages, witnesses, the table of codes."""

from __future__ import annotations

import pytest

from leir.check import check, check_flat, has_errors
from leir.diagnostics import CODES, Diagnostic, Place, diagnose
from leir.files import FileFormatError, load_text
from leir.ir import Known, Signature
from leir.lift import make_program
from leir.parser import parse_nests
from leir.repair import import_text
from leir.syntax.syntax_error import LeirSyntaxError

A = Known("A", "f32", (4,), "input")
C = Known("C", "f32", (4,), "output")


def diagnostics(text: str, *tensors: Known, target: str = "any") -> list[Diagnostic]:
    """What the checker says of a text, with its positions."""
    parsed = parse_nests(text)
    return check_flat(Signature("test", tensors), parsed.nests, spans=parsed.spans, target=target)  # type: ignore[arg-type]


def one(text: str, *tensors: Known, target: str = "any") -> Diagnostic:
    found = diagnostics(text, *tensors, target=target)
    assert len(found) == 1, [str(d) for d in found]
    return found[0]


# ------------------------------------------------------------------------------------------------------------- the table of codes


@pytest.mark.parametrize("code", [code for code, info in CODES.items() if not info.refused])
def test_the_example_of_a_code_shows_it(code: str) -> None:
    info = CODES[code]
    program = load_text("# leir 1 example\n" + info.example, "example.leir")
    text = "\n".join(line for line in info.example.split("\n") if not line.startswith("#"))
    if code in ("cast-inserted", "loop-demoted"):
        found = import_text(text, program.signature, demote=code == "loop-demoted")[1]
    else:
        found = check(program, target=info.target)
    assert code in {d.code for d in found}
    others = {d.code for d in found if d.severity == "error"} - {code}
    assert not others, "an example shows one thing"


@pytest.mark.parametrize("code", [code for code, info in CODES.items() if info.refused])
def test_the_reader_refuses_what_no_text_can_have(code: str) -> None:
    with pytest.raises((LeirSyntaxError, FileFormatError)):
        load_text("# leir 1 example\n" + CODES[code].example, "example.leir")


# ------------------------------------------------------------------------------------------------------------ places and messages


def test_a_clean_program_has_nothing_to_report() -> None:
    assert diagnostics("L^{4}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{a};];", A, C) == []


def test_a_read_out_of_bounds_names_place_and_point() -> None:
    found = one("L^{4}_{a=0}[\n  C^{f32,g}_{a}=1+A^{f32,g}_{a+1};\n];", A, C)
    assert found.code == "out-of-bounds"
    assert found.place == Place((0, 0), (1,), 2, 19)
    assert found.message == "at a=3: reads A[4], shape [4]"
    assert found.witness == (("a", 3),)
    assert str(found).startswith("2:19: error[out-of-bounds]: at a=3: reads A[4], shape [4]\n  help: ")


def test_a_carried_dependence_names_both_points() -> None:
    found = one("P^{4}_{a=0}[C^{f32,g}_{a}=if_then_else(a<1,1,C^{f32,g}_{a-1});];", C)
    assert found.message == "the P loop a carries a dependence on C: a=1 reads C[a-1], which a=0 writes as C[a]"
    assert found.witness == (("a", 0), ("a'", 1))


def test_a_gather_names_the_value_of_its_index() -> None:
    index = Known("I", "i64", (2,), "input", (0, 4))
    found = one("L^{2}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{I^{i64,g}_{a}};];", A, Known("C", "f32", (2,), "output"), index)
    assert (found.code, found.witness) == ("gather-out-of-range", (("a", 0), ("I[a]", 4)))


def test_diagnostics_are_sorted_by_place_and_do_not_hide_one_another() -> None:
    text = (
        "L^{4}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a}+H^{f64,g}_{a};];"
        "L^{4}_{a=0}[C^{f32,g}_{a}=D^{f32,g}_{a+1}*2;];"
        "B^{4}_{tx=0}[E^{f32,g}=E^{f32,g}+D^{f32,g}_{tx}//2;];"
    )
    found = diagnostics(text, A, Known("H", "f64", (4,), "input"), C, Known("E", "f32", (), "output"))
    assert [(d.place.path, d.code) for d in found] == [
        ((0, 0), "dtype-mismatch"),
        ((1, 0), "out-of-bounds"),
        ((2, 0), "reduction-bound"),
        ((2, 0), "dtype-domain"),
    ]


def test_a_program_in_normal_form_is_checked_as_its_text() -> None:
    text = "L^{2}_{a=0}L^{2}_{c=0}[C^{f32,g}_{a*2+c}=A^{f32,g}_{a*2+c+1};];"
    signature = Signature("test", (A, C))
    parsed = parse_nests(text)
    program = make_program(signature, parsed.nests)
    assert program.nests != parsed.nests
    assert check(program, spans=parsed.spans) == check_flat(signature, parsed.nests, spans=parsed.spans)
    assert check(program)[0].witness == (("a", 1), ("c", 1))


def test_lifted_nests_are_not_taken_for_flat_ones() -> None:
    signature = Signature("test", (A, C))
    text = "L^{2}_{a=0}L^{2}_{c=0}[C^{f32,g}_{a*2+c}=A^{f32,g}_{a*2+c};];"
    program = make_program(signature, parse_nests(text).nests)
    with pytest.raises(ValueError, match="flat"):
        check_flat(signature, program.nests)


def test_diagnostics_become_json() -> None:
    found = diagnose("out-of-bounds", Place((0, 1), None, 3, 4), "message", witness=(("a", 1),))
    assert found.to_json() == {
        "code": "out-of-bounds",
        "severity": "error",
        "path": [0, 1],
        "scalar": None,
        "line": 3,
        "column": 4,
        "message": "message",
        "help": CODES["out-of-bounds"].way_out,
        "witness": [["a", 1]],
    }


def test_warnings_are_no_errors() -> None:
    found = diagnostics("L^{4}_{a=0}[C^{f32,g}_{a}=1;];", A, C)
    assert [d.code for d in found] == ["unread-known"]
    assert not has_errors(found)


# ------------------------------------------------------------------------------------------------------------------ single rules


def test_gpu_limits_are_those_of_the_target() -> None:
    text = "B^{2048}_{tx=0}[C^{f32,g}_{tx}=1;];"
    wide = Known("C", "f32", (2048,), "output")
    assert diagnostics(text, wide) == []
    assert diagnostics(text, wide, target="llvm") == []
    assert one(text, wide, target="cuda").code == "thread-limit"


def test_a_guard_protects_a_gather_without_a_range() -> None:
    index = Known("I", "i64", (4,), "input")
    text = "L^{4}_{a=0}[C^{f32,g}_{a}=if_then_else(0<=I^{i64,g}_{a}<4,A^{f32,g}_{I^{i64,g}_{a}},0);];"
    assert diagnostics(text, A, C, index) == []


def test_a_precomputed_index_has_the_range_of_what_it_is_computed_from() -> None:
    text = "L^{4}_{a=0}[D^{i64,g}_{a}=3-a;];L^{4}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{D^{i64,g}_{a}};];"
    assert diagnostics(text, A, C) == []
    assert one(text.replace("3-a", "4-a"), A, C).code == "gather-out-of-range"


def test_strict_conditions_do_not_protect() -> None:
    text = "L^{4}_{a=0}[C^{f32,g}_{a}=if_then_else(a<3&A^{f32,g}_{a+1}<0,1,0);];"
    assert one(text, A, C).code == "out-of-bounds"


def test_an_accumulator_needs_no_earlier_write() -> None:
    assert diagnostics("L^{4}_{a=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+A^{f32,g}_{a};];", A, C) == []
    found = one("L^{4}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{a}+C^{f32,g}_{a};];", A, C)
    assert found.code == "undefined-read"


def test_local_scratch_of_a_thread_is_private() -> None:
    text = "B^{4}_{tx=0}[D^{f32,l}=A^{f32,g}_{tx};C^{f32,g}_{tx}=D^{f32,l}*2;];"
    assert diagnostics(text, A, C) == []
    assert one(text.replace("f32,l}", "f32,s}"), A, C).code == "carried-dependence"


def test_a_local_reduction_starts_anew_in_each_thread() -> None:
    rows = Known("A", "f32", (4, 3), "input")
    text = "B^{4}_{tx=0}[D^{f32,l}=0;L^{3}_{c=0}[D^{f32,l}=D^{f32,l}+A^{f32,g}_{tx,c};];C^{f32,g}_{tx}=D^{f32,l};];"
    assert diagnostics(text, rows, C) == []
    assert one(text.replace("D^{f32,l}=0;", ""), rows, C).code == "local-crosses-threads"


def test_a_staged_tile_is_handed_from_thread_to_thread() -> None:
    """The second item reads what other threads wrote in the first: lowering puts a barrier between them."""
    text = "B^{2}_{bx=0}[B^{2}_{tx=0}[D^{f32,s}_{tx}=A^{f32,g}_{bx*2+tx};];B^{2}_{tx=0}[C^{f32,g}_{bx*2+tx}=D^{f32,s}_{1-tx};];];"
    assert diagnostics(text, A, C, target="cuda") == []


def test_a_serial_loop_around_a_kernel_makes_launches() -> None:
    text = "L^{2}_{a=0}B^{2}_{tx=0}[C^{f32,g}_{a*2+tx}=if_then_else(a<1,1,D^{f32,l}_{tx});D^{f32,l}_{tx}=2;];"
    assert one(text, C).code == "scope-escapes-kernel"


@pytest.mark.parametrize("outer", ["by", "tx"])
def test_a_serial_loop_inside_a_kernel_orders_no_blocks(outer: str) -> None:
    """Each block runs the whole serial loop, and reads what another block wrote in an earlier iteration."""
    grid = Known("C", "f32", (2, 3, 4), "output")
    written = f"C^{{f32,g}}_{{{outer},a,bx}}"
    earlier = f"C^{{f32,g}}_{{{outer},a-1,bx-1}}"
    text = f"B^{{2}}_{{{outer}=0}}L^{{3}}_{{a=0}}B^{{4}}_{{bx=0}}[{written}=if_then_else(1<=a&1<=bx,{earlier},1);];"
    found = one(text, grid)
    assert found.code == "crosses-blocks"
    assert found.witness == ((outer, 0), ("a", 0), ("bx", 0), (f"{outer}'", 0), ("a'", 1), ("bx'", 1))
    assert found.message == (
        f"C crosses blocks: {outer}=0, a=1, bx=1 reads C[{outer},a-1,bx-1], which {outer}=0, a=0, bx=0 writes as C[{outer},a,bx]"
    )
    assert diagnostics(text.replace("bx-1", "bx"), grid) == []
    launches = text.replace(f"B^{{2}}_{{{outer}=0}}L^{{3}}_{{a=0}}", f"L^{{3}}_{{a=0}}B^{{2}}_{{{outer}=0}}")
    assert diagnostics(launches, grid) == []


def test_shared_memory_counts_what_one_block_holds() -> None:
    wide = Known("C", "f32", (64, 1024), "output")
    text = "B^{64}_{bx=0}B^{1024}_{tx=0}[D^{f32,s}_{bx,tx}=1;C^{f32,g}_{bx,tx}=D^{f32,s}_{bx,tx};];"
    assert diagnostics(text, wide, target="cuda") == []


@pytest.mark.parametrize(
    ("subscript", "width", "good"),
    [("a*4+c", 4, True), ("a*4+c", 8, False), ("c*4+a", 4, False), ("a*4+c+1", 4, False), ("a*2+c", 2, True), ("c", 4, True)],
)
def test_vector_accesses_are_narrow_unit_stride_and_aligned(subscript: str, width: int, good: bool) -> None:
    wide = Known("C", "f32", (32,), "input")
    text = f"L^{{2}}_{{a=0}}V^{{{width}}}_{{c=0}}[D^{{f32,g}}_{{a,c}}=C^{{f32,g}}_{{{subscript}}};];"
    codes = {d.code for d in diagnostics(text, wide, target="cuda")} - {"unread-temporary", "out-of-bounds"}
    assert codes == (set() if good else {"vector-access"})


def test_many_independent_errors_in_one_equation() -> None:
    text = "L^{4}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{a+1}+A^{f32,g}_{a-1}+D^{f32,g}_{a};];"
    codes = [d.code for d in diagnostics(text, A, C)]
    assert codes == ["out-of-bounds", "out-of-bounds", "unknown-tensor"]
