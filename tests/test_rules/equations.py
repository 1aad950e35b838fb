"""Short text for equations over one axis: ``A*C+1`` stands for ``R_a = A_a*C_a+1`` with one dtype throughout."""

from __future__ import annotations

import re

from leir.ir import Equation, Expr
from leir.parser import parse_nests
from leir.printer import print_expr
from rules.mathematics import put_back, scalar_sites
from rules.mathematics.factorization import parameters, propose
from rules.strategy import Refusal


def equation(right: str, dtype: str = "f32") -> Equation:
    """``R=right``; every capital letter is a tensor read at ``a``; superscripts that are given stay."""
    text = re.sub(r"[A-Z](?!\^)", lambda name: f"{name[0]}^{{{dtype},g}}_{{a}}", f"R={right}")
    (nest,) = parse_nests(f"L^{{4}}_{{a=0}}[{text};];").nests
    item = nest.body[0]
    assert isinstance(item, Equation)
    return item


def short(expr: Expr) -> str:
    """The text of an expression without superscripts and the subscript ``a``."""
    return re.sub(r"\^\{\w+,g\}(_\{a\})?", "", print_expr(expr, ["a"]))


def factorizations(right: str, dtype: str = "f32") -> list[str]:
    """Every outcome of factorization on ``R=right``, in order: the new right-hand side, or the code of a refusal."""
    source = equation(right, dtype)
    found: list[str] = []
    for path, unit in scalar_sites(source):
        for arguments in parameters(unit):
            proposal = propose(unit, arguments)
            outcome = proposal if isinstance(proposal, Refusal) else put_back(source, path, proposal.result)
            found.append(outcome.code if isinstance(outcome, Refusal) else short(outcome.value))
    return found
