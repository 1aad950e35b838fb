"""A step as plain data: which strategy, where, with which arguments. Reads and writes itself as JSON and as one line of text.

    {"step_version": 1, "strategy": "loop_split", "site": {"path": [0], "scalar": null}, "args": {"loop": 0, "factor": 4}}
    loop_split 0 loop=0 factor=4

In text a site is the item path joined by points, and for a scalar expression a colon and its path: ``1.0:0.1`` (``1.0:`` is the
whole right-hand side). A list is written with commas, one of fewer than two entries with a comma behind: ``order=0,2,1``, ``at=,``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from rules.strategy import Argument, Arguments

STEP_VERSION = 1


class BadStep(ValueError):
    """A step that cannot be read, or that names a strategy, a site or arguments that do not exist. User input, so an exception."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a program: the expression's number, then item numbers. ``scalar`` leads from an equation's right-hand side to a
    subexpression, by child positions; None where the site is a nest."""

    path: tuple[int, ...]
    scalar: tuple[int, ...] | None = None

    def __str__(self) -> str:
        path = ".".join(map(str, self.path))
        return path if self.scalar is None else f"{path}:{'.'.join(map(str, self.scalar))}"


@dataclass(frozen=True, slots=True)
class Step:
    """One application of a strategy. Hashable, and equal when it says the same."""

    strategy: str
    site: Site
    args: Arguments

    def __str__(self) -> str:
        return " ".join((self.strategy, str(self.site), *(f"{name}={_argument_text(value)}" for name, value in self.args)))

    def to_json(self) -> dict[str, Any]:
        """The step as a JSON object; `step_from_json` is the inverse."""
        scalar = None if self.site.scalar is None else list(self.site.scalar)
        return {
            "step_version": STEP_VERSION,
            "strategy": self.strategy,
            "site": {"path": list(self.site.path), "scalar": scalar},
            "args": {name: list(value) if isinstance(value, tuple) else value for name, value in self.args},
        }


def step_from_json(obj: object) -> Step:
    """The step in a JSON object. Raises BadStep, which names the version if that is what is wrong."""
    if not isinstance(obj, dict):
        raise BadStep(f"a step is an object, not {type(obj).__name__}")
    version = obj.get("step_version")
    if type(version) is not int or version != STEP_VERSION:
        raise BadStep(f"the step's format version is {version!r}, and this LEIR reads version {STEP_VERSION}")
    expected = {"step_version", "strategy", "site", "args"}
    if set(obj) != expected:
        raise BadStep(f"a step has the keys {', '.join(sorted(expected))}, not {', '.join(sorted(map(str, obj)))}")
    strategy, site, args = obj["strategy"], obj["site"], obj["args"]
    if not isinstance(strategy, str):
        raise BadStep('"strategy" is no string')
    if not isinstance(site, dict) or set(site) != {"path", "scalar"}:
        raise BadStep('"site" is an object with the keys path, scalar')
    path, scalar = site["path"], site["scalar"]
    if not _is_integers(path) or not path or not (scalar is None or _is_integers(scalar)):
        raise BadStep('"path" is a list of integers with at least one entry, "scalar" a list of integers or null')
    if not isinstance(args, dict):
        raise BadStep('"args" is no object')
    pairs = tuple((str(name), _argument(name, value)) for name, value in args.items())
    return Step(strategy, Site(tuple(path), None if scalar is None else tuple(scalar)), pairs)


def _is_integers(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(x) is int and x >= 0 for x in value)


def _argument(name: str, value: object) -> Argument:
    if type(value) is int or isinstance(value, str):
        return value
    if isinstance(value, list):
        if all(type(x) is int for x in value):
            return tuple(value)
        if all(isinstance(x, str) for x in value):
            return tuple(value)
    raise BadStep(f"the argument {name} is no integer, string, or list of one of them")


# ------------------------------------------------------------------------------------------------------------------------ text


def step_from_text(text: str) -> Step:
    """The step in one line, as `str` writes it. Raises BadStep."""
    words = text.split()
    if len(words) < 2:
        raise BadStep(f"{text!r} is no step: a strategy, a site and arguments, as in `loop_split 0 loop=0 factor=4`")
    strategy, site, *given = words
    return Step(strategy, _site_from_text(site), tuple(_argument_from_text(word) for word in given))


def _site_from_text(text: str) -> Site:
    path, colon, scalar = text.partition(":")
    return Site(_numbers(path, text), _numbers(scalar, text) if colon else None) if path else _no_site(text)


def _numbers(text: str, whole: str) -> tuple[int, ...]:
    parts = text.split(".") if text else []
    if not all(part.isascii() and part.isdigit() for part in parts):
        _no_site(whole)
    return tuple(map(int, parts))


def _no_site(text: str) -> Site:
    raise BadStep(
        f"{text!r} is no site: item numbers joined by points, as in 0.1, and for a scalar expression a colon and its path"
    )


def _argument_from_text(word: str) -> tuple[str, Argument]:
    name, equals, text = word.partition("=")
    if not equals or not name or not text:
        raise BadStep(f"{word!r} is no argument: name=value")
    if "," not in text:
        return name, _scalar_argument(text)
    parts = [part for part in text.split(",") if part]
    values = [_scalar_argument(part) for part in parts]
    return name, _argument(name, values)


def _scalar_argument(text: str) -> int | str:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() else text


def _argument_text(value: Argument) -> str:
    if not isinstance(value, tuple):
        return str(value)
    items: Sequence[object] = value
    return ",".join(map(str, items)) + ("," if len(items) < 2 else "")
