"""Which names tensors and loop indices may have, and the order in which free ones are taken (leir.md, Names)."""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import lru_cache
from itertools import product

from leir.ir import CALL_ARITY, GPU_AXES

INDEX_LETTERS = "acdfghijklmnopqrsuw"
TENSOR_LETTERS = "ACDEFGHIJKMNOQRSWXYZ"
RESERVED_TENSORS = ("L", "P", "V", "U", "B", "T")
RESERVED_INDICES = ("e", "v", "inf", *CALL_ARITY)
MAX_NAME = 32

_LOWER = frozenset("abcdefghijklmnopqrstuvwxyz")
_PREFIX_LETTERS = "tbxyz"


@lru_cache(maxsize=4096)
def tensor_name_problem(name: str) -> str | None:
    """Why ``name`` cannot name a tensor, or None."""
    if name in RESERVED_TENSORS:
        return f"{name} is a reserved letter ({' '.join(RESERVED_TENSORS)}) and names no tensor"
    if not name or not ("A" <= name[0] <= "Z") or not _LOWER.issuperset(name[1:]):
        return f"{name[:MAX_NAME]!r} is no tensor name: an uppercase letter, then lowercase letters, as in A or Ac"
    if len(name) > MAX_NAME:
        return f"a name of {len(name)} letters, and the limit is {MAX_NAME}"
    return None


@lru_cache(maxsize=4096)
def index_name_problem(name: str, bound: bool) -> str | None:
    """Why ``name`` cannot name the index of a loop (``bound``: of a B loop), or None."""
    if not name or not _LOWER.issuperset(name):
        return f"{name[:MAX_NAME]!r} is no index name: lowercase letters only, as in a or ac"
    if len(name) > MAX_NAME:
        return f"a name of {len(name)} letters, and the limit is {MAX_NAME}"
    if name in RESERVED_INDICES:
        return f"{name} is reserved and names no index"
    prefix = name[:2] if name[:2] in GPU_AXES else ""
    if bound and not prefix:
        return f"a B loop is mapped to a GPU index, and {name} begins with none of {' '.join(GPU_AXES)}"
    if prefix and not bound:
        return f"{name} begins with {prefix}, which only the index of a B loop may"
    stray = next((c for c in name[len(prefix) :] if c in _PREFIX_LETTERS), None)
    if stray is not None:
        return f"{name} has the letter {stray}: t b x y z stand only in the prefixes {' '.join(GPU_AXES)}"
    return None


def index_names() -> Iterator[str]:
    """Every index name in the order in which fresh ones are taken: one letter, then two, and so on."""
    for length in range(1, MAX_NAME):
        for letters in product(INDEX_LETTERS, repeat=length):
            yield "".join(letters)


def tensor_names() -> Iterator[str]:
    """Every tensor name in the order in which fresh ones are taken: one letter, then two, and so on."""
    for length in range(MAX_NAME):
        for first, *rest in product(TENSOR_LETTERS, *(INDEX_LETTERS for _ in range(length))):
            yield "".join((first, *rest))


def fresh_index(taken: Container[str]) -> str:
    """The first index name that is not taken."""
    return next(name for name in index_names() if name not in taken and index_name_problem(name, False) is None)


def fresh_bound_index(axis: str, taken: Container[str]) -> str:
    """The first index name for a B loop on ``axis`` (``bx`` ... ``tz``) that is not taken: the bare axis, then with a suffix."""
    return axis if axis not in taken else next(axis + suffix for suffix in index_names() if axis + suffix not in taken)


def fresh_tensor(taken: Container[str]) -> str:
    """The first tensor name that is not taken."""
    return next(name for name in tensor_names() if name not in taken)
