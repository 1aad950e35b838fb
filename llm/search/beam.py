"""Beam search."""

from __future__ import annotations

from llm.search.search import Search, fastest


def beam(search: Search) -> None:
    """Go on from the ``width`` fastest new children of all nodes in the beam. From a dead end go back to the fastest nodes that
    have something left to try."""
    front = [search.root]
    while front:
        children = [child for node in front for child in search.expand(node)]
        front = fastest(children, search.width) or search.fastest_open(search.width)
