"""Lines that cross from one level of memory to the next, by the order in which a kernel walks.

The rule, for a cache that replaces the least recently used: a loop whose single iteration fits finds again what consecutive
iterations share, so the whole loop brings in just what it touches; a loop whose single iteration does not fit starts every
iteration anew. A line that is written crosses twice, in and out. Lines of a long contiguous run come in sequence, ahead of time;
others each wait for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

from extract.features import Region

SEQUENCE = 4
"""Lines in a row from which on the hardware fetches ahead."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Lines in sequence, and one by one. ``reads_queued``, ``writes_queued``: of the latter, how many wait for one and the same
    set of the cache."""

    streamed: float
    scattered: float
    reads_queued: float
    writes_queued: float

    @property
    def lines(self) -> float:
        return self.streamed + self.scattered


def traffic(
    region: Region, capacity: float, line: int, sets: int | None, *, resident: bool = False, apart: bool = False
) -> Traffic:
    """What a cache of ``capacity`` bytes takes in from outside while ``region`` runs.

    ``resident``: what fits is already there. ``apart``: iterations of grid loops run on different cores, and share nothing.
    """
    cache = _Cache(capacity / line, line, sets, apart)
    if resident and region.needs(line, sets) <= cache.room:
        return Traffic(0.0, 0.0, 0.0, 0.0)
    return cache.traffic(region)


@dataclass(frozen=True, slots=True)
class _Cache:
    room: float
    line: int
    sets: int | None
    apart: bool

    def traffic(self, region: Region) -> Traffic:
        if region.role == "grid" and self.apart:
            return _times(region.extent, [self.traffic(region.children[0])])
        one = region.children[0] if len(region.children) == 1 else region
        if not region.children or one.needs(self.line, self.sets) <= self.room:
            return self.footprint(region)
        return _times(region.extent, [self.traffic(child) for child in region.children])

    def footprint(self, region: Region) -> Traffic:
        streamed = scattered = 0.0
        queued = [0.0, 0.0]
        for group in region.groups:
            count = group.lines(self.line)
            weight = 2.0 if group.written else 1.0
            if group.run(self.line) >= SEQUENCE * self.line or count <= SEQUENCE:
                streamed += weight * count
            else:
                scattered += weight * count
                queued[group.written] += count / group.sets_met(self.line, self.sets) if self.sets else 0.0
        return Traffic(streamed, scattered, *queued)


def _times(extent: int, parts: list[Traffic]) -> Traffic:
    return Traffic(
        extent * sum(t.streamed for t in parts),
        extent * sum(t.scattered for t in parts),
        extent * sum(t.reads_queued for t in parts),
        extent * sum(t.writes_queued for t in parts),
    )
