"""The algorithms by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from llm.search.beam import beam
from llm.search.greedy import greedy
from llm.search.search import Search

Algorithm = Callable[[Search], None]

ALGORITHMS: Mapping[str, Algorithm] = {"greedy": greedy, "beam": beam}
