"""powsimp, instance by instance: what is combined, what it does to rounding, and what is left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from leir.interpret import interpret
from leir.ir import Binary, Call, Index
from leir.printer import print_equation
from lower.verify import Verifier
from lower.workers import WorkerPool
from rewrite.enumerate import Found, Refused, enumerate_steps
from rules.mathematics import field, powers, scalar_sites
from rules.mathematics.powers import parameters, propose
from rules.mathematics.ranges import EVERYTHING, range_of
from rules.strategy import Proposal, Refusal
from tests.test_rewrite.checked import program, refused, text
from tests.test_rules.equations import equation, outcomes


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A*(1/(1+exp(-A)))", ["A/(1+exp(-A))"]),  # the example of the paper's Table 10
        ("(1/A)*C", ["C/A"]),
        ("A*C*(1.0/D)", ["A*C/D"]),
        ("A*C**-1", ["A/C"]),
        ("A*(2/C)", []),
        ("A/(1/C)", []),
        ("inf*A*(1/C)", ["inf*A/C"]),
        ("A*A", ["A**2"]),
        ("A*A*C", ["A**2*C"]),
        ("C*(A*A)", ["C*A**2"]),
        ("-A*A", ["-A**2"]),
        ("A**2*A**3", ["A**5"]),
        ("(A**2)**3", ["A**6"]),
        ("(A+C)*(A+C)", ["(A+C)**2"]),
        ("exp(A)*exp(A)", ["exp(A)**2", "exp(A+A)"]),
        ("A**40*A**40", []),
        ("2*2*A", []),
    ],
)
def test_what_is_combined(before: str, after: list[str]) -> None:
    assert [text for text, _ in outcomes(powers, before)] == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A*C*A", ("A**2*C", "real+range")),
        ("A*(A/C)", ("A**2*(1/C)", "real+range")),
        ("exp(A)*exp(C)", ("exp(A+C)", "real+range")),
        ("exp(A-C)*exp(C-D)", ("exp(A-C+(C-D))", "real+range")),
        ("exp(A)/exp(C)", ("exp(A-C)", "real+range")),
        ("D/exp(A)*exp(C)", ("D*exp(C-A)", "real+range")),
        ("exp(tanh(A))*exp(sigmoid(C))", ("exp(tanh(A)+sigmoid(C))", "real")),
        ("D*(exp(min(max(A,-1),1))*exp(0.5))", ("D*exp(min(max(A,-1),1)+0.5)", "real")),
        ("exp(min(max(A,-60),1))*exp(-60)", ("exp(min(max(A,-60),1)+-60)", "real+range")),
        ("D*exp(tanh(A))*exp(0.5)", ("D*exp(tanh(A)+0.5)", "real+range")),
    ],
)
def test_a_new_intermediate_value_is_a_risk_unless_bounds_exclude_it(before: str, after: tuple[str, str]) -> None:
    """The last: ``D*exp(...)`` is a product that was not computed before."""
    assert outcomes(powers, before) == [after]


def test_bounds_are_those_of_the_dtype() -> None:
    assert outcomes(powers, "exp(8*tanh(A))*exp(2.5)", "f32") == [("exp(8*tanh(A)+2.5)", "real")]
    assert outcomes(powers, "exp(8*tanh(A))*exp(2.5)", "f16") == [("exp(8*tanh(A)+2.5)", "real+range")]


@pytest.mark.parametrize(
    "before",
    [
        "sqrt(A**2)",
        "log(exp(A))",
        "log(A*C)",
        "A/A",
        "exp(A-C)",
        "A+C-C",
        "exp(A)/(exp(A)+1)",
        "(A**2)**0.5",
        "(A**0.5)**2",
        "A/C*D/A",
        "A/C/C",
        "1/exp(A)",
        "floor(A*A)",
    ],
)
def test_known_false_rewrites_are_not_offered(before: str) -> None:
    """sqrt(x**2) to x, log(exp(x)) to x, x/x to 1, exp(x-m) split, sigmoid as e**x/(e**x+1), x+v-v to x."""
    assert outcomes(powers, before) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A*(1/A)", ["A/A"]),
        ("A**2*A**-1", ["A**2/A"]),
        ("A**0.5*A**0.5", ["(A**0.5)**2"]),
        ("A*(1/0)", ["needs-nonzero"]),
        ("A*(1/(C-C))", ["needs-nonzero"]),
    ],
)
def test_nothing_cancels(before: str, after: list[str]) -> None:
    """Zero times its reciprocal is NaN, before and after; a root of a negative number too."""
    assert [text for text, _ in outcomes(powers, before)] == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("R*(1/A)", [("init-changes", "refused")]),
        ("R*(A*(1/C))", [("R*(A/C)", "real")]),
        ("R+A*(1/C)", [("R+A/C", "real")]),
        ("R*A*A", [("R*A**2", "real+range")]),
    ],
)
def test_the_accumulator_stays_at_top_level(before: str, after: list[tuple[str, str]]) -> None:
    assert outcomes(powers, before) == after


def test_integers_are_exact_modulo_a_power_of_two() -> None:
    assert outcomes(powers, "A*C*A", "i32") == [("A**2*C", "bitwise")]
    assert outcomes(powers, "A**2*A", "i8") == [("A**3", "bitwise")]


SOFT = """
    # A f32[4] input
    # C f32[4] input
    # E f32[4] output
    L^{4}_{a=0}[E^{f32,g}_{a}=exp(A^{f32,g}_{a})*exp(C^{f32,g}_{a});];
