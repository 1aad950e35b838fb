"""The scalar level in egglog: constructors, analyses, native rules.

Analyses are lattices of facts that hold wherever a term stands: bounds (of what is no NaN), and `exact`, integers that are computed
without rounding. A comparison is decided only between exact terms: next to a rounded one the real answer may be the other branch.
Bounds of rounded terms follow from signs and from monotonicity, which rounding keeps, and never from sums of bounds. Facts about a
tensor come only from computations that write every element from one term, so not from accumulations and recurrences.

Native rules are identities that keep every bit but the sign of a zero, NaN included: what loses a `max` is a constant.
"""

from __future__ import annotations

RANGES: dict[str, tuple[int, int | None]] = {
    "exp": (0, None),
    "abs": (0, None),
    "sqrt": (0, None),
    "sigmoid": (0, 1),
    **dict.fromkeys(("tanh", "sin", "cos", "erf"), (-1, 1)),
}
"""Bounds of functions, which rounding keeps: 0 and 1 are numbers of every dtype."""

ONE, ZERO = ("i1", "r0x1.0000000000000p+0"), ("i0", "r0x0.0p+0")
NEUTRAL = {"*": ONE, "/": ONE, "+": ZERO, "-": ZERO}
"""Right operands that change nothing, as texts of constants."""


def _rule(ruleset: str, name: str, facts: str, actions: str) -> str:
    return f'(rule ({facts}) ({actions}) :ruleset {ruleset} :name "{name}")'


