"""The declarations of the e-graph (facts-egglog.md, g), fed to egglog line by line.

Sorts: S a scalar expression, T a tensor value, K a kernel, Ts a list of values. Templates, access maps and heads of computations
are numbers of tables that Python keeps. HT, HL, HK and HS are handles: the class of the term that Python knows by that number.
Data come in as rows of the L relations, and unions as rows of UT and US; the ruleset `load` turns both into terms.
"""

from __future__ import annotations

GRAPH = (
    "(sort S)",
    "(sort T)",
    "(sort K)",
    "(sort Ts)",
    "(constructor Arg (i64) T)",
    "(constructor None () Ts)",
    "(constructor More (T Ts) Ts)",
    "(constructor Kern (i64 Ts) K)",
    "(constructor Out (K i64) T)",
    "(constructor HT (i64) T :unextractable)",
    "(constructor HL (i64) Ts :unextractable)",
    "(constructor HK (i64) K :unextractable)",
    "(constructor HS (i64) S :unextractable)",
    "(ruleset load)",
    "(relation LArg (i64 i64))",
    "(relation LNone (i64))",
    "(relation LMore (i64 i64 i64))",
    "(relation LKern (i64 i64 i64))",
    "(relation LOut (i64 i64 i64))",
    "(relation UT (i64 i64))",
    '(rule ((LArg i a)) ((union (HT i) (Arg a))) :ruleset load :name "load-arg")',
    '(rule ((LNone i)) ((union (HL i) (None))) :ruleset load :name "load-none")',
    '(rule ((LMore i t l)) ((union (HL i) (More (HT t) (HL l)))) :ruleset load :name "load-more")',
    '(rule ((LKern i k l)) ((union (HK i) (Kern k (HL l)))) :ruleset load :name "load-kernel")',
    '(rule ((LOut i k n)) ((union (HT i) (Out (HK k) n))) :ruleset load :name "load-out")',
    '(rule ((UT a b)) ((union (HT a) (HT b))) :ruleset load :name "unite-tensors")',
)
