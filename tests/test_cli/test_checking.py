"""check, and import of foreign LEIR: the same diagnostics, with places in the file."""

from __future__ import annotations

from pathlib import Path

from tests.test_cli.running import Leir

FOREIGN = """\
# leir 1 sum
# A f32[8] input
# C f16[8] input
# D f32[8] output
L^{8}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a+1}+C^{f16,g}_{a};];
"""


def test_a_sound_program(leir: Leir, matmul: Path) -> None:
    outcome = leir("check", matmul)
    assert (outcome.code, outcome.out) == (0, f"{matmul}: 0 errors, 0 warnings\n")
    assert leir("check", matmul, "--json").json() == {"file": str(matmul), "ok": True, "diagnostics": []}


def test_every_finding_has_its_place_in_the_file_and_a_way_out(leir: Leir, tmp_path: Path) -> None:
    file = tmp_path / "sum.leir"
    file.write_text(FOREIGN, encoding="utf-8")
    outcome = leir("check", file)
    lines = outcome.out.splitlines()
    assert outcome.code == 1
    assert lines[0] == f"{file}:5:27: error[out-of-bounds]: at a=7: reads A[8], shape [8]"
    assert lines[1].startswith("  help: ")
    assert lines[2].startswith(f"{file}:5:43: error[dtype-mismatch]: ")
    assert lines[-1] == f"{file}: 2 errors, 0 warnings"
    found = leir("check", file, "--json").json()["diagnostics"]
    assert [d["code"] for d in found] == ["out-of-bounds", "dtype-mismatch"]
    assert found[0]["witness"] == [["a", 7]]


def test_target_limits_are_checked_on_request(leir: Leir, tmp_path: Path) -> None:
    file = tmp_path / "wide.leir"
    file.write_text("# leir 1 wide\n# D f32[4096] output\nB^{4096}_{tx=0}[D^{f32,g}_{tx}=1.0;];\n", encoding="utf-8")
    assert leir("check", file).code == 0
    assert leir("check", file, "--target", "cuda").code == 1


def test_import_of_foreign_text_puts_casts_in_and_says_so(leir: Leir, tmp_path: Path) -> None:
    file = tmp_path / "sum.leir"
    file.write_text(FOREIGN.replace("a+1", "a"), encoding="utf-8")
    outcome = leir("import", file)
    assert outcome.code == 0
    assert "cast_f32(C^{f16,g}_{a})" in outcome.out
    assert outcome.err.startswith(f"{file}:5:41: warning[cast-inserted]: ")


def test_import_of_foreign_text_ends_with_1_where_an_error_remains(leir: Leir, tmp_path: Path) -> None:
    file = tmp_path / "sum.leir"
    file.write_text(FOREIGN, encoding="utf-8")
    outcome = leir("import", file)
    assert (outcome.code, outcome.out) == (1, "")
    assert "error[out-of-bounds]" in outcome.err
