"""A step is plain data: JSON and text both ways, hashable, and a reader that says what is wrong."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from rewrite.step import BadStep, Site, Step, step_from_json, step_from_text

names = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=12)
small = st.integers(-5, 2000)
values = st.one_of(small, names, st.lists(small, max_size=4).map(tuple), st.lists(names, min_size=1, max_size=3).map(tuple))
paths = st.lists(st.integers(0, 30), max_size=4).map(tuple)
steps = st.builds(
    Step,
    names,
    st.builds(Site, paths.filter(bool), st.none() | paths),
    st.dictionaries(names, values, max_size=3).map(lambda d: tuple(d.items())),
)


@given(steps)
def test_json_both_ways(step: Step) -> None:
    again = step_from_json(json.loads(json.dumps(step.to_json())))
    assert again == step
    assert hash(again) == hash(step)


@given(steps)
def test_text_both_ways(step: Step) -> None:
    assert step_from_text(str(step)) == step


def test_text_reads_well() -> None:
    assert str(Step("loop_split", Site((0,)), (("loop", 1), ("factor", 4)))) == "loop_split 0 loop=1 factor=4"
    assert str(Step("factorization", Site((0, 2), ()), (("at", ()), ("terms", (0, 1))))) == "factorization 0.2: at=, terms=0,1"
    assert str(Step("loop_reorder", Site((1, 0)), (("order", (1, 0)),))) == "loop_reorder 1.0 order=1,0"


GOOD = Step("loop_split", Site((0,)), (("loop", 1), ("factor", 4))).to_json()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({**GOOD, "step_version": 2}, "format version is 2, and this LEIR reads version 1"),
        ({k: v for k, v in GOOD.items() if k != "step_version"}, "format version is None"),
        ({**GOOD, "note": ""}, "a step has the keys"),
        ({**GOOD, "strategy": 3}, '"strategy" is no string'),
        ({**GOOD, "site": [0]}, '"site" is an object'),
        ({**GOOD, "site": {"path": [], "scalar": None}}, '"path" is a list'),
        ({**GOOD, "site": {"path": [True], "scalar": None}}, '"path" is a list'),
        ({**GOOD, "args": []}, '"args" is no object'),
        ({**GOOD, "args": {"factor": 1.5}}, "argument factor"),
        ({**GOOD, "args": {"order": [0, "a"]}}, "argument order"),
        ([], "a step is an object"),
    ],
)
def test_bad_json_is_named(changed: Any, message: str) -> None:
    with pytest.raises(BadStep, match=message):
        step_from_json(changed)


@pytest.mark.parametrize(
    "text", ["", "loop_split", "loop_split x loop=0", "loop_split 0 loop", "loop_split 0 loop=", "loop_split 0.a:1"]
)
def test_bad_text_is_named(text: str) -> None:
    with pytest.raises(BadStep):
        step_from_text(text)
