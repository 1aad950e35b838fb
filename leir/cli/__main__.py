"""``python -m leir.cli``: the command ``leir`` where its console script is not on PATH."""

from __future__ import annotations

from leir.cli.app import main

main()
