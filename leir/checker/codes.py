"""The table of all diagnostic codes: what each means, the way out, and the least program that shows it.

docs/diagnostics.md is `as_markdown()`. Examples are `.leir` files without their first line; a test runs each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning"]
Target: TypeAlias = Literal["any", "llvm", "cuda"]


@dataclass(frozen=True, slots=True)
class CodeInfo:
    """One code. ``target`` is the target for which it is reported: "any" for all of them. ``refused``: the parser refuses such a
    text already, so only a program that was built by hand has it."""

    code: str
    severity: Severity
    meaning: str
    way_out: str
    example: str
    target: Target = "any"
    refused: bool = False


_ABOUT: tuple[tuple[str, tuple[CodeInfo, ...]], ...] = (
    (
        "Names and structure",
        (
            CodeInfo(
                "signature-invalid",
                "error",
                "A known tensor is declared twice, or with a dtype, a shape, a role or a range that is none.",
                "Correct the declaration.",
                "# A f32[4] input\n# A f32[4] output\nL^{4}_{a=0}[A^{f32,g}_{a}=1;];",
                refused=True,
            ),
            CodeInfo(
                "tensor-name",
                "error",
                "A tensor's name is no uppercase letter followed by lowercase ones, or is one of L P V U B T.",
                "Take another name, such as A or Ac.",
                "# P f32[4] output\nL^{4}_{a=0}[P^{f32,g}_{a}=1;];",
                refused=True,
            ),
            CodeInfo(
                "index-name",
                "error",
                "A loop index is no name of lowercase letters, or has a letter or a word that is reserved.",
                "Take another name, such as a or c.",
                "# A f32[4] output\nL^{4}_{v=0}[A^{f32,g}_{v}=1;];",
                refused=True,
            ),
            CodeInfo(
                "bound-prefix",
                "error",
                "The index of a B loop begins with none of bx by bz tx ty tz, or that of another loop does.",
                "Begin the index of a B loop, and of no other loop, with the GPU index that it is bound to.",
                "# A f32[4] output\nB^{4}_{a=0}[A^{f32,g}_{a}=1;];",
                refused=True,
            ),
            CodeInfo(
                "duplicate-index",
                "error",
                "Two loops along one path have the same index.",
                "Rename the inner loop.",
                "# A f32[4] output\nL^{4}_{a=0}L^{4}_{a=0}[A^{f32,g}_{a}=1;];",
                refused=True,
            ),
            CodeInfo(
                "loop-extent",
                "error",
                "A loop has fewer than 1 or more than 2^31-1 iterations.",
                "Give the loop an extent from 1 to 2147483647.",
                "# A f32[4] output\nL^{0}_{a=0}[A^{f32,g}_{a}=1;];",
                refused=True,
            ),
            CodeInfo(
                "unknown-tensor",
                "error",
                "A tensor is read that is not in the signature and that no equation writes.",
                "Declare it as an input, or write it first.",
                "# C f32[4] output\nL^{4}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{a};];",
            ),
        ),
    ),
    (
        "Tensors",
        (
            CodeInfo(
                "known-mismatch",
                "error",
                "A known tensor is used with another dtype than its own, or not in global memory.",
                "Write the dtype of the signature and the scope g.",
                "# A f64[4] input\n# C f32[4] output\nL^{4}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{a};];",
            ),
            CodeInfo(
                "tensor-dtypes",
                "error",
                "A temporary has two dtypes.",
                "Write one dtype everywhere, and cast where another is wanted.",
                "# C f32[4] output\nL^{4}_{a=0}[A^{f64,g}_{a}=1;];L^{4}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{a};];",
            ),
            CodeInfo(
                "tensor-scopes",
                "error",
                "A temporary has two memory scopes.",
                "Write one scope everywhere, or copy into a second tensor.",
                "# C f32[4] output\nL^{4}_{a=0}[A^{f32,g}_{a}=1;C^{f32,g}_{a}=A^{f32,l}_{a};];",
            ),
            CodeInfo(
                "rank-mismatch",
                "error",
                "An access has more or fewer subscripts than its tensor has dimensions.",
                "Write one subscript per dimension.",
                "# A f32[4,4] input\n# C f32[4] output\nL^{4}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{a};];",
            ),
            CodeInfo(
                "write-to-input",
                "error",
                "An equation writes a tensor that is an input, a param or a constant.",
                "Write a temporary instead, or declare the tensor as an output.",
                "# A f32[4] input\nL^{4}_{a=0}[A^{f32,g}_{a}=A^{f32,g}_{a}*2;];",
            ),
            CodeInfo(
                "indirect-target",
                "error",
                "A subscript of a target reads a tensor.",
                "Turn the scatter into a gather: loop over the target's elements and read through the index.",
                "# I i64[4] input range[0,3]\n# C f32[4] output\nL^{4}_{a=0}[C^{f32,g}_{I^{i64,g}_{a}}=1;];",
            ),
            CodeInfo(
                "tensor-too-large",
                "error",
                "A tensor has more bytes than an i64 counts.",
                "Use smaller extents.",
                "L^{2147483647}_{a=0}L^{2147483647}_{c=0}L^{4}_{d=0}[A^{f32,g}_{a,c,d}=1;];",
            ),
            CodeInfo(
                "unread-known",
                "warning",
                "Nothing reads an input, a param or a constant.",
                "Drop it from the signature, if its place there is free.",
                "# A f32[4] input\n# C f32[4] output\nL^{4}_{a=0}[C^{f32,g}_{a}=1;];",
            ),
            CodeInfo(
                "unread-temporary",
                "warning",
                "A temporary is written, and only its own accumulation reads it.",
                "Delete the equations that write it.",
                "# C f32[4] output\nL^{4}_{a=0}[A^{f32,g}_{a}=2;C^{f32,g}_{a}=1;];",
            ),
        ),
    ),
    (
        "Types",
        (
            CodeInfo(
                "dtype-mismatch",
                "error",
                "The operands of an operation differ in dtype, or a value has another dtype than its target.",
                "Write cast_DTYPE(...) around one of them.",
                "# A f64[4] input\n# C f32[4] output\nL^{4}_{a=0}[C^{f32,g}_{a}=A^{f64,g}_{a};];",
            ),
            CodeInfo(
                "dtype-domain",
                "error",
                "An operation is not defined for its dtype: / of integers, // of floats, exp of integers, + of bools.",
                "Cast the operand, or use the operation of that dtype.",
                "# A i32[4] input\n# C i32[4] output\nL^{4}_{a=0}[C^{i32,g}_{a}=A^{i32,g}_{a}/2;];",
            ),
            CodeInfo(
                "literal-range",
                "error",
                "A literal does not fit the dtype that it takes from its surroundings.",
                "Write a literal of that dtype, or cast the other operand.",
                "# A i32[4] input\n# C i32[4] output\nL^{4}_{a=0}[C^{i32,g}_{a}=A^{i32,g}_{a}+0.5;];",
            ),
            CodeInfo(
                "subscript-type",
                "error",
                "A subscript is no integer: it reads a float or bool tensor, or uses an operation that subscripts do not have.",
                "Use loop indices, integers and integer tensors under + - * // %.",
                "# A f32[4] input\n# C f32[4] output\nL^{4}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{A^{f32,g}_{a}};];",
            ),
            CodeInfo(
                "bool-accumulation",
                "error",
                "An equation accumulates into a bool tensor.",
                "Accumulate into i32 and compare with 0 afterwards.",
                "# A bool[4] input\n# C bool[] output\nL^{4}_{a=0}[C^{bool,g}=max(C^{bool,g},A^{bool,g}_{a});];",
            ),
            CodeInfo(
                "index-overflow",
                "error",
                "A value made of loop indices and integers does not fit an i64.",
                "Use smaller factors.",
                "# C i64[4] output\nL^{4}_{a=0}[C^{i64,g}_{a}=a*9223372036854775807;];",
            ),
        ),
    ),
    (
        "Values",
        (
            CodeInfo(
                "out-of-bounds",
                "error",
                "An access leaves its tensor.",
                "Change the subscript, or guard the read: if_then_else(1<=a,A^{f32,g}_{a-1},0).",
                "# A f32[4] input\n# C f32[4] output\nL^{4}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{a+1};];",
            ),
            CodeInfo(
                "gather-out-of-range",
                "error",
                "A read through an integer tensor leaves its tensor for some value that the index may have.",
                "Narrow the index tensor's range, or guard the read.",
                "# A f32[4] input\n# I i64[4] input range[0,4]\n# C f32[4] output\n"
                "L^{4}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{I^{i64,g}_{a}};];",
            ),
            CodeInfo(
                "range-missing",
                "error",
                "A read through an integer tensor of which no range is known cannot be shown to be in bounds.",
                "Give the index tensor a range in the signature, or guard the read.",
                "# A f32[4] input\n# I i64[4] input\n# C f32[4] output\nL^{4}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{I^{i64,g}_{a}};];",
            ),
            CodeInfo(
                "zero-divisor",
                "error",
                "A // or % of index arithmetic divides by zero.",
                "Change the divisor, or guard it with if_then_else.",
                "# A f32[4] input\n# C f32[4] output\nL^{4}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{3%a};];",
            ),
            CodeInfo(
                "undefined-read",
                "error",
                "An element is read that nothing has written before.",
                "Write it first, or guard the read.",
                "# C f32[4] output\nL^{3}_{a=0}[A^{f32,g}_{a+1}=1;];L^{4}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{a};];",
            ),
            CodeInfo(
                "output-unwritten",
                "error",
                "An element of an output is never written.",
                "Let the loops that write it cover its shape.",
                "# C f32[4] output\nL^{3}_{a=0}[C^{f32,g}_{a}=1;];",
            ),
            CodeInfo(
                "undecided",
                "error",
                "Whether an access is in bounds, defined or free of a dependence could not be decided: a subscript is no "
                "quasi-affine expression, or the question went over the isl budget.",
                "Write subscripts as sums of loop indices times constants, with // and % by constants.",
                "# A f32[4] input\n# C f32[4,4] output\n"
                "L^{4}_{a=0}L^{4}_{c=0}[C^{f32,g}_{a,c}=if_then_else(a+c<3,A^{f32,g}_{a*c},0);];",
            ),
        ),
    ),
    (
        "Parallel loops",
        (
            CodeInfo(
                "reduction-bound",
                "error",
                "An equation accumulates over a B loop: its iterations would run at once.",
                "Make the loop serial (import_text(..., demote=True) does), or bind another loop.",
                "# A f32[4] input\n# C f32[] output\nB^{4}_{tx=0}[C^{f32,g}=C^{f32,g}+A^{f32,g}_{tx};];",
            ),
            CodeInfo(
                "carried-dependence",
                "error",
                "A P, V or B loop carries a dependence: two of its iterations touch one element, and one of them writes it.",
                "Make the loop serial.",
                "# C f32[4] output\nP^{4}_{a=0}[C^{f32,g}_{a}=if_then_else(a<1,1,C^{f32,g}_{a-1});];",
            ),
        ),
    ),
    (
        "Kernels and memory scopes",
        (
            CodeInfo(
                "scope-escapes-kernel",
                "error",
                "A shared or local value is read in another launch than the one that wrote it.",
                "Make the tensor global, or fuse the producer into the consumer's kernel.",
                "# C f32[4] output\nB^{4}_{tx=0}[A^{f32,l}_{tx}=1;];B^{4}_{tx=0}[C^{f32,g}_{tx}=A^{f32,l}_{tx};];",
            ),
            CodeInfo(
                "shared-crosses-blocks",
                "error",
                "A shared value is read in another block than the one that wrote it.",
                "Make the tensor global and put the consumer into its own expression, or let each block compute the value.",
                "# C f32[4,4] output\n"
                "L^{1}_{a=0}[B^{4}_{bx=0}[A^{f32,s}_{bx}=1;];B^{4}_{bx=0}L^{4}_{c=0}[C^{f32,g}_{bx,c}=A^{f32,s}_{c};];];",
            ),
            CodeInfo(
                "local-crosses-threads",
                "error",
                "A local value is read in another thread than the one that wrote it.",
                "Make the tensor shared or global.",
                "# C f32[4] output\nL^{1}_{a=0}[B^{4}_{tx=0}[A^{f32,l}_{tx}=1;];B^{4}_{tx=0}[C^{f32,g}_{tx}=A^{f32,l}_{3-tx};];];",
            ),
            CodeInfo(
                "crosses-blocks",
                "error",
                "Two blocks of one launch touch one element of global memory, and one of them writes it: nothing orders blocks.",
                "Put the two items into expressions of their own.",
                "# C f32[4] output\nL^{1}_{a=0}[B^{4}_{bx=0}[A^{f32,g}_{bx}=1;];B^{4}_{bx=0}[C^{f32,g}_{bx}=A^{f32,g}_{3-bx};];];",
            ),
            CodeInfo(
                "axis-bound-twice",
                "error",
                "One GPU index is bound twice along a path.",
                "Bind one of the loops to another index, or make it serial.",
                "# C f32[4,4] output\nB^{4}_{tx=0}B^{4}_{txa=0}[C^{f32,g}_{tx,txa}=1;];",
            ),
            CodeInfo(
                "axis-extents",
                "error",
                "One GPU index has two extents in one kernel.",
                "Give every loop on that index the same extent, or put the items into expressions of their own.",
                "# C f32[4] output\n# D f32[2] output\n"
                "L^{1}_{a=0}[B^{4}_{tx=0}[C^{f32,g}_{tx}=1;];B^{2}_{tx=0}[D^{f32,g}_{tx}=1;];];",
            ),
            CodeInfo(
                "outside-block",
                "error",
                "An item stands outside a block loop that its kernel has.",
                "Move the item under the loop, or into an expression of its own.",
                "# C f32[4] output\n# D f32[] output\nL^{1}_{a=0}[B^{4}_{bx=0}[C^{f32,g}_{bx}=1;];D^{f32,g}=1;];",
            ),
        ),
    ),
    (
        "Limits of a GPU",
        (
            CodeInfo(
                "grid-limit",
                "error",
                "A block index has more than 2^31-1 (x) or 65535 (y, z) values.",
                "Use bx for the large extent, or split the loop.",
                "# C f32[65536] output\nB^{65536}_{by=0}[C^{f32,g}_{by}=1;];",
                target="cuda",
            ),
            CodeInfo(
                "thread-limit",
                "error",
                "A block has more than 1024 threads, or more than 64 along z.",
                "Split the loop and bind the outer part to a block index.",
                "# C f32[2048] output\nB^{2048}_{tx=0}[C^{f32,g}_{tx}=1;];",
                target="cuda",
            ),
            CodeInfo(
                "shared-memory",
                "error",
                "The shared tensors of a kernel take more than the 48 KiB of a block.",
                "Shrink the tiles, or make a tensor global.",
                "# C f32[13000] output\nB^{1}_{bx=0}[L^{13000}_{a=0}[A^{f32,s}_{a}=1;C^{f32,g}_{a}=A^{f32,s}_{a};];];",
                target="cuda",
            ),
            CodeInfo(
                "vector-access",
                "error",
                "An access under a V loop is wider than 16 bytes, is not unit-stride, or is not aligned.",
                "Split the loop to 16 bytes, and vectorize the loop of the last subscript.",
                "# C f32[8] output\nV^{8}_{a=0}[C^{f32,g}_{a}=1;];",
                target="cuda",
            ),
        ),
    ),
    (
        "Import of foreign text",
        (
            CodeInfo(
                "cast-inserted",
                "warning",
                "Import put a cast around an operand whose dtype did not fit.",
                "Check that the cast is what was meant.",
                "# A f64[4] input\n# C f32[4] output\nL^{4}_{a=0}[C^{f32,g}_{a}=A^{f64,g}_{a};];",
            ),
            CodeInfo(
                "loop-demoted",
                "warning",
                "Import made a B loop serial, because an equation accumulates over it.",
                "Nothing: the loop now means what the text said.",
                "# A f32[4] input\n# C f32[] output\nB^{4}_{tx=0}[C^{f32,g}=C^{f32,g}+A^{f32,g}_{tx};];",
            ),
        ),
    ),
)

CODES: Mapping[str, CodeInfo] = {info.code: info for _, group in _ABOUT for info in group}


def as_markdown() -> str:
    """docs/diagnostics.md."""
    lines = [
        "# Diagnostics",
        "",
        "Every code that `leir check` and the import of text report. Written by `make docs` from",
        "`leir/checker/codes.py`; do not edit.",
    ]
    for title, group in _ABOUT:
        lines += ["", f"## {title}"]
        for info in group:
            lines += ["", f"### {info.code}", "", f"{info.severity.capitalize()}. {info.meaning} {info.way_out}"]
            if info.target != "any":
                lines.append(f"Reported for the target `{info.target}`.")
            if info.refused:
                lines.append("In text this is refused when it is read.")
            lines += ["", "```", *info.example.split("\n"), "```"]
    return "\n".join(lines) + "\n"
