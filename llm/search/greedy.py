"""Greedy search."""

from __future__ import annotations

from llm.search.search import Search, fastest


def greedy(search: Search) -> None:
    """Go on from the fastest new child while it is faster than its parent, else from the fastest node that has something left to
    try; that may be the same node again."""
    front = [search.root]
    while front:
        node = front[0]
        better = [child for child in search.expand(node) if child.seconds < node.seconds]
        front = fastest(better, 1) or search.fastest_open(1)