SCALAR = (
    "(constructor Rd (Ts i64) S)",
    "(constructor Self (i64 i64) S)",
    "(constructor C (String) S)",
    "(constructor Ix (i64 i64) S)",
    "(constructor Op1 (String S) S)",
    "(constructor Op2 (String S S) S)",
    "(constructor Op3 (String S S S) S)",
    "(constructor Sel (S S S) S)",
    "(constructor Comp (i64 Ts S) T)",
    "(relation LRd (i64 i64 i64))",
    "(relation LSelf (i64 i64 i64))",
    "(relation LC (i64 String f64 i64))",
    "(relation LIx (i64 i64 i64))",
    "(relation LOp1 (i64 String i64))",
    "(relation LOp2 (i64 String i64 i64))",
    "(relation LOp3 (i64 String i64 i64 i64))",
    "(relation LSel (i64 i64 i64 i64))",
    "(relation LComp (i64 i64 i64 i64))",
    "(relation US (i64 i64))",
    "(relation plain (i64))",
    "(relation exact (S))",
    "(relation istrue (S))",
    "(relation isfalse (S))",
    "(function lo (S) f64 :merge (max old new))",
    "(function hi (S) f64 :merge (min old new))",
    "(function tlo (T) f64 :merge (max old new))",
    "(function thi (T) f64 :merge (min old new))",
    '(rule ((LRd i l m)) ((union (HS i) (Rd (HL l) m))) :ruleset load :name "load-read")',
    '(rule ((LSelf i c m)) ((union (HS i) (Self c m))) :ruleset load :name "load-self")',
    '(rule ((LC i s x k)) ((union (HS i) (C s)) (set (lo (C s)) x) (set (hi (C s)) x)) :ruleset load :name "load-constant")',
    '(rule ((LC i s x 1)) ((exact (C s))) :ruleset load :name "load-exact")',
    '(rule ((LIx i p n)) ((union (HS i) (Ix p n))) :ruleset load :name "load-index")',
    '(rule ((LOp1 i o a)) ((union (HS i) (Op1 o (HS a)))) :ruleset load :name "load-unary")',
    '(rule ((LOp2 i o a b)) ((union (HS i) (Op2 o (HS a) (HS b)))) :ruleset load :name "load-binary")',
    '(rule ((LOp3 i o a b c)) ((union (HS i) (Op3 o (HS a) (HS b) (HS c)))) :ruleset load :name "load-ternary")',
    '(rule ((LSel i c a b)) ((union (HS i) (Sel (HS c) (HS a) (HS b)))) :ruleset load :name "load-select")',
    '(rule ((LComp v h l s)) ((union (HT v) (Comp h (HL l) (HS s)))) :ruleset load :name "load-computation")',
    '(rule ((US a b)) ((union (HS a) (HS b))) :ruleset load :name "unite-scalars")',
    "(ruleset analysis)",
    '(rule ((= e (Ix p n))) ((exact e) (set (lo e) 0.0) (set (hi e) (to-f64 (- n 1)))) :ruleset analysis :name "index")',
    '(rule ((= e (Rd (More t l) m)) (= x (tlo t))) ((set (lo e) x)) :ruleset analysis :name "read-low")',
    '(rule ((= e (Rd (More t l) m)) (= x (thi t))) ((set (hi e) x)) :ruleset analysis :name "read-high")',
    '(rule ((= t (Comp h l s)) (plain h) (= x (lo s))) ((set (tlo t) x)) :ruleset analysis :name "write-low")',
    '(rule ((= t (Comp h l s)) (plain h) (= x (hi s))) ((set (thi t) x)) :ruleset analysis :name "write-high")',
    *(
        f'(rule ((= e (Op2 "{op}" a b)) (exact a) (exact b)) ((exact e)) :ruleset analysis :name "exact{op}")'
        for op in ("+", "-", "*", "%")
    ),
    '(rule ((= e (Op2 "+" a b)) (exact e) (= x (lo a)) (= y (lo b))) ((set (lo e) (+ x y))) :ruleset analysis :name "sum-low")',
    '(rule ((= e (Op2 "+" a b)) (exact e) (= x (hi a)) (= y (hi b))) ((set (hi e) (+ x y))) :ruleset analysis :name "sum-high")',
    '(rule ((= e (Op2 "-" a b)) (exact e) (= x (lo a)) (= y (hi b))) ((set (lo e) (- x y))) :ruleset analysis :name "less-low")',
    '(rule ((= e (Op2 "-" a b)) (exact e) (= x (hi a)) (= y (lo b))) ((set (hi e) (- x y))) :ruleset analysis :name "less-high")',
    _rule(
        "analysis",
        "product-high",
        '(= e (Op2 "*" a b)) (exact e) (= x (hi a)) (= y (hi b)) (>= (lo a) 0.0) (>= (lo b) 0.0)',
        "(set (hi e) (* x y))",
    ),
    _rule(
        "analysis",
        "remainder",
        '(= e (Op2 "%" a b)) (exact e) (= x (lo b)) (= x (hi b)) (> x 0.0)',
        "(set (lo e) 0.0) (set (hi e) (- x 1.0))",
    ),
    '(rule ((= e (Op2 "+" a b)) (= x (lo a)) (>= (lo b) 0.0)) ((set (lo e) x)) :ruleset analysis :name "sum-grows")',
    '(rule ((= e (Op2 "+" b a)) (= x (lo a)) (>= (lo b) 0.0)) ((set (lo e) x)) :ruleset analysis :name "sum-grows-left")',
    '(rule ((= e (Op2 "*" a b)) (>= (lo a) 0.0) (>= (lo b) 0.0)) ((set (lo e) 0.0)) :ruleset analysis :name "product-sign")',
    '(rule ((= e (Op2 "max" a b)) (= x (lo a))) ((set (lo e) x)) :ruleset analysis :name "max-left")',
    '(rule ((= e (Op2 "max" a b)) (= x (lo b))) ((set (lo e) x)) :ruleset analysis :name "max-right")',
    '(rule ((= e (Op2 "max" a b)) (= x (hi a)) (= y (hi b))) ((set (hi e) (max x y))) :ruleset analysis :name "max-high")',
    '(rule ((= e (Op2 "min" a b)) (= x (hi a))) ((set (hi e) x)) :ruleset analysis :name "min-left")',
    '(rule ((= e (Op2 "min" a b)) (= x (hi b))) ((set (hi e) x)) :ruleset analysis :name "min-right")',
    '(rule ((= e (Op2 "min" a b)) (= x (lo a)) (= y (lo b))) ((set (lo e) (min x y))) :ruleset analysis :name "min-low")',
    '(rule ((= e (Sel c a b)) (= x (lo a)) (= y (lo b))) ((set (lo e) (min x y))) :ruleset analysis :name "select-low")',
    '(rule ((= e (Sel c a b)) (= x (hi a)) (= y (hi b))) ((set (hi e) (max x y))) :ruleset analysis :name "select-high")',
    '(rule ((= e (Op1 "-" a)) (= x (hi a))) ((set (lo e) (- 0.0 x))) :ruleset analysis :name "minus-low")',
    '(rule ((= e (Op1 "-" a)) (= x (lo a))) ((set (hi e) (- 0.0 x))) :ruleset analysis :name "minus-high")',
    *(_rule("analysis", f"{fn}-low", f'(= e (Op1 "{fn}" a))', f"(set (lo e) {low}.0)") for fn, (low, _) in RANGES.items()),
    *(
        _rule("analysis", f"{fn}-high", f'(= e (Op1 "{fn}" a))', f"(set (hi e) {high}.0)")
        for fn, (_, high) in RANGES.items()
        if high is not None
    ),
    *(
        f'(rule ((= e (Op2 "{op}" a b)) (exact a) (exact b) ({test} ({first} a) ({second} b))) (({fact} e))'
        f' :ruleset analysis :name "{op}-{fact}")'
        for op, fact, test, first, second in (
            ("<", "istrue", "<", "hi", "lo"),
            ("<", "isfalse", ">=", "lo", "hi"),
            ("<=", "istrue", "<=", "hi", "lo"),
            ("<=", "isfalse", ">", "lo", "hi"),
            (">", "istrue", ">", "lo", "hi"),
            (">", "isfalse", "<=", "hi", "lo"),
            (">=", "istrue", ">=", "lo", "hi"),
            (">=", "isfalse", "<", "hi", "lo"),
        )
    ),
    '(rule ((= e (Op2 "&" a b)) (istrue a) (istrue b)) ((istrue e)) :ruleset analysis :name "and-true")',
    '(rule ((= e (Op2 "&" a b)) (isfalse a)) ((isfalse e)) :ruleset analysis :name "and-false-left")',
    '(rule ((= e (Op2 "&" a b)) (isfalse b)) ((isfalse e)) :ruleset analysis :name "and-false-right")',
    '(rule ((= e (Op2 "|" a b)) (isfalse a) (isfalse b)) ((isfalse e)) :ruleset analysis :name "or-false")',
    '(rule ((= e (Op2 "|" a b)) (istrue a)) ((istrue e)) :ruleset analysis :name "or-true-left")',
    '(rule ((= e (Op2 "|" a b)) (istrue b)) ((istrue e)) :ruleset analysis :name "or-true-right")',
    "(ruleset scalar)",
    *(
        _rule("scalar", f"chain {p} {q}", f'(= e (Op3 "{p} {q}" a b c))', f'(union e (Op2 "&" (Op2 "{p}" a b) (Op2 "{q}" b c)))')
        for p in ("<", "<=", ">", ">=")
        for q in ("<", "<=", ">", ">=")
    ),
    '(rule ((= e (Sel c a b)) (istrue c)) ((union e a)) :ruleset scalar :name "select-true")',
    '(rule ((= e (Sel c a b)) (isfalse c)) ((union e b)) :ruleset scalar :name "select-false")',
    '(rule ((= e (Sel c a a))) ((union e a)) :ruleset scalar :name "select-same")',
    '(rule ((= e (Op2 "max" a a))) ((union e a)) :ruleset scalar :name "max-same")',
    '(rule ((= e (Op2 "min" a a))) ((union e a)) :ruleset scalar :name "min-same")',
    '(rule ((= e (Op1 "-" (Op1 "-" a)))) ((union e a)) :ruleset scalar :name "minus-minus")',
    '(rule ((= e (Op1 "abs" a)) (>= (lo a) 0.0)) ((union e a)) :ruleset scalar :name "abs-of-positive")',
    '(rule ((= e (Op2 "max" a b)) (= y (lo b)) (= y (hi b)) (>= (lo a) y)) ((union e a)) :ruleset scalar :name "max-left-wins")',
    '(rule ((= e (Op2 "max" a b)) (= y (lo a)) (= y (hi a)) (>= (lo b) y)) ((union e b)) :ruleset scalar :name "max-right-wins")',
    '(rule ((= e (Op2 "min" a b)) (= y (lo b)) (= y (hi b)) (<= (hi a) y)) ((union e a)) :ruleset scalar :name "min-left-wins")',
    '(rule ((= e (Op2 "min" a b)) (= y (lo a)) (= y (hi a)) (<= (hi b) y)) ((union e b)) :ruleset scalar :name "min-right-wins")',
    *(
        _rule("scalar", f"{op}{same}", f'(= e (Op2 "{op}" a (C "{same}")))', "(union e a)")
        for op, constants in NEUTRAL.items()
        for same in constants
    ),
)
