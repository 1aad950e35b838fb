"""Every strategy's docstring says what it does with a before and an after; the step in it makes one of the other."""

from __future__ import annotations

import pytest

from leir.printer import print_program
from rules.catalogue import STRATEGIES
from rules.documentation import documentation
from rules.strategy import Strategy
from tests.test_rewrite.checked import applied, assert_sound, program


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if s.implemented], ids=lambda s: s.name)
def test_the_step_of_the_docstring_turns_before_into_after(strategy: Strategy) -> None:
    assert strategy.propose is not None
    example = documentation(strategy.propose)
    before, after = program(example.before), program(example.after)
    assert_sound(before)
    made = applied(before, example.step)
    assert made.step.strategy == strategy.name
    assert print_program(made.program) == print_program(after)
    assert made.program == after
    assert len(example.remarks) >= 2


def test_a_docstring_without_its_blocks_is_an_error() -> None:
    def propose() -> None:
        """One sentence.

        before::

            [A^{f32,g}=1;];
        """

    with pytest.raises(ValueError, match="no block step and no block after"):
        documentation(propose)
