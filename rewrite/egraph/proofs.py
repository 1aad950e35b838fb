"""Which kernels follow from the original program by steps alone.

Native rules and congruence of terms make kernels too. They are members like others, but no step of the catalogue makes them, so
what rests on them cannot be replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rewrite.egraph.growth import Derivation


def explained(derivations: Iterable[Derivation], originals: int, same: Sequence[int]) -> dict[int, Derivation | None]:
    """By kernel that steps lead to: the first derivation that makes it from such kernels, None for those of the original program.
    ``same`` gives the first of equal kernels."""
    found: dict[int, Derivation | None] = {same[kernel]: None for kernel in range(originals)}
    for derivation in derivations:
        if derivation.step is not None and all(same[kernel] in found for kernel in derivation.needs):
            for kernel in derivation.made:
                found.setdefault(same[kernel], derivation)
    return found
