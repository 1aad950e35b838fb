"""Short text for equations over one axis: ``A*C+1`` stands for ``R_a = A_a*C_a+1`` with one dtype throughout."""

from __future__ import annotations

import re
from types import ModuleType

from leir.ir import Equation, Expr
from leir.parser import parse_nests
from leir.printer import print_expr
from rules.mathematics import factorization, put_back, scalar_sites
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
    return [text for text, _ in outcomes(factorization, right, dtype)]


def outcomes(strategy: ModuleType, right: str, dtype: str = "f32") -> list[tuple[str, str]]:
    """Every outcome of a strategy's module on ``R=right``, in order: the new right-hand side, or the code of a refusal, and the
    rounding class."""
    source = equation(right, dtype)
    found: list[tuple[str, str]] = []
    for path, unit in scalar_sites(source):
        for arguments in strategy.parameters(unit):
            proposal = strategy.propose(unit, arguments)
            outcome = proposal if isinstance(proposal, Refusal) else put_back(source, path, proposal.result)
            if isinstance(outcome, Refusal):
                found.append((outcome.code, "refused"))
            else:
                found.append((short(outcome.value), proposal.rounding))
    return found
