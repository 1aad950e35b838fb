"""The laws of leir.md, sections 1 and 4, on random programs: text, normal form and key."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings

from leir.digits import is_flat, partitions
from leir.initial import derive
from leir.ir import Access, Binary, Equation, Expr, Item, Known, Loop, Nest, Program, Signature, Tensor, children, with_children
from leir.key import key
from leir.lift import flatten, flatten_program, lift, make_program, map_equation
from leir.parser import parse, parse_nests
from leir.printer import print_nests, print_program
from tests.generators import Options, programs, random_flat

MANY = settings(max_examples=2000)


@MANY
@given(programs())
def test_text_and_memory_go_round(program: Program) -> None:
    """print(parse(t)) == t, parse(print(p)) == p, lift(flatten(n)) is n: 2,000 programs per run."""
    text = print_program(program)
    parsed = parse_nests(text).nests
    assert print_nests(parsed) == text
    assert tuple(flatten(lift(nest)) for nest in parsed) == parsed
    assert all(lift(flatten(nest)) is nest for nest in map(lift, parsed))
    assert parse(text, program.signature) == program
    assert make_program(program.signature, program.nests) == program


@settings(max_examples=300)
@given(programs())
def test_normal_form_keeps_the_invariant_of_nests(program: Program) -> None:
    def visit(nest: Nest, first: int) -> None:
        assert partitions(nest.axes, nest.schedule, first)
        for item in nest.body:
            if isinstance(item, Nest):
                visit(item, first + len(nest.axes))

    for nest in program.nests:
        visit(nest, 0)
        assert is_flat(flatten(nest), 0)


@settings(max_examples=200)
@given(programs())
def test_initialisation_carried_is_initialisation_derived(program: Program) -> None:
    assert derive(program.signature, program.nests) == program.nests


@settings(max_examples=300)
@given(programs())
def test_key_ignores_names_and_term_order_and_nothing_else(program: Program) -> None:
    known = {t.name for t in program.signature.tensors}
    renamed = Program(program.signature, tuple(_renamed(nest, known) for nest in flatten_program(program)))
    again = make_program(program.signature, renamed.nests)
    assert key(again) == key(program)
    longer = parse(print_program(program) + "[Zz^{f32,g}=1;];", program.signature)
    assert key(longer) != key(program)


def _renamed(item: Item, known: set[str]) -> Nest:
    """Every loop and temporary under another name, the two terms of every sum in a subscript exchanged."""
    assert isinstance(item, Nest)
    table: dict[str, str] = {}

    def loop_name(loop: Loop) -> str:
        return loop.name + ("q" if loop.kind == "B" else "qq")

    def expr(e: Expr, subscript: bool = False) -> Expr:
        if isinstance(e, Access):
            name = (
                e.tensor.name
                if e.tensor.name in known
                else table.setdefault(e.tensor.name, f"{e.tensor.name[0]}qq{e.tensor.name[1:]}")
            )
            return Access(Tensor(name, e.tensor.dtype, e.tensor.scope), tuple(expr(s, True) for s in e.subscripts))
        parts = tuple(expr(part, subscript) for part in children(e))
        if subscript and isinstance(e, Binary) and e.op == "+":
            return Binary("+", parts[1], parts[0])
        return with_children(e, parts) if parts else e

    def visit(nest: Nest) -> Nest:
        loops = tuple(Loop(loop.kind, loop_name(loop), loop.digits) for loop in nest.schedule)
        return Nest(nest.axes, loops, tuple(visit(i) if isinstance(i, Nest) else map_equation(i, expr) for i in nest.body))

    return visit(item)


# ---------------------------------------------------------------------------------------------------------- guarded lifting

F32 = (Known("A", "f32", (8, 3), "input"), Known("X", "f32", (8,), "output"))


def body(text: str, tensors: tuple[Known, ...] = F32) -> tuple[tuple[int, ...], tuple[Item, ...]]:
    """The axes and body of the last expression, which is what identifies a computation."""
    nest = parse(text, Signature("t", tensors)).nests[-1]
    return nest.axes, nest.body


def test_a_recurrence_over_two_digits_is_lifted_only_in_its_own_order() -> None:
    """M_{h*4+a} reads M_{h*4+a-1}: under (h, a) one axis of 8, under (a, h) another computation."""
    equation = "M^{f32,g}_{h*4+a}=if_then_else(h*4+a<1,1,M^{f32,g}_{h*4+a-1});"
    ordered = body(f"L^{{2}}_{{h=0}}L^{{4}}_{{a=0}}[{equation}];")
    swapped = body(f"L^{{4}}_{{a=0}}L^{{2}}_{{h=0}}[{equation}];")
    assert ordered[0] == (8,)
    assert swapped[0] == (4, 2)
    assert ordered[1] != swapped[1]


def test_an_order_dependent_sum_keeps_its_order_in_the_body() -> None:
    """X_a = X_{a-1}*2 + A_{a,c} gives other values under (c, a) than under (a, c), so the bodies differ."""
    equation = "X^{f32,g}_{a}=if_then_else(a<1,1,X^{f32,g}_{a-1})*2+A^{f32,g}_{a,c};"
    assert body(f"L^{{8}}_{{a=0}}L^{{3}}_{{c=0}}[{equation}];") != body(f"L^{{3}}_{{c=0}}L^{{8}}_{{a=0}}[{equation}];")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("L^{8}_{a=0}L^{3}_{c=0}[X_{a}=X_{a}+A_{a,c};];", "L^{3}_{c=0}L^{8}_{a=0}[X_{a}=X_{a}+A_{a,c};];"),
        ("L^{8}_{a=0}L^{3}_{c=0}[X_{a}=X_{a}+A_{a,c};];", "L^{2}_{d=0}L^{3}_{c=0}L^{4}_{a=0}[X_{d*4+a}=X_{d*4+a}+A_{d*4+a,c};];"),
        ("L^{8}_{a=0}[X_{a}=A_{a,1};];", "P^{8}_{a=0}[X_{a}=A_{a,1};];"),
        ("L^{8}_{a=0}L^{3}_{c=0}[X_{a}=X_{a}+A_{a,c};];", "L^{24}_{k=0}[X_{k//3}=X_{k//3}+A_{k//3,k%3};];"),
        (
            "L^{8}_{a=0}[X_{a}=if_then_else(a<1,1,X_{a-1});];",
            "L^{4}_{c=0}L^{2}_{a=0}[X_{c*2+a}=if_then_else(c*2+a<1,1,X_{c*2+a-1});];",
        ),
    ],
)
def test_loop_strategies_do_not_touch_the_body(left: str, right: str) -> None:
    def full(text: str) -> str:
        return text.replace("X_", "X^{f32,g}_").replace("A_", "A^{f32,g}_")

    assert body(full(left)) == body(full(right))


def test_text_that_is_not_in_printed_form_is_left_alone() -> None:
    """A sum in parentheses after a plus would print without them; it stays two axes, and the text comes back."""
    text = "L^{8}_{a=0}L^{2}_{c=0}L^{3}_{d=0}[Q^{f32,g}_{a+(c*3+d)}=1;];"
    nest = parse(text, Signature("t", ())).nests[0]
    assert nest.axes == (8, 2, 3)
    assert print_nests((flatten(nest),)) == text


def test_generator_covers_what_the_language_has() -> None:
    """The laws are only as good as the programs: nested brackets, fused loops, digits, gathers and guards all occur."""
    text = "".join(print_nests(random_flat(Random(seed), Options())[1]) for seed in range(400))
    for mark in ("];L", "//", "%", "if_then_else(", "^{i64,g}_{", "P^{", "U^{", "B^{", "max(", "exp("):
        assert mark in text, mark


def test_equation_map_reuses_nodes() -> None:
    a = Tensor("A", "f32", "g")
    equation = Equation(Access(a, ()), Access(a, ()), "all")
    assert map_equation(equation, lambda e: e) is equation
