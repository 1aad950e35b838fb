"""The table of refusal codes holds every code in the source, and no other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from leir.checker.codes import CODES
from rewrite.conditions import _MEMORY_CODES
from rules.refusals import GROUPS, REFUSALS

ROOT = Path(__file__).resolve().parents[2]
FORWARDED = ("outcome.code", "found.code")
"""Codes that come from another refusal, or from the checker (`_MEMORY_CODES`)."""


def codes_in(source: str) -> set[str]:
    """The codes of every ``Refusal(code, ...)``: literals, and where the code is a name, what that name may be in its function.

    Raises AssertionError where it cannot tell.
    """
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    found: set[str] = set()
    for call in _calls(tree, "Refusal"):
        if ast.unparse(call.args[0]) not in FORWARDED:
            inside = [f for f in functions if any(node is call for node in ast.walk(f))]
            found |= set(_values(call.args[0], inside[-1] if inside else None, tree))
    return found


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def _values(expr: ast.expr, function: ast.FunctionDef | None, tree: ast.Module) -> Iterator[str]:
    match expr:
        case ast.Constant(value=str(code)):
            yield code
        case ast.IfExp(body=body, orelse=orelse):
            yield from _values(body, function, tree)
            yield from _values(orelse, function, tree)
        case ast.Name(id=name) if function is not None:
            passed = [argument.arg for argument in function.args.args]
            values = list(_assigned(name, function))
            if name in passed:
                values += [(call.args[passed.index(name)], _around(call, tree)) for call in _calls(tree, function.name)]
            assert values, f"nothing is known of the code {name} in {function.name}"
            for value, where in values:
                yield from _values(value, where, tree)
        case _:
            raise AssertionError(f"line {expr.lineno}: the code {ast.unparse(expr)} is no literal, nor a name for literals")


def _assigned(name: str, function: ast.FunctionDef) -> Iterator[tuple[ast.expr, ast.FunctionDef]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == name:
                    yield node.value, function
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = zip(target.elts, node.value.elts, strict=True)
                    yield from ((value, function) for part, value in pairs if isinstance(part, ast.Name) and part.id == name)


def _around(call: ast.Call, tree: ast.Module) -> ast.FunctionDef | None:
    found = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and any(node is call for node in ast.walk(f))]
    return found[-1] if found else None


def test_the_table_is_complete() -> None:
    used: dict[str, str] = dict.fromkeys(_MEMORY_CODES, "rewrite/conditions.py")
    for folder in ("rules", "rewrite"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            used.update((code, str(file.relative_to(ROOT))) for code in codes_in(file.read_text(encoding="utf-8")))
    untold = {code: file for code, file in used.items() if code not in REFUSALS}
    assert untold == {}, "describe these in rules/refusals.py, and run make docs"
    assert sorted(REFUSALS.keys() - used.keys()) == []


def test_the_collector_follows_names() -> None:
    source = """
def one(x):
    return Refusal("a", "")
def two(code):
    return Refusal(code if x else "b", "")
def three(found):
    kind = "c" if found == "not a code" else "d"
    first, second = "e", "f"
    return two(kind) or two(first)
"""
    assert codes_in(source) == {"a", "b", "c", "d", "e"}


def test_codes_are_told_once_and_in_sentences() -> None:
    assert sum(len(table) for _, table in GROUPS) == len(REFUSALS)
    assert all(text[0].isupper() and text.endswith(".") for text in REFUSALS.values())
    shared = {"carried-dependence", "reduction-bound", "crosses-blocks", *_MEMORY_CODES}
    assert shared <= CODES.keys()
