"""import: a PyTorch file becomes a program, or every reason why not."""

from __future__ import annotations

from pathlib import Path

from tests.test_cli.running import Leir

MODEL = """\
import torch
class Model(torch.nn.Module):
    def forward(self, x, w):
        return torch.relu(x @ w)
def get_inputs():
    return [torch.zeros(8, 6), torch.zeros(6, 4)]
"""


def test_a_model_becomes_a_program(leir: Leir, tmp_path: Path) -> None:
    source, target = tmp_path / "layer.py", tmp_path / "layer.leir"
    source.write_text(MODEL, encoding="utf-8")
    outcome = leir("import", source, "-o", target)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", f"{target}: written\n")
    shown = leir("show", target)
    assert shown.code == 0
    assert shown.out.startswith("layer  key ")
    assert leir("import", source).out == target.read_text(encoding="utf-8")
    assert leir("import", source, "--json").json()["inputs"] == ["A", "C"]


def test_what_has_no_translation_is_named_with_its_place(leir: Leir, tmp_path: Path) -> None:
    source = tmp_path / "layer.py"
    source.write_text(MODEL.replace("torch.relu(x @ w)", "torch.sort(x @ w)[0]"), encoding="utf-8")
    outcome = leir("import", source)
    assert (outcome.code, outcome.out) == (1, "")
    assert "aten.sort.default in forward on f32[8,4]" in outcome.err
    reasons = leir("import", source, "--json").json()["reasons"]
    assert [r["op"] for r in reasons] == ["aten.sort.default"]


def test_a_file_without_a_model_is_unusable(leir: Leir, tmp_path: Path) -> None:
    source = tmp_path / "layer.py"
    source.write_text("x = 1\n", encoding="utf-8")
    outcome = leir("import", source)
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {source}: no class Model(torch.nn.Module)")
