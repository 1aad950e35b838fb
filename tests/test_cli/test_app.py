"""What holds for every command."""

from __future__ import annotations

import pytest

from leir.cli.app import COMMANDS
from tests.test_cli.running import Leir

NAMES = [name for name, _ in COMMANDS]


def test_the_help_lists_every_command_with_a_whole_sentence(leir: Leir) -> None:
    outcome = leir("--help")
    listed = [line.split(maxsplit=1) for line in outcome.out.partition("Commands:")[2].splitlines() if line.startswith("  ")]
    assert [line[0] for line in listed[: len(NAMES)]] == NAMES
    assert all(line[1].endswith(".") and "..." not in line[1] for line in listed[: len(NAMES)])


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_json_and_an_example(name: str, leir: Leir) -> None:
    outcome = leir(name, "--help")
    assert outcome.code == 0
    assert "--json" in outcome.out
    assert f"leir {name}" in outcome.out.partition("Example")[2]


def test_an_unknown_command_is_bad_usage(leir: Leir) -> None:
    outcome = leir("shwo")
    assert outcome.code == 2
    assert "No such command 'shwo'" in outcome.err
    assert outcome.out == ""


def test_the_version(leir: Leir) -> None:
    assert leir("--version").out.startswith("leir 0.")