"""


def test_risky_steps_are_offered_on_request_only() -> None:
    step = "powsimp 0.0: rule=exponential at=,"
    refusal = refused(SOFT, step)
    assert refusal.code == "needs-range"
    assert refusal.message.startswith("equal over the reals, but nothing shows")
    source = program(SOFT)
    assert list(enumerate_steps(source, strategies=["powsimp"])) == []
    (entry,) = enumerate_steps(source, strategies=["powsimp"], refusals=True)
    assert isinstance(entry, Refused)
    (found,) = enumerate_steps(source, strategies=["powsimp"], risky=True)
    assert isinstance(found, Found)
    assert found.rounding == "real+range"
    assert "exp(A^{f32,g}_{a}+C^{f32,g}_{a})" in text(found.program)


def test_why_the_product_of_exponentials_is_a_risk() -> None:
    """Where a factor overflows or vanishes, the product is infinite, NaN or 0, and the exponential of the sum a number."""
    source = program(SOFT)
    (found,) = enumerate_steps(source, strategies=["powsimp"], risky=True)
    a = np.array([100, -200, 100, 3], np.float32)
    c = np.array([-90, 150, -200, -2], np.float32)
    before, after = (interpret(p, {"A": a, "C": c})["E"] for p in (source, found.program))
    assert [str(x) for x in before[:3]] == ["inf", "nan", "nan"]
    np.testing.assert_allclose(after, np.exp((a + c).astype(np.float64)), rtol=1e-5, atol=1e-40)
    assert np.isclose(before[3], after[3], rtol=1e-6)


def test_the_proofs_can_be_followed() -> None:
    ((_, unit), *_) = scalar_sites(equation("exp(tanh(A))*exp(sigmoid(C))"))
    proposal = propose(unit, next(parameters(unit)))
    assert isinstance(proposal, Proposal)
    assert [(proof.by, proof.detail) for proof in proposal.proofs] == [
        ("sympy", "expand((exp(s0)*exp(s1))-(exp(s0+s1)))==0"),
        ("field", "exp(s0)*exp(s1) and exp(s0+s1) agree at 3 random points modulo 2**61-1"),
        ("analysis", "the exponents, the new one last, lie in [-1, 1], [0, 1], [-1, 2]"),
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (("rule", "quotient"),),
        (("rule", "quotient"), ("at", (0,))),
        (("rule", "power"), ("at", ())),
        (("rule", "power"), ("at", ()), ("base", (1,))),
        (("rule", "exponential"), ("at", ())),
        (("rule", "split"), ("at", ())),
    ],
)
def test_a_step_that_names_nothing_is_refused(arguments: tuple[tuple[str, str | tuple[int, ...]], ...]) -> None:
    ((_, unit),) = scalar_sites(equation("A*A*C"))
    refusal = propose(unit, arguments)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "no-such-form"


def test_a_term_that_could_stall_sympy_is_refused() -> None:
    assert outcomes(powers, "+".join(["A*A*A*A"] * 60)) == [("term-too-large", "refused")]


def test_the_field_knows_the_exponential_as_a_homomorphism() -> None:
    """The root generates all of the field's units, so that different exponents have different values."""
    order = field.PRIME - 1
    assert all(pow(field.ROOT, order // p, field.PRIME) != 1 for p in (2, 3, 5, 7, 11, 13, 31, 41, 61, 151, 331, 1321))
    value, old, new = Index(0), Index(1), Index(2)
    first, second, both = (Call("exp", (Binary("-", a, b),)) for a, b in ((value, old), (old, new), (value, new)))
    assert field.agree(Binary("*", first, second), both, 3)
    assert not field.agree(Binary("*", second, second), both, 3)
    assert not field.agree(Binary("+", first, second), both, 3)
    with pytest.raises(ValueError, match="no exponent of integers"):
        field.value(Call("exp", (Binary("/", value, old),)), [1, 2])


def test_random_products_have_the_same_values() -> None:
    """In f64 with values that neither overflow nor vanish, risky steps included."""
    rng = Random(11)
    pieces = ["A", "C", "A**2", "C**3", "(1/A)", "(1.0/(A+C))", "exp(A)", "exp(A-C)", "exp(-C)", "C**-1", "(A+C)", "2", "tanh(A)"]
    counts: Counter[str] = Counter()
    for number in range(300):
        right = rng.choice(pieces)
        for _ in range(rng.randint(1, 4)):
            piece = rng.choice(pieces)
            right = rng.choice(
                [f"{right}*{piece}", f"{right}/{piece}", f"({right})*({piece}*{rng.choice(pieces)})", f"-{right}*{piece}"]
            )
        right = rng.choice([right, f"max({right},A)", f"A+{right}"])
        body = print_equation(equation(right, "f64"), ["a"])
        source = program(f"# A f64[4] input\n# C f64[4] input\n# R f64[4] output\nL^{{4}}_{{a=0}}[{body};];")
        draw = np.random.default_rng(number)
        inputs = {name: draw.uniform(0.5, 3, 4) * draw.choice([1, 1, -1], 4) for name in "AC"}
        expected = interpret(source, inputs)["R"]
        for found in enumerate_steps(source, strategies=["powsimp"], risky=True):
            assert isinstance(found, Found)
            counts[found.rounding] += 1
            np.testing.assert_allclose(interpret(found.program, inputs)["R"], expected, rtol=1e-12)
    print(dict(counts))
    assert counts["real"] >= 150
    assert counts["real+range"] >= 150


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with WorkerPool(workers=1, timeout_s=60, memory_gib=2) as pool:
        yield Verifier(pool)


@pytest.mark.parametrize("right", ["A*(1/(1+exp(-A)))", "A*A*C", "exp(tanh(A))*exp(sigmoid(C))", "(A-C)**2", "A/(1+exp(C))*(A-3)"])
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_built_code_agrees(verifier: Verifier, right: str, dtype: str) -> None:
    """powsimp and expand_factorization."""
    known = "".join(f"# {name} {dtype}[8] {role}\n" for name, role in (("A", "input"), ("C", "input"), ("R", "output")))
    source = program(f"{known}L^{{8}}_{{a=0}}[{print_equation(equation(right, dtype), ['a'])};];")
    steps = list(enumerate_steps(source, strategies=["powsimp", "expand_factorization"]))
    assert steps
    for verdict in verifier.verify_many(source, [(found.program, found.rounding) for found in steps]):
        assert verdict.answer == "equal", verdict


def test_bounds_hold_for_random_values() -> None:
    rng = Random(3)
    pieces = ["A", "tanh(A)", "sigmoid(A)", "min(max(A,-2),3)", "abs(tanh(A))", "exp(-abs(A))", "if_then_else(A<0,-1,2)", "0.5"]
    for _ in range(200):
        right = rng.choice(pieces)
        for _ in range(rng.randint(0, 3)):
            right = rng.choice([f"({right}){rng.choice('+-*')}({rng.choice(pieces)})", f"-({right})", f"tanh({right})"])
        source = equation(right, "f64")
        low, high = range_of(source.value)
        made = program(f"# A f64[4] input\n# R f64[4] output\nL^{{4}}_{{a=0}}[{print_equation(source, ['a'])};];")
        values = interpret(made, {"A": np.array([rng.uniform(-40, 40) for _ in range(4)])})["R"]
        assert np.all((low - 1e-9 <= values) & (values <= high + 1e-9)), right
    assert range_of(equation("A//2", "i32").value) == EVERYTHING
