"""The command line: one module per group of commands, and `leir.cli.app` that puts them together.

This package alone may import every other one, and only inside functions: `leir --help` loads nothing but typer.
"""
