"""The table of translations: every operator that the importer knows, by its ATen name without the ``aten.``."""

from __future__ import annotations

from collections.abc import Mapping

from leir.import_torch.contractions import CONTRACTIONS
from leir.import_torch.operation import Translation
from leir.import_torch.pointwise import POINTWISE
from leir.import_torch.reductions import REDUCTIONS
from leir.import_torch.views import VIEWS

TRANSLATIONS: Mapping[str, Translation] = {**POINTWISE, **REDUCTIONS, **CONTRACTIONS, **VIEWS}
