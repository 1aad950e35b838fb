"""Programs from PyTorch modules.

    imported = import_module(module, example_inputs)    or  import_file("model.py")
    interpret(imported.program, imported.arguments(example_inputs))

    module --graph-->  functional graph of ATen operators (torch.export, our decomposition table)
           --translations-->  one LEIR expression per operator; views and scalar constants are absorbed
           --emit-->  Program

`graph`, `importer`, `decompositions` and `files` know PyTorch. The translations, one module per family, know only `Value` (a
tensor as an expression of its dimensions), `Operation` and `Emitter`. An operator is added as a row of a family's table.
Importing this package loads PyTorch.
"""

from leir.import_torch.files import ModelFileError, import_file, load_file
from leir.import_torch.importer import Import, import_module
from leir.import_torch.report import ImportRefused, Refused

__all__ = ["Import", "ImportRefused", "ModelFileError", "Refused", "import_file", "import_module", "load_file"]
