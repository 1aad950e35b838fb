"""Whether two expressions are the same up to the numbers of their axes."""

from __future__ import annotations

from collections.abc import Sequence

from leir.ir import Access, Binary, Call, Compare, Expr, Index, Int, Real, Unary, children, with_children


class Matching:
    """Axes of one nest paired with those of another, one to one, while expressions are compared.

    ``mine`` and ``theirs`` are the extents of the axes; paired axes have one extent. Where ``theirs`` is None, extents are not
    compared, and `completed` cannot be asked.
    """

    def __init__(self, mine: Sequence[int], theirs: Sequence[int] | None) -> None:
        self.mine = mine
        self.theirs = theirs
        self.pairs: dict[int, int] = {}  # their axis to my axis

    def same(self, mine: Expr, theirs: Expr) -> bool:
        """Whether the two are equal under the pairs so far; axes that have none yet are paired on the way."""
        if isinstance(mine, Index) and isinstance(theirs, Index):
            return self._pair(mine.axis, theirs.axis)
        if _head(mine) != _head(theirs):
            return False
        a, b = children(mine), children(theirs)
        return len(a) == len(b) and all(self.same(x, y) for x, y in zip(a, b, strict=True))

    def completed(self) -> bool:
        """Whether all axes are paired, after pairing the last one of each side if that is all that is left."""
        assert self.theirs is not None
        free = [axis for axis in range(len(self.mine)) if axis not in self.pairs.values()]
        unpaired = [axis for axis in range(len(self.theirs)) if axis not in self.pairs]
        if not free and not unpaired:
            return True
        return len(free) == len(unpaired) == 1 and self._pair(free[0], unpaired[0])

    def renamed(self, theirs: Expr) -> Expr:
        """Their expression in my axes."""
        if isinstance(theirs, Index):
            return Index(self.pairs[theirs.axis])
        return with_children(theirs, tuple(self.renamed(child) for child in children(theirs)))

    def _pair(self, mine: int, theirs: int) -> bool:
        if theirs in self.pairs or mine in self.pairs.values():
            return self.pairs.get(theirs) == mine
        if self.theirs is not None and self.mine[mine] != self.theirs[theirs]:
            return False
        self.pairs[theirs] = mine
        return True


def distinct_axes(access: Access) -> list[int] | None:
    """The axes of an access whose subscripts are numbers and axes of their own; None for any other."""
    axes = [sub.axis for sub in access.subscripts if isinstance(sub, Index)]
    plain = all(isinstance(sub, Index | Int) for sub in access.subscripts)
    return axes if plain and len(axes) == len(set(axes)) else None


def _head(expr: Expr) -> object:
    """What a node is, apart from what is below it."""
    match expr:
        case Int() | Real():
            return expr
        case Access():
            return expr.tensor
        case Unary() | Binary():
            return type(expr), expr.op
        case Compare():
            return type(expr), expr.ops
        case Call():
            return type(expr), expr.fn
    return type(expr)
