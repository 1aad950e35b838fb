"""Programs on disk (leir.md, section 2): `.leir` text with a signature in comment lines, and JSON. Neither form loses anything.

    # leir 1 matmul
    # A f32[64,128] input
    # I i64[4] input range[0,9]
    # C f32[64] output
    L^{64}_{a=0}[...];

Both carry `FORMAT_VERSION`; another version is refused by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, cast

from leir.ir import DTYPES, INT_DTYPES, ROLES, Known, Program, Role, Signature
from leir.names import tensor_name_problem
from leir.parser import MAX_EXTENT, MAX_INT, parse
from leir.printer import print_program
from leir.syntax.prescan import MAX_CHARACTERS

FORMAT_VERSION = 1
MAX_BYTES = 2 * MAX_CHARACTERS
MAX_RANK = 32

DTYPE_NAMES: Mapping[str, str] = {
    **{dtype: dtype for dtype in DTYPES},
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "int8": "i8",
    "int32": "i32",
    "int64": "i64",
}
"""Every accepted spelling of a dtype, and how we write it."""


class FileFormatError(ValueError):
    """A program file or object that cannot be read. ``line`` and ``column`` count from 1; 0 means the file as a whole."""

    def __init__(self, message: str, path: str = "<object>", line: int = 0, column: int = 0) -> None:
        super().__init__(message, path, line, column)
        self.message = message
        self.path = path
        self.line = line
        self.column = column

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}" if self.line else self.path
        return f"{place}: {self.message}"


# ------------------------------------------------------------------------------------------------------------------ load and save


def load(path: str | PathLike[str]) -> Program:
    """The program in a `.leir` or `.json` file. Raises FileFormatError, LeirSyntaxError (both name the file) or OSError."""
    file = Path(path)
    with file.open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise FileFormatError(f"the file is larger than {MAX_BYTES} bytes", str(path))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"not UTF-8 at byte {error.start}", str(path)) from None
    return load_text(text, path)


def load_text(text: str, path: str | PathLike[str]) -> Program:
    """As `load`, from the file's content; the name decides the format."""
    name = str(path)
    match Path(path).suffix:
        case ".leir":
            return _read_leir(text, name)
        case ".json":
            return _read_json(text, name)
        case suffix:
            raise FileFormatError(f"the suffix {suffix!r} is none of .leir and .json", name)


def save(program: Program, path: str | PathLike[str]) -> None:
    """Write a program; the suffix decides the format. Raises FileFormatError for another suffix than .leir and .json."""
    match Path(path).suffix:
        case ".leir":
            text = to_leir(program)
        case ".json":
            text = json.dumps(to_json(program), indent=1) + "\n"
        case suffix:
            raise FileFormatError(f"the suffix {suffix!r} is none of .leir and .json", str(path))
    Path(path).write_text(text, encoding="utf-8", newline="\n")


# ------------------------------------------------------------------------------------------------------------------------- JSON


def to_json(program: Program) -> dict[str, Any]:
    """The program as a JSON object."""
    return {
        "leir_version": FORMAT_VERSION,
        "name": program.name,
        "leir": print_program(program),
        "tensors": [_tensor_to_json(t) for t in program.signature.tensors],
    }


def from_json(obj: object, path: str = "<object>") -> Program:
    """The program in a JSON object. Raises FileFormatError, or LeirSyntaxError for its text."""
    fields = _fields(obj, "the program", ("leir_version", "name", "leir", "tensors"), (), path)
    _check_version(fields["leir_version"], path)
    name, text, entries = fields["name"], fields["leir"], fields["tensors"]
    if not isinstance(name, str):
        _wrong(f'"name" is {_kind(name)}, not a string', path)
    if not isinstance(text, str):
        _wrong(f'"leir" is {_kind(text)}, not a string', path)
    if not isinstance(entries, list):
        _wrong(f'"tensors" is {_kind(entries)}, not a list', path)
    tensors = [_tensor_from_json(entry, f"tensor {k}", path) for k, entry in enumerate(entries)]
    return parse(text, Signature(name, _distinct(tensors, path)), source=f"{path}#leir")


def _tensor_to_json(tensor: Known) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": tensor.name, "dtype": tensor.dtype, "shape": list(tensor.shape), "role": tensor.role}
    if tensor.range is not None:
        entry["range"] = list(tensor.range)
    return entry


