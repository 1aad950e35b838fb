"""Parse, print, lift and key rates on the 60 programs of the reference sample."""

from __future__ import annotations

from benchmarks.measure import Row, seconds
from benchmarks.programs import reference_programs, reference_records
from leir.ir import Nest, Program
from leir.key import key
from leir.lift import flatten, flatten_program, lift
from leir.parser import parse_nests
from leir.printer import print_nests


def rows() -> list[Row]:
    texts = [str(record["leir"]) for record in reference_records()]
    flats = [parse_nests(text).nests for text in texts]
    size = sum(map(len, texts))
    programs = reference_programs()
    count = len(texts)
    parse = seconds(lambda: [parse_nests(text) for text in texts])
    printing = seconds(lambda: [print_nests(flat) for flat in flats])
    lifting = seconds(lambda: _lift_cold(flats))
    keys = seconds(lambda: _key_cold(programs))
    return [
        Row("parse", count / parse, "programs/s", f"{size / parse / 1e6:.2f} MB/s, {size / count:.0f} characters each"),
        Row("print", count / printing, "programs/s", f"{size / printing / 1e6:.2f} MB/s"),
        Row("lift to normal form, nothing cached", count / lifting, "programs/s"),
        Row("key, nothing cached", count / keys, "programs/s"),
        Row(
            "key, nests cached",
            count / seconds(lambda: [key(p) for p in programs]),
            "programs/s",
            "as for a neighbour",
        ),
    ]


def _lift_cold(flats: list[tuple[Nest, ...]]) -> None:
    lift.cache_clear()
    for flat in flats:
        for nest in flat:
            lift(nest)


def _key_cold(programs: list[Program]) -> None:
    from leir import key as module

    module._nest_template.cache_clear()
    flatten.cache_clear()
    for program in programs:
        flatten_program(program)
        key(program)
