"""The process behind `llm.search.guard`: reads texts, answers with verdicts, and ends with its input."""

from __future__ import annotations

import json
import resource
import sys
from typing import TextIO

from leir.files import from_json
from llm.search.text import Unsound, examine

MEMORY_BYTES = 4 * 1024**3
DETAIL = 2000


def serve(source: TextIO, sink: TextIO) -> None:
    """The first line is the original program and the target, every other one a text."""
    setup = json.loads(source.readline())
    signature = from_json(setup["program"]).signature
    _say(sink, {"ready": True})
    for line in source:
        found = examine(json.loads(line)["text"], signature, setup["target"])
        if isinstance(found, Unsound):
            _say(sink, {"verdict": found.verdict, "detail": found.detail[:DETAIL]})
        else:
            _say(sink, {"verdict": None, "detail": ""})


def _say(sink: TextIO, message: dict[str, object]) -> None:
    sink.write(json.dumps(message) + "\n")
    sink.flush()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    serve(sys.stdin, sys.stdout)
