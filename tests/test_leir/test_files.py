"""Programs on disk: nothing is lost, and every fault is named with its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leir.files import FORMAT_VERSION, FileFormatError, from_json, load, load_text, save, to_json, to_leir
from leir.ir import DTYPES, INT_DTYPES, ROLES, Known, Program, Signature
from leir.parser import LeirSyntaxError, parse

DATA = Path(__file__).parents[1] / "data"
LEIR = """# leir 1 gather rows
# A f32[8,4] input
# I i64[5] input range[0,7]
# D f32[5,4] output
L^{5}_{a=0}L^{4}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{I^{i64,g}_{a},c};];
"""


def program() -> Program:
    return load_text(LEIR, "gather.leir")


def obj(**changes: Any) -> dict[str, Any]:
    return {**to_json(program()), **changes}


def tensor(**changes: Any) -> dict[str, Any]:
    """The program with its second tensor changed."""
    entries = to_json(program())["tensors"]
    entries[1] = {key: value for key, value in {**entries[1], **changes}.items() if value != "absent"}
    return obj(tensors=entries)


def test_leir_and_json_say_the_same() -> None:
    assert to_leir(program()) == LEIR
    assert to_json(program()) == {
        "leir_version": 1,
        "name": "gather rows",
        "leir": LEIR.splitlines()[-1],
        "tensors": [
            {"name": "A", "dtype": "f32", "shape": [8, 4], "role": "input"},
            {"name": "I", "dtype": "i64", "shape": [5], "role": "input", "range": [0, 7]},
            {"name": "D", "dtype": "f32", "shape": [5, 4], "role": "output"},
        ],
    }
    assert from_json(to_json(program())) == program()


@pytest.mark.parametrize("suffix", [".leir", ".json"])
def test_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"p{suffix}"
    save(program(), path)
    assert load(path) == load(str(path)) == program()
    assert b"\r" not in path.read_bytes()


def test_both_spellings_of_a_dtype_are_read_and_one_is_written() -> None:
    assert from_json(tensor(dtype="int64")) == program()
    assert load_text(LEIR.replace("A f32", "A float32"), "gather.leir") == program()


def test_headers_are_lenient_about_blanks_and_line_ends() -> None:
    text = LEIR.replace("# A f32[8,4] input\n", "#A  f32 [ 8 , 4 ]  input \n\n").replace("\n", "\r\n")
    assert load_text("\n" + text, "gather.leir") == program()


names = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=12), st.sampled_from(["", " ", '"', '"a"', "a  b", " a", "a\n", "#"])
)


@st.composite
def known(draw: st.DrawFn, name: str) -> Known:
    dtype = draw(st.sampled_from(DTYPES))
    bounds = draw(st.none() | st.tuples(st.integers(-9, 2**40), st.integers(0, 9))) if dtype in INT_DTYPES else None
    shape = tuple(draw(st.lists(st.integers(1, 2**31 - 1), max_size=4)))
    return Known(name, dtype, shape, draw(st.sampled_from(ROLES)), None if bounds is None else (bounds[0], sum(bounds)))


signatures = st.builds(
    Signature,
    names,
    st.lists(st.sampled_from(["A", "Ac", "Cem", "Tx"]), unique=True).flatmap(lambda some: st.tuples(*map(known, some))),
)


@settings(max_examples=300)
@given(signatures)
def test_no_signature_is_lost(signature: Signature) -> None:
    before = parse("L^{2}_{a=0}[D^{f32,g}_{a}=1.50;];", signature)
    assert load_text(to_leir(before), "p.leir") == before
    assert load_text(json.dumps(to_json(before)), "p.json") == before


def test_the_reference_programs_are_not_lost() -> None:
    for line in (DATA / "reference_leir_sample.jsonl").read_text().splitlines():
        entry = json.loads(line)
        del entry["group"]
        before = from_json({"leir_version": FORMAT_VERSION, **entry})
        assert to_json(before)["leir"] == entry["leir"]
        assert load_text(to_leir(before), "p.leir") == before


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "the program is a list, not an object"),
        (None, "the program is null, not an object"),
        ({}, 'the program has no "leir_version", "name", "leir", "tensors"'),
        (obj(leir_version=2), "the format version is 2, and this LEIR reads version 1"),
        ({"leir_version": 7}, "the format version is 7, and this LEIR reads version 1"),
        (obj(leir_version="1"), "the format version is '1', and this LEIR reads version 1"),
        (obj(leir_version=True), "the format version is True, and this LEIR reads version 1"),
        (obj(name=3), '"name" is a number, not a string'),
        (obj(leir=["x"]), '"leir" is a list, not a string'),
        (obj(tensors={}), '"tensors" is an object, not a list'),
        (obj(tensors=[1]), "tensor 0 is a number, not an object"),
        (obj(group="x"), 'the program has the unknown key "group"; known are leir_version, name, leir, tensors'),
        (tensor(color="x"), 'tensor 1 has the unknown key "color"; known are name, dtype, shape, role, range'),
        (tensor(role="absent"), 'tensor 1 has no "role"'),
        (tensor(name=5), "tensor 1: the name is a number, not a string"),
        (tensor(name="A"), "the tensor A is declared twice"),
        (tensor(name="P"), "tensor 1 (P): P is a reserved letter (L P V U B T) and names no tensor"),
        (tensor(dtype="u8"), "tensor 1 (I): 'u8' is no dtype; known are f16, bf16, f32, f64, i8, i32, i64, bool, float16"),
        (tensor(dtype=["f32"]), "tensor 1 (I): ['f32'] is no dtype"),
        (tensor(shape=5), "tensor 1 (I): the shape 5 is no list of integers"),
        (tensor(shape=[5.0]), "tensor 1 (I): the shape [5.0] is no list of integers"),
        (tensor(shape=[True]), "tensor 1 (I): the shape [True] is no list of integers"),
        (tensor(shape=[0]), "tensor 1 (I): the shape [0] has an extent that is not in 1..2147483647"),
        (tensor(shape=[1] * 40), "tensor 1 (I): 40 dimensions, and the limit is 32"),
        (tensor(role="weight"), "tensor 1 (I): 'weight' is no role; known are input, param, constant, output"),
        (tensor(range=[1]), "tensor 1 (I): the range [1] is no pair of integers"),
        (tensor(range=[3, 2]), "tensor 1 (I): the range [3, 2] holds no value"),
        (tensor(dtype="f32"), "tensor 1 (I): a range belongs to an integer tensor, and this one is f32"),
    ],
)
def test_faults_of_an_object(bad: object, message: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        from_json(bad, "p.json")
    assert str(caught.value).startswith(f"p.json: {message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "p.leir:1:1: the first line is no `# leir 1 NAME`"),
        ("L^{4}_{a=0}[];", "p.leir:1:1: the first line is no `# leir 1 NAME`"),
        ("[];\n# leir 1 x", "p.leir:1:1: the first line is no `# leir 1 NAME`"),
        ("# A f32[4] input", "p.leir:1:1: the first line is no `# leir 1 NAME`"),
        ("# leir 2 x\n! whatever", "p.leir:1:1: the format version is 2, and this LEIR reads version 1"),
        ("# leir one x", "p.leir:1:1: the format version is 'one', and this LEIR reads version 1"),
        ('# leir 1 "x', 'p.leir:1:1: the name "x is no JSON string'),
        ("# leir 1 x\n# hello", "p.leir:2:1: '# hello' is no tensor line"),
        ("# leir 1 x\n# A f32[4,N] input", "p.leir:2:1: 'N' is no integer"),
        ("# leir 1 x\n# A f32[4,] input", "p.leir:2:1: '' is no integer"),
        ("# leir 1 x\n# A f32[-4] input", "p.leir:2:1: tensor A: the shape [-4] has an extent"),
        ("# leir 1 x\n\n# A f8[4] input", "p.leir:3:1: tensor A: 'f8' is no dtype"),
        ("# leir 1 x\n# A f32[4] weight", "p.leir:2:1: tensor A: 'weight' is no role"),
        ("# leir 1 x\n# A i32[4] input range[1]", "p.leir:2:1: tensor A: the range [1] is no pair of integers"),
        ("# leir 1 x\n# A f32[4] input\n# A f32[4] input", "p.leir:3:1: the tensor A is declared twice"),
    ],
)
def test_faults_of_a_header(text: str, message: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        load_text(text, "p.leir")
    assert str(caught.value).startswith(message)


def test_faults_of_the_text_have_the_place_in_the_file() -> None:
    with pytest.raises(LeirSyntaxError) as caught:
        load_text(LEIR.replace("I^{i64,g}_{a}", "q"), "dir/gather.leir")
    assert str(caught.value).startswith("dir/gather.leir:5:51: no loop has the index `q`: the loops around it are a, c")
    with pytest.raises(LeirSyntaxError) as caught:
        load_text(LEIR + "# Z f32[1] input", "gather.leir")
    assert str(caught.value).startswith("gather.leir:6:1: a comment line stands only above the text")
    with pytest.raises(LeirSyntaxError) as caught:
        from_json(obj(leir="[];\n]"), "p.json")
    assert str(caught.value).startswith("p.json#leir:2:1: `]` closes nothing")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "p.json:1:2: not JSON: Expecting property name enclosed in double quotes"),
        (b"\xff", "p.json: not UTF-8 at byte 0"),
        (b'{"name": 1, "name": 2}', 'p.json: the key "name" occurs twice in one object'),
        (b"[" * 100_000, "p.json: not a program: nested too deep"),
        (b"9" * 10_000, "p.json: not JSON that can be read: Exceeds the limit"),
        (b" " * 9_000_000, "p.json: the file is larger than 8388608 bytes"),
    ],
)
def test_faults_of_a_file(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(data)
    with pytest.raises(FileFormatError) as caught:
        load(path)
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(message)


def test_a_suffix_that_is_no_format(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"the suffix '.txt' is none of .leir and .json"):
        load_text(LEIR, "p.txt")
    with pytest.raises(FileFormatError, match=r"the suffix '' is none of .leir and .json"):
        save(program(), tmp_path / "p")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.leir")
