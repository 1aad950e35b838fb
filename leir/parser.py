"""From LEIR text to flat nests.

The text is scanned for hostile sizes (`leir.syntax.prescan`), then one LALR pass (lark, `syntax/grammar.lark`, compiled once)
builds the nests as it reduces: loops reduce before the body that they enclose, so indices become axis numbers at once. Every fault
in the text is a LeirSyntaxError.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from math import inf, isinf
from threading import Lock
from typing import Any, cast

from lark import Lark, Token, UnexpectedInput, UnexpectedToken

from leir.ir import (
    CALL_ARITY,
    DTYPES,
    SCOPES,
    Access,
    Binary,
    Call,
    Compare,
    Digit,
    Equation,
    Expr,
    Index,
    Int,
    Item,
    Kind,
    Loop,
    Nest,
    Program,
    Real,
    Scope,
    Signature,
    Tensor,
    Unary,
    children,
)
from leir.lift import make_program
from leir.names import index_name_problem, tensor_name_problem
from leir.syntax.expected import describe_expected
from leir.syntax.prescan import MAX_DEPTH, MAX_LOOPS, prescan
from leir.syntax.spans import SpanTable, Starts
from leir.syntax.syntax_error import LeirSyntaxError, quoted

__all__ = ["LeirSyntaxError", "Parsed", "SpanTable", "parse", "parse_nests"]

MAX_INT = 2**63 - 1
MAX_EXTENT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Parsed:
    """Flat nests, and where in the text their parts stand."""

    nests: tuple[Nest, ...]
    spans: SpanTable


def parse(text: str, signature: Signature, *, source: str = "<text>") -> Program:
    """The program that ``text`` writes, in normal form. Raises LeirSyntaxError."""
    return make_program(signature, parse_nests(text, name=source).nests)


def parse_nests(text: str, *, name: str = "<text>") -> Parsed:
    """The expressions of ``text`` as flat nests; ``name`` is what errors call the text. Raises LeirSyntaxError."""
    prescan(text, name)
    lark, builder = _compiled()
    with _LOCK:
        builder.begin(text, name)
        try:
            parsed: Any = lark.parse(text, on_error=lambda error: False)  # what `_Builder.program` returns
        except UnexpectedInput as error:
            raise _syntax_error(error, text, name) from None
    nests, starts = parsed
    return Parsed(nests, SpanTable(text, nests, starts))


_LOCK = Lock()  # lark binds the builder when it compiles the grammar, so parses take turns


@lru_cache(maxsize=1)
def _compiled() -> tuple[Lark, _Builder]:
    builder = _Builder()
    grammar = files("leir.syntax").joinpath("grammar.lark").read_text(encoding="utf-8")
    options: dict[str, Any] = {"parser": "lalr", "lexer": "contextual", "start": "program", "maybe_placeholders": False}
    return Lark(grammar, transformer=builder, **options), builder


def _syntax_error(error: UnexpectedInput, text: str, name: str) -> LeirSyntaxError:
    assert error.interactive_parser is not None  # there is one whenever parse() was given an on_error
    expected = describe_expected(error.interactive_parser.accepts())  # type: ignore[no-untyped-call]
    offset = error.pos_in_stream if error.pos_in_stream is not None else len(text)
    token = error.token if isinstance(error, UnexpectedToken) else None
    if token is not None and token.type == "$END":
        return LeirSyntaxError.at("the text ends too early", text, len(text.rstrip()), name, expected)
    found = quoted(str(token) if token is not None else text[offset])
    if found == "`#`":
        message = "a comment line stands only above the text"
    elif token is not None and token.type == "WORD" and _LOOP_HEAD.search(text, max(0, offset - 32), offset):
        message = f"unexpected {found} in a loop (the letters L P V U B start loops and name no tensor)"
    else:
        message = f"unexpected {found}"
    return LeirSyntaxError.at(message, text, offset, name, expected)


_LOOP_HEAD = re.compile(r"(?<![A-Za-z])[LPVUB]\s*\^\s*\{\s*\Z")
_Item = tuple[Item, Starts]
_SUBSCRIPT_OPERATORS = ("+", "-", "*", "//", "%")


class _Builder:
    """What each rule of the grammar makes; lark calls these methods bottom-up, left to right."""

    def begin(self, text: str, name: str) -> None:
        self.text = text
        self.source = name
        self.axes: dict[str, int] = {}  # the loops in scope, outermost first
        self.tensors: dict[tuple[str, str], Tensor] = {}
        self.access_start = 0

    def error(self, message: str, at: Token | int, *expected: str) -> LeirSyntaxError:
        offset = at.start_pos or 0 if isinstance(at, Token) else at
        return LeirSyntaxError.at(message, self.text, offset, self.source, expected)

    # ------------------------------------------------------------------------------------------------------------- structure

    def program(self, parts: list[_Item]) -> tuple[tuple[Item, ...], tuple[Starts, ...]]:
        return tuple(node for node, _ in parts), tuple(starts for _, starts in parts)

    def expression(self, parts: list[Any]) -> _Item:
        opening = next(k for k, part in enumerate(parts) if isinstance(part, Token))
        loops: list[tuple[Loop, int]] = parts[:opening]
        items: list[_Item] = parts[opening + 1 :]
        for loop, _ in loops:
            del self.axes[loop.name]
        nest = Nest(
            tuple(loop.digits[0].extent for loop, _ in loops), tuple(loop for loop, _ in loops), tuple(node for node, _ in items)
        )
        start = loops[0][1] if loops else parts[opening].start_pos
        return nest, Starts(start, tuple(starts for _, starts in items))

    def loop(self, parts: list[Token]) -> tuple[Loop, int]:
        kind, extent, index, first = parts
        problem = index_name_problem(index.value, kind == "B")
        if problem is not None:
            raise self.error(problem, index)
        if index in self.axes:
            raise self.error(f"the index {index} is already used by an enclosing loop", index)
        if first != "0":
            raise self.error(f"a loop starts at {first}", first, "0")
        size = self.number(extent)
        if not 1 <= size <= MAX_EXTENT:
            raise self.error(f"a loop of {size} iterations", extent, f"an extent from 1 to {MAX_EXTENT}")
        axis = len(self.axes)
        if axis == MAX_LOOPS:
            raise self.error(f"more than {MAX_LOOPS} loops inside one another", kind)
        self.axes[index.value] = axis
        return Loop(cast(Kind, kind.value), index.value, (Digit(axis, size, 1),)), kind.start_pos or 0

    def equation(self, parts: list[Any]) -> _Item:
        (target, start), value = parts
        level: Sequence[Expr] = (target, value)
        for _ in range(MAX_DEPTH):
            level = [child for expr in level for child in children(expr)]
            if not level:
                return Equation(target, value), Starts(start, ())
        raise self.error(f"an expression of more than {MAX_DEPTH} operations inside one another", start)

    def target(self, parts: list[Access]) -> tuple[Access, int]:
        return parts[0], self.access_start

    # ------------------------------------------------------------------------------------------------------------- expressions

    def access(self, parts: list[Any]) -> Access:
        name, superscript = parts[0], parts[1]
        tensor = self.tensors.get((name, superscript)) or self.tensor(name, superscript)
        self.access_start = name.start_pos
        subscripts = tuple(parts[2:])
        for subscript in subscripts:
            if not isinstance(subscript, (Index, Int)):
                self.check_subscript(subscript, name)
        return Access(tensor, subscripts)

    def tensor(self, name: Token, superscript: Token) -> Tensor:
        problem = tensor_name_problem(name.value)
        if problem is not None:
            raise self.error(problem, name)
        dtype, scope = (part.strip() for part in superscript[1:].strip()[1:-1].split(","))
        if dtype not in DTYPES:
            at = (superscript.start_pos or 0) + superscript.index(dtype)
            raise self.error(f"{quoted(dtype)} is no dtype of LEIR", at, *DTYPES)
        if scope not in SCOPES:
            at = (superscript.start_pos or 0) + superscript.rindex(scope)
            raise self.error(f"{quoted(scope)} is no memory scope", at, "g (global)", "s (shared)", "l (local)")
        tensor = Tensor(name.value, dtype, cast(Scope, scope))
        self.tensors[name.value, superscript.value] = tensor
        return tensor

    def check_subscript(self, subscript: Expr, name: Token) -> None:
        """Refuse what no subscript contains. Accesses were checked when they were built; their dtype is the checker's business."""
        pending = [subscript]
        while pending:
            match pending.pop():
                case Int() | Index() | Access():
                    continue
                case Unary(op="-", operand=operand):
                    pending.append(operand)
                case Binary(op=op, left=left, right=right) if op in _SUBSCRIPT_OPERATORS:
                    pending += (left, right)
                case other:
                    culprit = _SHOWN.get(type(other)) or quoted(str(getattr(other, "op", None) or getattr(other, "fn", "")))
                    raise self.error(
                        f"a subscript of {name} contains {culprit}",
                        name,
                        "indices",
                        "integers",
                        "integer tensors under + - * // %",
                    )

    def binary(self, parts: list[Any]) -> Binary:
        left, op, right = parts
        return Binary(op.value, left, right)

    def compare(self, parts: list[Any]) -> Compare:
        return Compare(tuple(parts[::2]), tuple(op.value for op in parts[1::2]))

    def unary(self, parts: list[Any]) -> Unary:
        return Unary(parts[0].value, parts[1])

    def call(self, parts: list[Any]) -> Call:
        function, args = parts[0], tuple(parts[1:])
        arity = CALL_ARITY.get(function)
        if arity is None:
            raise self.error(f"{quoted(function)} is no function of LEIR", function, *CALL_ARITY)
        if len(args) != arity:
            raise self.error(f"{function} with {len(args)} argument{'s' * (len(args) > 1)}", function, str(arity))
        return Call(function.value, args)

    def integer(self, parts: list[Token]) -> Int:
        return Int(self.number(parts[0]))

    def number(self, token: Token) -> int:
        value = int(token)
        if value > MAX_INT:
            raise self.error(f"{token} is too large", token, f"at most {MAX_INT}")
        return value

    def real(self, parts: list[Token]) -> Real:
        value = float(parts[0])
        if isinf(value):
            raise self.error(f"{quoted(parts[0])} is too large for a number; infinity is written inf", parts[0])
        if value == 0 and parts[0].lower().partition("e")[0].strip("0."):
            raise self.error(f"{quoted(parts[0])} is too small for a number", parts[0])
        return Real(value)

    def word(self, parts: list[Token]) -> Expr:
        word = parts[0]
        axis = self.axes.get(word)
        if axis is not None:
            return Index(axis)
        if word == "inf":
            return Real(inf)
        if word in CALL_ARITY:
            raise self.error(f"the function {word} without its arguments", word, f"{word}(...)")
        scope = f"the loops around it are {', '.join(self.axes)}" if self.axes else "no loop is around it"
        raise self.error(f"no loop has the index {quoted(word)}: {scope}", word)


_SHOWN = {Real: "a number with a point", Compare: "a comparison"}
