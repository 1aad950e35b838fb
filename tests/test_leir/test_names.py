"""Names of tensors and indices, and the order of fresh ones."""

from __future__ import annotations

from itertools import islice

import pytest

from leir.ir import CALL_ARITY, GPU_AXES
from leir.names import (
    fresh_bound_index,
    fresh_index,
    fresh_tensor,
    index_name_problem,
    index_names,
    tensor_name_problem,
    tensor_names,
)


def test_fresh_names_are_legal_and_distinct() -> None:
    tensors = list(islice(tensor_names(), 2000))
    assert len(set(tensors)) == 2000
    assert not any(map(tensor_name_problem, tensors))
    taken: set[str] = set()
    for _ in range(500):
        name = fresh_index(taken)
        assert index_name_problem(name, False) is None
        taken.add(name)
    assert len(taken) == 500


def test_the_order_of_fresh_names() -> None:
    assert " ".join(islice(index_names(), 20)) == "a c d f g h i j k l m n o p q r s u w aa"
    assert " ".join(islice(tensor_names(), 22)) == "A C D E F G H I J K M N O Q R S W X Y Z Aa Ac"
    assert fresh_index({"a", "c"}) == "d"
    assert fresh_tensor({"A", "D"}) == "C"
    assert fresh_bound_index("tx", set()) == "tx"
    assert fresh_bound_index("tx", {"tx", "txa"}) == "txc"


@pytest.mark.parametrize("axis", GPU_AXES)
def test_bound_indices(axis: str) -> None:
    assert index_name_problem(axis, True) is None
    assert index_name_problem(axis + "fe", True) is None
    assert index_name_problem(axis, False) is not None
    assert index_name_problem(axis + "t", True) is not None


@pytest.mark.parametrize("name", ["e", "v", "inf", *CALL_ARITY, "", "A", "a1", "a_", "b", "at", "tw", "b" * 40, "é"])
def test_names_that_no_index_has(name: str) -> None:
    assert index_name_problem(name, False) is not None


@pytest.mark.parametrize("name", [*"LPVUBT", "", "a", "AB", "A1", "A_", "É", "Aé", "A" + "a" * 40])
def test_names_that_no_tensor_has(name: str) -> None:
    assert tensor_name_problem(name) is not None


@pytest.mark.parametrize("name", ["La", "Tx", "Cem", "A", "Z"])
def test_names_of_tensors(name: str) -> None:
    assert tensor_name_problem(name) is None
