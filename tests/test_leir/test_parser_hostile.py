"""Text made to exhaust time, memory or the stack is refused at once, with a place."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from itertools import islice

import pytest

from leir.names import index_names
from leir.parser import LeirSyntaxError, parse_nests
from leir.printer import print_nests
from leir.syntax.prescan import MAX_BRACKETS, MAX_CHARACTERS, MAX_DEPTH, MAX_NESTS, prescan

MILLION = 1_000_000
HEAD = "[D^{f32,g}="
HOSTILE = {
    "opening square brackets": ("[" * MILLION, "nested more than"),
    "opening parentheses": (HEAD + "(" * MILLION, "brackets are nested more than"),
    "opening braces": ("{" * MILLION, "brackets are nested more than"),
    "closing brackets": ("]" * MILLION, "closes nothing"),
    "pairs of brackets": ("[]" * 500_000, "more than 65536 characters"),
    "matched parentheses": (HEAD + "(" * 500_000 + ")" * 500_000, "brackets are nested more than"),
    "one long sum": (HEAD + "1+" * MILLION + "1;];", "more than 65536 characters"),
    "one long power": (HEAD + "2**" * 20_000 + "1;];", "more than 128 operations"),
    "one long subscript": ("[D^{f32,g}_{" + "1+" * 30_000 + "1}=1;];", "more than 128 operations"),
    "many minuses": (HEAD + "-" * 60_000 + "1;];", "more than 128 operations"),
    "many blanks": (HEAD + " " * MILLION, "is never closed"),
    "a long number": (HEAD + "9" * MILLION + ";];", "more than 40 digits"),
    "a number of 10^18 digits, as far as it goes": ("L^{" + "1" * (MAX_CHARACTERS - 3), "more than 40 digits"),
    "a long point number": (HEAD + "0." + "0" * MILLION + ";];", "more than 40 digits"),
    "a long exponent": (HEAD + "1e" + "9" * MILLION + ";];", "more than 40 digits"),
    "a long name": (HEAD + "a" * 60_000 + ";];", "no loop has the index"),
    "a long tensor name": ("[D" + "a" * 60_000 + "^{f32,g}=1;];", "the limit is 32"),
    "a long function name": (HEAD + "a" * 60_000 + "(1);];", "is no function"),
    "a long dtype": ("[D^{" + "f" * 60_000 + ",g}=1;];", "is no dtype"),
    "ten megabytes": ("[];" * 3_500_000, "the limit is 4194304"),
    "many loops": ("".join(f"L^{{2}}_{{{name}=0}}" for name in islice(index_names(), 2000)) + "[];", "more than 64 loops"),
    "NUL": ("\0" * 60_000, "unexpected `\\x00`"),
    "astral characters": ("\U0001f600" * 60_000, "unexpected"),
    "a lone surrogate": (HEAD + "\ud800;];", "unexpected `\\ud800`"),
    "bidirectional overrides": (HEAD + "1\u202e;];", "unexpected `\\u202e`"),
}


@pytest.fixture
def _own_garbage_only() -> Iterator[None]:
    """What earlier tests left in memory must not slow the collector down here."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_own_garbage_only")
@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_text_is_refused_in_well_under_a_second(what: str) -> None:
    text, message = HOSTILE[what]
    start = time.process_time()
    with pytest.raises(LeirSyntaxError) as caught:
        parse_nests(text)
    assert time.process_time() - start < 1.0
    assert message in str(caught.value)
    assert len(str(caught.value)) < 500
    str(caught.value).encode("ascii" if "astral" not in what else "utf-8")


def test_just_within_the_limits() -> None:
    deep = "L^{1}_{a=0}" + "[" * MAX_NESTS + "D^{f32,g}=" + "-" * (MAX_DEPTH - 1) + "a;" + "];" * MAX_NESTS
    assert print_nests(parse_nests(deep).nests) == deep
    wide = HEAD + "1+" * (MAX_DEPTH - 1) + "1;];"
    assert print_nests(parse_nests(wide).nests) == wide
    prescan("(" * MAX_BRACKETS + ")" * MAX_BRACKETS)
    for beyond in (deep.replace("-a", "--a"), "[" + deep + "];", HEAD + "1+" * MAX_DEPTH + "1;];"):
        with pytest.raises(LeirSyntaxError):
            parse_nests(beyond)


def test_parentheses_alone_cost_no_depth() -> None:
    (nest,) = parse_nests(HEAD + "(" * (MAX_BRACKETS - 1) + "1" + ")" * (MAX_BRACKETS - 1) + ";];").nests
    assert print_nests([nest]) == HEAD + "1;];"


def test_parsing_is_linear() -> None:
    """Twenty times the text takes less than eighty times the time."""
    text = "L^{4}_{a=0}[D^{f32,g}_{a}=max(A^{f32,g}_{a},0)+1;];"

    def seconds(copies: int) -> float:
        start = time.process_time()
        parse_nests(text * copies)
        return time.process_time() - start

    seconds(1)
    assert seconds(2000) < 80 * max(seconds(100) for _ in range(3))
