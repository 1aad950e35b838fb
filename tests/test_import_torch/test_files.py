"""Files in the KernelBench convention, and the examples of the repository."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leir.import_torch import ModelFileError, import_file, load_file
from leir.interpret import interpret

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_imports_and_agrees(path: Path) -> None:
    imported = import_file(path)
    assert imported.program.name == path.stem
    module, inputs = load_file(path)
    (name,) = imported.outputs
    found = interpret(imported.program, imported.arguments(inputs))[name]
    np.testing.assert_allclose(found, module(*inputs).detach().numpy(), rtol=1e-5, atol=1e-5)


MODEL = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
INPUTS = "def get_inputs():\n    return [torch.ones(3)]\n"


def test_the_smallest_file(tmp_path: Path) -> None:
    path = tmp_path / "least.py"
    path.write_text(MODEL + INPUTS)
    assert import_file(path, bind="first").program.name == "least"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\n", "no class Model"),
        ("Model = 3\n", "no class Model"),
        (MODEL, "no function get_inputs"),
        ("import no_such_library\n", "ModuleNotFoundError while running the file"),
        ("def f(:\n", "SyntaxError while running the file"),
        (MODEL + "def get_inputs():\n    return 1/0\n", "ZeroDivisionError while making the model and its inputs"),
        (MODEL + INPUTS + "def get_init_inputs():\n    return [1]\n", "TypeError while making the model"),
    ],
)
def test_a_file_outside_the_convention_is_answered_usefully(tmp_path: Path, source: str, message: str) -> None:
    path = tmp_path / "model.py"
    path.write_text(source)
    with pytest.raises(ModelFileError, match=message) as caught:
        load_file(path)
    assert str(path) in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="no such file"):
        load_file(tmp_path / "none.py")
