"""The checker: what is wrong with a program, all of it at once (leir.md, sections 2, 3 and 5).

    check(program)                       what must hold everywhere
    check(program, target="cuda")        and the limits of a GPU
    check_flat(signature, nests)         foreign text, before it is lifted

Each check reports independently of the others where that makes sense: a type error in one equation hides nothing elsewhere; a
tensor whose accesses differ in rank is left out where elements are compared. Syntactic answers come first, isl decides the rest
exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

from leir.checker.bounds import check_bounds, check_index_arithmetic
from leir.checker.carried import check_carried
from leir.checker.codes import Target
from leir.checker.defined import check_defined, check_outputs
from leir.checker.facts import Facts, Positions
from leir.checker.kernels import check_kernels, check_shared_memory, check_vectors
from leir.checker.scopes import check_scopes
from leir.checker.structure import check_names, check_signature, check_tensors
from leir.checker.types import check_types
from leir.diagnostics import Diagnostic, has_errors, order
from leir.ir import Nest, Program, Signature
from leir.lift import flatten_program
from leir.polyhedral import patience

__all__ = ["Target", "check", "check_flat", "has_errors"]

CHECKS = (
    check_signature,
    check_names,
    check_tensors,
    check_types,
    check_index_arithmetic,
    check_bounds,
    check_defined,
    check_outputs,
    check_carried,
    check_scopes,
    check_kernels,
    check_shared_memory,
    check_vectors,
)


def check(
    program: Program, *, target: Target = "any", spans: Positions | None = None, flat: Sequence[Nest] | None = None
) -> list[Diagnostic]:
    """Every diagnostic of ``program``, sorted by place. ``spans``, of the text that was parsed, gives lines and columns; ``flat``
    are the program's flat nests, if they are at hand."""
    return check_flat(program.signature, flatten_program(program) if flat is None else flat, target=target, spans=spans)


def check_flat(
    signature: Signature, flat_nests: Sequence[Nest], *, target: Target = "any", spans: Positions | None = None
) -> list[Diagnostic]:
    """As `check`, on flat nests, which may be as wrong as they like. Raises ValueError if they are not flat."""
    facts = Facts(signature, flat_nests, target, spans)
    with patience():
        for part in CHECKS:
            part(facts)
    return sorted(facts.found, key=order)
