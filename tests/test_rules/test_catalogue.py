"""The catalogue is strategies.md: 43 names in order, the paper's preconditions and difficulty classes."""

from __future__ import annotations

from rules.catalogue import EXCEPTIONS, PRECONDITIONS, STRATEGIES, find
from rules.documentation import documentation
from rules.strategy import difficulty_of

# name, K, class; from strategies.md
GRAPH = """
operator_fusion 2,4 medium
operator_fission 2,5 easy
compute_inline 2,4 medium
expression_splitting - medium
tensor_concat_to_fuse_operators 2,3 difficult
tensor_split_to_decouple_operators - difficult
common_subexpression_elimination 3,4 difficult
expression_reorder 2 medium
"""
OPERATOR = """
loop_reorder 6 medium
loop_tiling 6,7 difficult
loop_split 7 difficult
loop_fusion 6,8 difficult
loop_unrolling - medium
loop_parallelization 8 medium
loop_vectorization 8 medium
loop_binding 8 medium
reduction_factorization 8 difficult
"""
MEMORY = """
cache_read_write - difficult
layout_transformation - difficult
set_storage_scope 9 difficult
set_storage_layout 9 difficult
precompute_indices 1 difficult
"""
MATHEMATICS = """
factorization 1 easy
expand_factorization 1 easy
cancellation 1 easy
expand_cancellation 1 easy
apart 1 easy
together 1 easy
powsimp 1 easy
expand_powsimp 1 easy
logsimp 1 easy
expand_log 1 easy
collect 1 easy
expand_collect 1 easy
partially_equivalent_then_correct - difficult
exponential_split 1 medium
multiplicative_split - medium
additive_split - medium
normal_loop_max_to_prefix_max 1 difficult
normal_loop_summation_on_exp_to_prefix_summation_on_exp 1 difficult
online_softmax 1 difficult
flashattention_wo_tiling 1 difficult
normal_matmul_to_prefix_matmul_based_on_online_softmax 1 difficult
"""
PAGE = [
    (level, *line.split())
    for level, table in (("graph", GRAPH), ("operator", OPERATOR), ("memory", MEMORY), ("mathematics", MATHEMATICS))
    for line in table.strip().split("\n")
]


def test_the_43_strategies_in_the_order_of_the_page() -> None:
    assert len(STRATEGIES) == 43
    kept = [(s.level, s.name, ",".join(map(str, s.preconditions)) or "-", s.difficulty) for s in STRATEGIES]
    assert kept == PAGE


def test_the_score_gives_the_class_of_the_paper_except_where_listed() -> None:
    differing = {s.name: s.difficulty for s in STRATEGIES if difficulty_of(s.score) != s.difficulty}
    assert differing == dict(EXCEPTIONS)


def test_p_and_s_count_kinds() -> None:
    assert all(1 <= s.modifies <= 6 and 0 <= s.introduces <= 3 for s in STRATEGIES)
    assert {k for s in STRATEGIES for k in s.preconditions} == set(PRECONDITIONS)


def test_an_implemented_strategy_has_everything_and_a_described_one_nothing() -> None:
    for s in STRATEGIES:
        assert (s.propose is None) == (s.parameters is None) == (s.unit is None)
        if s.propose is not None:
            assert documentation(s.propose).sentence.endswith(".")
        assert s.summary[0].islower()
        assert not s.summary.endswith(".")
    ready = [s.name for s in STRATEGIES if s.implemented]
    assert ready == [
        "operator_fusion",
        "operator_fission",
        "compute_inline",
        "expression_reorder",
        "loop_reorder",
        "loop_tiling",
        "loop_split",
        "loop_fusion",
        "loop_unrolling",
        "loop_parallelization",
        "loop_vectorization",
        "loop_binding",
        "reduction_factorization",
        "factorization",
        "expand_factorization",
        "powsimp",
        "online_softmax",
    ]


def test_find() -> None:
    assert [find(s.name) for s in STRATEGIES] == list(STRATEGIES)
    assert find("loop splitting") is None
