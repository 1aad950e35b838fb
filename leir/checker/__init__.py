"""The parts of the checker (`leir.check` runs them): each looks at one thing, on facts gathered once."""
