"""What goes in and what comes out: names, roles, state, outputs, options, refusals."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from leir.import_torch import ImportRefused, import_module
from leir.interpret import interpret
from leir.ir import Known
from tests.test_import_torch.oracle import Function, agrees, names, randn, randomise, refusals, text


class Gated(nn.Module):
    """Parameters, both kinds of buffers, a constant of its own, and state that nobody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Dropout(0.5))
        self.unused = nn.Linear(2, 2)
        self.register_buffer("gate", torch.randn(6))
        self.register_buffer("hidden", torch.randn(6), persistent=False)
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.body(x) * self.gate + self.hidden * torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) + y


def test_known_tensors_take_names_in_order_and_lead_back_to_the_module() -> None:
    imported = agrees(randomise(Gated()), randn(3, 4), randn(6), scale=4)
    assert imported.program.name == "Gated"
    assert imported.program.signature.tensors == (
        Known("A", "f32", (3, 4), "input"),
        Known("C", "f32", (6,), "input"),
        Known("D", "f32", (6, 4), "param"),
        Known("E", "f32", (6,), "param"),
        Known("F", "f32", (6,), "constant"),
        Known("G", "f32", (6,), "constant"),
        Known("H", "f32", (6,), "constant"),
        Known("Q", "f32", (3, 6), "output"),
    )
    assert imported.bindings == {
        "D": "body.0.weight",
        "E": "body.0.bias",
        "F": "gate",
        "G": "hidden",
        "H": "lifted_tensor_0",
    }
    assert imported.inputs == ("A", "C")
    assert imported.outputs == ("Q",)


def test_arguments_follow_the_module_and_check_their_number() -> None:
    module = randomise(nn.Linear(3, 2))
    imported = import_module(module, (randn(4, 3),))
    with torch.no_grad():
        module.weight.mul_(2)
    x = randn(4, 3, seed=5)
    found = interpret(imported.program, imported.arguments((x.numpy(),)))
    np.testing.assert_allclose(found["F"], module(x).detach().numpy(), rtol=1e-5)
    with pytest.raises(ValueError, match="Linear takes 1 tensors, 2 given"):
        imported.arguments((x, x))


def test_nested_inputs_and_numbers_among_them() -> None:
    def forward(pair: dict[str, torch.Tensor], factor: float, other: list[torch.Tensor]) -> dict[str, Any]:
        return {"sum": pair["x"] * factor + other[0], "rest": (pair["y"] - factor,)}

    inputs = ({"x": randn(3), "y": randn(4)}, 2.5, [randn(3, seed=1)])
    imported = agrees(forward, *inputs)
    assert len(imported.inputs) == 3


def test_an_unread_input_keeps_its_place() -> None:
    imported = agrees(lambda x, y: y * 2, randn(3), randn(4))
    assert [t.name for t in imported.program.signature.inputs] == ["A", "C"]


def test_tied_weights_are_one_tensor() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)
            self.two.weight = self.one.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.two(self.one(x))

    imported = agrees(randomise(Tied()), randn(2, 4), scale=8)
    names = sorted(name.partition(".")[2] for name in imported.bindings.values())
    assert names == ["bias", "bias", "weight"]


def test_training_flags_are_left_alone() -> None:
    module = nn.Sequential(nn.Dropout(), nn.Linear(2, 2).eval()).train()
    module[1].eval()
    import_module(module, (randn(3, 2),))
    assert (module.training, module[0].training, module[1].training) == (True, True, False)


# --------------------------------------------------------------------------------------------------------------------- outputs