def _tensor_from_json(entry: object, what: str, path: str) -> Known:
    fields = _fields(entry, what, ("name", "dtype", "shape", "role"), ("range",), path)
    name = fields["name"]
    if isinstance(name, str):
        what = f"{what} ({name[:40]})"
    return _known(name, fields["dtype"], fields["shape"], fields["role"], fields.get("range"), what, path)


def _fields(obj: object, what: str, required: tuple[str, ...], optional: tuple[str, ...], path: str) -> dict[str, Any]:
    if not isinstance(obj, dict):
        _wrong(f"{what} is {_kind(obj)}, not an object", path)
    if "leir_version" in required and "leir_version" in obj:
        _check_version(obj["leir_version"], path)  # before its keys: another version may have others
    missing = [key for key in required if key not in obj]
    if missing:
        _wrong(f"{what} has no {', '.join(map(json.dumps, missing))}", path)
    unknown = [key for key in obj if key not in required and key not in optional]
    if unknown:
        _wrong(f"{what} has the unknown key {json.dumps(unknown[0])[:60]}; known are {', '.join((*required, *optional))}", path)
    return obj


def _read_json(text: str, path: str) -> Program:
    try:
        obj = json.loads(text, object_pairs_hook=lambda pairs: _unique(pairs, path))
    except json.JSONDecodeError as error:
        raise FileFormatError(f"not JSON: {error.msg}", path, error.lineno, error.colno) from None
    except RecursionError:
        raise FileFormatError("not a program: nested too deep", path) from None
    except FileFormatError:
        raise
    except ValueError as error:  # an integer with more digits than Python converts
        raise FileFormatError(f"not JSON that can be read: {error}", path) from None
    return from_json(obj, path)


