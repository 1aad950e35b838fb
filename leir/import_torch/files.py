"""Files in the KernelBench convention: ``class Model``, ``get_inputs()`` and, if Model takes arguments, ``get_init_inputs()``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from leir.import_torch.emit import Bind
from leir.import_torch.importer import Import, import_module


class ModelFileError(ValueError):
    """The file does not follow the convention, or its own code fails. The message names the file and what to change."""


def load_file(path: str | Path) -> tuple[torch.nn.Module, tuple[Any, ...]]:
    """``Model(*get_init_inputs())`` and ``get_inputs()`` of a Python file.

    This runs the file's code in this process, with all that it may do. PyTorch's seed is set to 0 first, so that parameters are
    the same in every run. Raises ModelFileError.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelFileError(f"{path}: no such file")
    source = _executed(path)
    model = getattr(source, "Model", None)
    if not (isinstance(model, type) and issubclass(model, torch.nn.Module)):
        raise ModelFileError(f"{path}: no class Model(torch.nn.Module); the convention is Model, get_inputs and get_init_inputs")
    get_inputs = getattr(source, "get_inputs", None)
    if not callable(get_inputs):
        raise ModelFileError(f"{path}: no function get_inputs(), which returns the list of forward's arguments")
    get_init_inputs = getattr(source, "get_init_inputs", list)
    try:
        torch.manual_seed(0)
        return model(*get_init_inputs()), tuple(get_inputs())
    except Exception as problem:
        raise ModelFileError(f"{path}: {type(problem).__name__} while making the model and its inputs: {problem}") from problem


def import_file(path: str | Path, *, bind: Bind = "none") -> Import:
    """Import the model of a Python file; the program is named after the file.

    This runs the file's code in this process: import only files that you trust. Raises ModelFileError and ImportRefused.
    """
    module, inputs = load_file(path)
    return import_module(module, inputs, name=Path(path).stem, bind=bind)


def _executed(path: Path) -> ModuleType:
    name = f"leir_model_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ModelFileError(f"{path}: no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickling look the module up while its code runs
    try:
        spec.loader.exec_module(module)
    except Exception as problem:
        raise ModelFileError(f"{path}: {type(problem).__name__} while running the file: {problem}") from problem
    finally:
        del sys.modules[name]
    return module
