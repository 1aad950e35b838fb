"""dataset and demo: the path to the end."""

from __future__ import annotations

import json
from pathlib import Path

from tests.test_cli.running import Leir

MODEL = """\
import torch
class Model(torch.nn.Module):
    def forward(self, x, w):
        return torch.softmax(x, dim=-1) @ w
def get_inputs():
    return [torch.ones(2, 3), torch.ones(3, 2)]
"""


def test_dataset_writes_the_same_bytes_for_any_number_of_workers(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"rows{k}.jsonl" for k in (1, 2)]
    for workers, file in enumerate(files, 1):
        outcome = leir("dataset", matmul, "--per-strategy", 1, "--workers", workers, "-o", file)
        assert outcome.code == 0
        assert outcome.out.splitlines()[-1].endswith(f"rows written to {file}")
    first, second = (file.read_bytes() for file in files)
    assert first == second
    rows = [json.loads(line) for line in first.splitlines()]
    assert rows
    assert {row["rows_version"] for row in rows} == {1}
    assert len({row["strategy"] for row in rows}) == len(rows)


def test_demo_tells_the_whole_path_and_lists_what_it_wrote(leir: Leir, tmp_path: Path) -> None:
    model, folder = tmp_path / "attention.py", tmp_path / "out"
    model.write_text(MODEL, encoding="utf-8")
    outcome = leir("demo", model, "-o", folder)
    assert outcome.code == 0
    headings = [line for line in outcome.out.splitlines() if line[:1].isdigit()]
    assert [line[:2] for line in headings] == ["1.", "2.", "3.", "4.", "5.", "6.", "7.", "8."]
    assert "operator_fusion 0 depth=1" in outcome.out
    assert "dependence-reversed (" in outcome.out
    listed = outcome.out.partition("Written in")[2]
    written = sorted(folder.iterdir())
    assert [path.name for path in written] == [
        "attention.json",
        "attention.leir",
        "beam-roofline.jsonl",
        "best.leir",
        "certificates.jsonl",
        "extracted.jsonl",
        "greedy-uniform.jsonl",
        "rows.jsonl",
        "search.svg",
    ]
    assert all(str(path) in listed for path in written)