def _unique(pairs: list[tuple[str, Any]], path: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            _wrong(f"the key {json.dumps(key)[:60]} occurs twice in one object", path)
        found[key] = value
    return found


# ------------------------------------------------------------------------------------------------------------------------- .leir

_HEADER = re.compile(r"#[ \t]*leir[ \t]+(?P<version>\S+)(?:[ \t]+(?P<name>.*))?")
_TENSOR = re.compile(
    r"#[ \t]*(?P<name>\w+)[ \t]+(?P<dtype>\w+)[ \t]*\[(?P<shape>[^][]*)\][ \t]+(?P<role>\w+)"
    r"(?:[ \t]+range\[(?P<range>[^][]*)\])?"
)
_INTEGER = re.compile(r"-?[0-9]{1,19}")


def to_leir(program: Program) -> str:
    """The program as the content of a `.leir` file."""
    name = program.name
    plain = name.isprintable() and name == name.strip() and not name.startswith('"')
    lines = [f"# leir {FORMAT_VERSION} {name if plain else json.dumps(name)}".rstrip()]
    lines += (f"# {describe_tensor(tensor)}" for tensor in program.signature.tensors)
    return "\n".join((*lines, print_program(program))) + "\n"


def describe_tensor(tensor: Known) -> str:
    """``name dtype[shape] role``, with ``range[lo,hi]`` where there is one."""
    shape = ",".join(map(str, tensor.shape))
    bounds = "" if tensor.range is None else f" range[{tensor.range[0]},{tensor.range[1]}]"
    return f"{tensor.name} {tensor.dtype}[{shape}] {tensor.role}{bounds}"


def _read_leir(text: str, path: str) -> Program:
    lines = text.split("\n")
    header = [k for k, line in enumerate(lines) if line.startswith("#")]
    if not header or any(line.strip() for line in lines[: header[0]]):
        _wrong("the first line is no `# leir 1 NAME`", path, 1)
    first = header[0]
    match = _HEADER.fullmatch(lines[first].strip())
    if match is None:
        _wrong("the first line is no `# leir 1 NAME`", path, first + 1)
    version = match["version"]
    _check_version(int(version) if version.isdecimal() and len(version) < 10 else version, path, first + 1)
    name = _program_name(match["name"] or "", path, first + 1)

    tensors: list[Known] = []
    places: list[int] = []
    for k in range(first + 1, len(lines)):
        line = lines[k]
        if not line.startswith("#"):
            if line.strip():
                break
            continue
        tensors.append(_tensor_from_line(line, path, k + 1))
        places.append(k + 1)
        lines[k] = ""
    lines[first] = ""
    signature = Signature(name, _distinct(tensors, path, places))
    return parse("\n".join(lines), signature, source=path)  # blank lines stand for the header, so that positions are the file's


def _program_name(written: str, path: str, line: int) -> str:
    if not written.startswith('"'):
        return written
    try:
        name = json.loads(written)
    except json.JSONDecodeError:
        name = None
    if not isinstance(name, str):
        _wrong(f"the name {written[:40]} is no JSON string", path, line)
    return name


def _tensor_from_line(line: str, path: str, number: int) -> Known:
    match = _TENSOR.fullmatch(line.strip())
    if match is None:
        _wrong(f"{line.strip()[:60]!r} is no tensor line: `# NAME dtype[shape] role`, as in `# A f32[64,128] input`", path, number)
    shape = _integers(match["shape"], path, number) if match["shape"].strip() else []
    bounds = None if match["range"] is None else _integers(match["range"], path, number)
    return _known(match["name"], match["dtype"], shape, match["role"], bounds, f"tensor {match['name'][:40]}", path, number)


def _integers(text: str, path: str, line: int) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if not _INTEGER.fullmatch(part):
            _wrong(f"{part[:40]!r} is no integer", path, line)
    return [int(part) for part in parts]


# --------------------------------------------------------------------------------------------------------------- what both check


def _known(name: object, dtype: object, shape: object, role: object, bounds: object, what: str, path: str, line: int = 0) -> Known:
    if not isinstance(name, str):
        _wrong(f"{what}: the name is {_kind(name)}, not a string", path, line)
    problem = tensor_name_problem(name)
    if problem is not None:
        _wrong(f"{what}: {problem}", path, line)
    if not isinstance(dtype, str) or dtype not in DTYPE_NAMES:
        _wrong(f"{what}: {_show(dtype)} is no dtype; known are {', '.join(DTYPE_NAMES)}", path, line)
    if not isinstance(shape, list) or not all(type(n) is int for n in shape):
        _wrong(f"{what}: the shape {_show(shape)} is no list of integers", path, line)
    if not all(1 <= n <= MAX_EXTENT for n in shape):
        _wrong(f"{what}: the shape {_show(shape)} has an extent that is not in 1..{MAX_EXTENT}", path, line)
    if len(shape) > MAX_RANK:
        _wrong(f"{what}: {len(shape)} dimensions, and the limit is {MAX_RANK}", path, line)
    if role not in ROLES:
        _wrong(f"{what}: {_show(role)} is no role; known are {', '.join(ROLES)}", path, line)
    return Known(name, DTYPE_NAMES[dtype], tuple(shape), cast(Role, role), _range(bounds, DTYPE_NAMES[dtype], what, path, line))


def _range(bounds: object, dtype: str, what: str, path: str, line: int) -> tuple[int, int] | None:
    if bounds is None:
        return None
    if not isinstance(bounds, list) or len(bounds) != 2 or not all(type(n) is int for n in bounds):
        _wrong(f"{what}: the range {_show(bounds)} is no pair of integers", path, line)
    low, high = bounds
    if dtype not in INT_DTYPES:
        _wrong(f"{what}: a range belongs to an integer tensor, and this one is {dtype}", path, line)
    if not -MAX_INT <= low <= high <= MAX_INT:
        _wrong(f"{what}: the range [{low}, {high}] holds no value", path, line)
    return low, high


def _distinct(tensors: Iterable[Known], path: str, lines: list[int] | None = None) -> tuple[Known, ...]:
    found: dict[str, Known] = {}
    for k, tensor in enumerate(tensors):
        if tensor.name in found:
            _wrong(f"the tensor {tensor.name} is declared twice", path, lines[k] if lines else 0)
        found[tensor.name] = tensor
    return tuple(found.values())


def _check_version(version: object, path: str, line: int = 0) -> None:
    if type(version) is not int or version != FORMAT_VERSION:
        _wrong(f"the format version is {_show(version)}, and this LEIR reads version {FORMAT_VERSION}", path, line)


def _wrong(message: str, path: str, line: int = 0) -> NoReturn:
    raise FileFormatError(message, path, line, 1 if line else 0)


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null" if value is None else f"a {type(value).__name__}")


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "..."