def test_outputs_of_every_kind() -> None:
    def forward(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        z = x * y
        return x, z, z, z.mT, z + 1, z.detach(), y, x.sum(), z.clone()

    imported = agrees(forward, randn(3, 3), randn(3, 3, seed=1))
    assert len(set(imported.outputs)) == 9
    assert len(imported.program.nests) == 9


def test_a_transposed_output_before_the_tensor_itself() -> None:
    def forward(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 2
        return y.mT, y

    agrees(forward, randn(3, 3))


def test_identities_at_the_end_cost_nothing() -> None:
    module = nn.Sequential(nn.ReLU(), nn.Dropout(0.3), nn.Identity(), nn.Flatten(1))
    assert text(module, randn(3, 4)) == "L^{3}_{a=0}L^{4}_{c=0}[C^{f32,g}_{a,c}=max(A^{f32,g}_{a,c},0);];"


def test_in_place_operators_are_read_as_functions() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y += 1
        y.relu_()
        return y.mul_(x)

    agrees(forward, randn(5))


# --------------------------------------------------------------------------------------------------------------------- options


def test_bind_first_binds_one_spatial_loop_that_fits() -> None:
    assert text(lambda x: x.sum(0), randn(2000, 3), bind="first").startswith("B^{3}_{tx=0}L^{2000}_{a=0}[")
    assert text(lambda x: x * 2, torch.ones(1, 1025, 7), bind="first").startswith("L^{1025}_{a=0}B^{7}_{tx=0}[")
    assert text(lambda x: x * 2, torch.ones(1025), bind="first").startswith("L^{1025}_{a=0}[")
    assert text(lambda x: x.sum(), randn(4), bind="first").startswith("L^{4}_{a=0}[")


def test_the_same_module_gives_the_same_program() -> None:
    module, inputs = randomise(Gated()), (randn(3, 4), randn(6))
    assert import_module(module, inputs).program == import_module(module, inputs).program
    assert import_module(module, inputs, name="other").program.name == "other"


def test_many_tensors_get_two_letter_names() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        for _ in range(21):
            x = x + 1
        return x

    assert [t.name for t in import_module(Function(forward), (randn(2),)).program.signature.outputs] == ["Ac"]


# -------------------------------------------------------------------------------------------------------------------- refusals


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.features(x).mean((2, 3))
        x = functional.dropout(self.head(x), 0.5, training=True)
        return torch.sort(x)[0], x.cumsum(1)


def test_every_refusal_is_in_one_report_with_its_place() -> None:
    with pytest.raises(ImportRefused) as caught:
        import_module(Broken(), (randn(2, 3, 8, 8),))
    reasons = caught.value.reasons
    assert [(r.op, r.module_path) for r in reasons] == [
        ("aten.conv2d.default", "features.0"),
        ("aten.max_pool2d.default", "features.2"),
        ("aten.native_dropout.default", ""),
        ("aten.sort.default", ""),
        ("aten.cumsum.default", ""),
    ]
    assert reasons[0].shapes == ("f32[2,3,8,8]", "f32[4,3,3,3]", "f32[4]")
    assert reasons[0].line.startswith("test_importer.py:")
    assert reasons[0].line.endswith("x = self.features(x).mean((2, 3))")
    message = str(caught.value)
    assert message.startswith("Broken cannot be imported, 5 refused:\n  aten.conv2d.default in features.0 on f32[2,3,8,8]")
    assert copy.copy(caught.value).reasons == reasons  # as when it crosses to another process


def test_dtypes_and_shapes_that_leir_lacks() -> None:
    assert refusals(lambda x: x.real, torch.ones(3, dtype=torch.complex64))[0].reason == "LEIR has no tensors of complex64"
    assert refusals(lambda x: x + 1, torch.ones(3, dtype=torch.uint8))[0].reason == "LEIR has no tensors of uint8"
    assert refusals(lambda x: x + 1, torch.ones(0, 3))[0].reason == "a tensor without elements"
    assert refusals(lambda x: x.to(torch.int16) + 1, torch.ones(3))[0].op == "aten._to_copy.default"


def test_what_is_no_function_of_its_inputs_is_refused() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
            self.calls += 1
            return x * 2, 3

    assert [(r.op, r.reason) for r in refusals(Counter(), randn(3))] == [
        ("buffer mutation", "forward changes calls in place"),
        ("output", "output 1 is the Python value 3, not a tensor"),
    ]
    assert refusals(lambda x: x.add_(1), randn(3))[0].op == "user input mutation"
    assert "rand" in refusals(lambda x: x + torch.rand(3), randn(3))[0].op


def test_what_pytorch_cannot_trace_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    (control,) = refusals(lambda x: x * 2 if x.sum() > 0 else x, randn(3))
    assert (control.op, control.reason) == ("torch.export", "control flow or a shape depends on data")
    assert control.line.startswith("test_importer.py:")
    assert capsys.readouterr().err == ""
    (failing,) = refusals(lambda x: x.reshape(7), randn(3))
    assert failing.reason.startswith("RuntimeError while PyTorch traced it: shape '[7]' is invalid")
    assert failing.line.endswith("refusals(lambda x: x.reshape(7), randn(3))")
    assert names(refusals(lambda x: x[x > 0], randn(3))) == ["aten.index.Tensor"]
