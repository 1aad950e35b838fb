"""Programs whose speed differs by how they walk: the corpus on which cost models are compared with measured times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from leir.ir import Known, Program, Role, Signature
from leir.parser import parse
from rewrite.enumerate import enumerate_steps


@dataclass(frozen=True, slots=True)
class Case:
    """A program and the family of programs that compute the same."""

    family: str
    name: str
    program: Program


def corpus() -> list[Case]:
    """The whole corpus, in a fixed order."""
    return [*_matmul(128), *_matmul(256), *_matmul(512, big=True), *_softmax(128, 512), *_rows(), *_elementwise(), *_copies()]


def walks(count: int, seed: int = 0, longest: int = 8) -> list[Case]:
    """``count`` programs for each of `ORIGINALS`, the original among them: ends of random walks over legal steps, at each step a
    strategy at random, then one of its steps. Nobody chose these, so they show a model where it was not looked at."""
    rng = Random(seed)
    cases = []
    for family, original in ORIGINALS.items():
        ends = {original: 0}
        for _ in range(4 * count):
            current, steps = original, rng.randint(1, longest)
            for _ in range(steps):
                by_strategy: dict[str, list[Program]] = {}
                for found in enumerate_steps(current):
                    by_strategy.setdefault(found.step.strategy, []).append(found.program)
                if not by_strategy:
                    break
                current = rng.choice(by_strategy[rng.choice(sorted(by_strategy))])
            ends.setdefault(current, steps)
            if len(ends) == count:
                break
        cases += [Case(f"walks, {family}", f"{k}, {steps} steps", end) for k, (end, steps) in enumerate(ends.items())]
    return cases


def program(tensors: str, text: str, name: str = "corpus") -> Program:
    """``tensors``: ``"A[4,8] C[8] -> D[4]"``, all f32. In ``text``, ``L4a`` stands for ``L^{4}_{a=0}`` and ``X(a,c)`` for an
    access."""
    before, after = tensors.split("->")
    known = [_known(t, "input") for t in before.split()] + [_known(t, "output") for t in after.split()]
    return parse(_expanded(text), Signature(name, tuple(known)))


def _known(text: str, role: Role) -> Known:
    name, _, sizes = text.rstrip("]").partition("[")
    return Known(name, "f32", tuple(int(s) for s in sizes.split(",") if s), role)


def _expanded(text: str) -> str:
    """Blanks part the words: loops, brackets, and equations whose accesses are ``X(...)`` with an upper-case letter."""
    words = []
    for word in text.split():
        if word[0] in "LPVUB" and word[1:2].isdecimal():
            extent = "".join(c for c in word[1:] if c.isdecimal())
            words.append(f"{word[0]}^{{{extent}}}_{{{word[1 + len(extent) :]}=0}}")
        else:
            words.append(_accesses(word))
    return "".join(words)


def _accesses(word: str) -> str:
    found, depth, inside = "", 0, False
    for k, c in enumerate(word):
        if c == "(" and k and (word[k - 1].isupper() or (k > 1 and word[k - 2].isupper() and word[k - 1].islower())):
            found += "^{f32,g}_{" if word[k + 1] != ")" else "^{f32,g}"
            inside, empty = True, word[k + 1] == ")"
            depth = 0
        elif inside and c == "(":
            depth += 1
            found += c
        elif inside and c == ")":
            if depth:
                depth -= 1
                found += c
            else:
                found += "" if empty else "}"
                inside = False
        else:
            found += c
    return found


# ------------------------------------------------------------------------------------------------------------------- the corpus


def _matmul(n: int, *, big: bool = False) -> Iterator[Case]:
    """D = A C, by its loops: i is a, j is d, k is c; tiles are f, g, h."""
    forms = {
        "ikj": (f"L{n}a L{n}c L{n}d", "a", "c", "d"),
        "kij": (f"L{n}c L{n}a L{n}d", "a", "c", "d"),
        "P ikj": (f"P{n}a L{n}c L{n}d", "a", "c", "d"),
        "ikj, j by 16 V": (f"L{n}a L{n}c L{n // 16}d V16f", "a", "c", "d*16+f"),
        "j tile V16 inside k": (f"L{n}a L{n // 16}d L{n}c V16f", "a", "c", "d*16+f"),
        "j tile V64 inside k": (f"L{n}a L{n // 64}d L{n}c V64f", "a", "c", "d*64+f"),
        "j tile L16 inside k": (f"L{n}a L{n // 16}d L{n}c L16f", "a", "c", "d*16+f"),
        "i U4, V16 inside k": (f"L{n // 4}a L{n // 16}d L{n}c U4g V16f", "a*4+g", "c", "d*16+f"),
        "i U4, V64 inside k": (f"L{n // 4}a L{n // 64}d L{n}c U4g V64f", "a*4+g", "c", "d*64+f"),
        "i L4, V16 inside k": (f"L{n // 4}a L{n // 16}d L{n}c L4g V16f", "a*4+g", "c", "d*16+f"),
        "P i U4, V64 inside k": (f"P{n // 4}a L{n // 64}d L{n}c U4g V64f", "a*4+g", "c", "d*64+f"),
        "k i U4 around j": (f"L{n // 4}a L{n}c L{n}d U4g", "a*4+g", "c", "d"),
        "k U4, V16": (f"L{n}a L{n // 16}d L{n // 4}c U4g V16f", "a", "c*4+g", "d*16+f"),
        "tiles of 32": (f"L{n // 32}a L{n // 32}c L{n // 32}d L32f L32g L32h", "a*32+f", "c*32+g", "d*32+h"),
        "P tiles of 32": (f"P{n // 32}a L{n // 32}c L{n // 32}d L32f L32g L32h", "a*32+f", "c*32+g", "d*32+h"),
    }
    slow = {
        "ijk": (f"L{n}a L{n}d L{n}c", "a", "c", "d"),
        "jki": (f"L{n}d L{n}c L{n}a", "a", "c", "d"),
        "P ijk": (f"P{n}a L{n}d L{n}c", "a", "c", "d"),
        "ijk, k U4": (f"L{n}a L{n}d L{n // 4}c U4f", "a", "c*4+f", "d"),
        "j U4 inside k": (f"L{n}a L{n // 4}d L{n}c U4f", "a", "c", "d*4+f"),
        "ikj, j by 16 L": (f"L{n}a L{n}c L{n // 16}d L16f", "a", "c", "d*16+f"),
        "i L4, L16 inside k": (f"L{n // 4}a L{n // 16}d L{n}c L4g L16f", "a*4+g", "c", "d*16+f"),
    }
    for name, (loops, i, k, j) in (forms if big else forms | slow).items():
        text = f"{loops} [D({i},{j})=D({i},{j})+A({i},{k})*C({k},{j}); ];"
        yield Case(f"matmul {n}", name, program(f"A[{n},{n}] C[{n},{n}] -> D[{n},{n}]", text))


def _softmax(m: int, n: int) -> Iterator[Case]:
    tensors = f"X[{m},{n}] -> E[{m},{n}]"
    greatest, power = "M(a)=max(M(a),X(a,c));", "H(a,c)=exp(X(a,c)-M(a));"
    total, quotient = "S(a)=S(a)+H(a,c);", "E(a,c)=H(a,c)/S(a);"
    inner = [greatest, power, total, quotient]
    rows = " ".join(f"L{n}c [ {e} ];" for e in inner)
    lanes = f"L{m}a L{n // 16}c L16d [ Tc(a,d)=Tc(a,d)+H(a,c*16+d); ]; L{m}a L16d [ S(a)=S(a)+Tc(a,d); ];"
    columns = f"L{n}c L{m}a [ {total} ];"
    forms = {
        "four nests": " ".join(f"L{m}a L{n}c [ {e} ];" for e in inner),
        "rows fused": f"L{m}a [ {rows} ];",
        "rows fused, P": f"P{m}a [ {rows} ];",
        "exp and sum fused": f"L{m}a L{n}c [ {greatest} ]; L{m}a L{n}c [ {power} {total} ]; L{m}a L{n}c [ {quotient} ];",
        "partial sums": f"L{m}a L{n}c [ {greatest} ]; L{m}a L{n}c [ {power} ]; {lanes} L{m}a L{n}c [ {quotient} ];",
        "sum by columns": f"L{m}a L{n}c [ {greatest} ]; L{m}a L{n}c [ {power} ]; {columns} L{m}a L{n}c [ {quotient} ];",
        "exp twice": f"L{m}a L{n}c [ {greatest} ]; L{m}a L{n}c [ S(a)=S(a)+exp(X(a,c)-M(a)); ];"
        f" L{m}a L{n}c [ E(a,c)=exp(X(a,c)-M(a))/S(a); ];",
    }
    for name, text in forms.items():
        yield Case(f"softmax {m}x{n}", name, program(tensors, text))


def _rows() -> Iterator[Case]:
    """Sums and maxima over rows of several lengths."""
    size = 65536
    for k in (16, 64, 256, 1024, 4096):
        m = size // k
        for name, text in (
            ("sum", f"L{m}a L{k}c [ S(a)=S(a)+X(a,c); ];"),
            ("maximum", f"L{m}a L{k}c [ S(a)=max(S(a),X(a,c)); ];"),
            ("sum, columns inside", f"L{k}c L{m}a [ S(a)=S(a)+X(a,c); ];"),
            ("sum, P", f"P{m}a L{k}c [ S(a)=S(a)+X(a,c); ];"),
        ):
            yield Case("rows of 65,536", f"{name} of {k}", program(f"X[{m},{k}] -> S[{m}]", text))


def _elementwise() -> Iterator[Case]:
    m, n = 128, 512
    tensors = f"X[{m},{n}] Y[{m},{n}] -> E[{m},{n}]"
    for name, text in (
        ("add", f"L{m}a L{n}c [ E(a,c)=X(a,c)+Y(a,c); ];"),
        ("add, P", f"P{m}a L{n}c [ E(a,c)=X(a,c)+Y(a,c); ];"),
        ("add, P inside", f"L{m}a P{n // 128}c L128d [ E(a,c*128+d)=X(a,c*128+d)+Y(a,c*128+d); ];"),
        ("add, columns", f"L{n}c L{m}a [ E(a,c)=X(a,c)+Y(a,c); ];"),
        ("add, V16", f"L{m}a L{n // 16}c V16d [ E(a,c*16+d)=X(a,c*16+d)+Y(a,c*16+d); ];"),
        ("add, split 16", f"L{m}a L{n // 16}c L16d [ E(a,c*16+d)=X(a,c*16+d)+Y(a,c*16+d); ];"),
        ("add, split 128", f"L{m}a L{n // 128}c L128d [ E(a,c*128+d)=X(a,c*128+d)+Y(a,c*128+d); ];"),
        ("add, U8", f"L{m}a L{n // 8}c U8d [ E(a,c*8+d)=X(a,c*8+d)+Y(a,c*8+d); ];"),
        (
            "three nests",
            f"L{m}a L{n}c [ H(a,c)=X(a,c)+Y(a,c); ]; L{m}a L{n}c [ K(a,c)=H(a,c)*Y(a,c); ]; L{m}a L{n}c [ E(a,c)=K(a,c)+X(a,c); ];",
        ),
        ("three fused", f"L{m}a L{n}c [ E(a,c)=(X(a,c)+Y(a,c))*Y(a,c)+X(a,c); ];"),
        ("exp", f"L{m}a L{n}c [ E(a,c)=exp(X(a,c)); ];"),
        ("tanh", f"L{m}a L{n}c [ E(a,c)=tanh(X(a,c)); ];"),
        ("division", f"L{m}a L{n}c [ E(a,c)=X(a,c)/(Y(a,c)*Y(a,c)+1.0); ];"),
        ("relu", f"L{m}a L{n}c [ E(a,c)=max(X(a,c),0.0); ];"),
    ):
        yield Case(f"elementwise {m}x{n}", name, program(tensors, text))
    n = 1 << 22
    for name, text in (
        ("three nests", f"L{n}a [ H(a)=X(a)+Y(a); ]; L{n}a [ K(a)=H(a)*Y(a); ]; L{n}a [ E(a)=K(a)+X(a); ];"),
        ("three fused", f"L{n}a [ E(a)=(X(a)+Y(a))*Y(a)+X(a); ];"),
        ("three in one body", f"L{n}a [ H(a)=X(a)+Y(a); K(a)=H(a)*Y(a); E(a)=K(a)+X(a); ];"),
    ):
        yield Case(f"elementwise {n}", name, program(f"X[{n}] Y[{n}] -> E[{n}]", text))


def _copies() -> Iterator[Case]:
    for n in (128, 500, 512, 1024, 2048):
        tensors = f"X[{n},{n}] -> E[{n},{n}]"
        forms = {
            "straight": f"L{n}a L{n}c [ E(a,c)=X(a,c)+1.0; ];",
            "columns": f"L{n}c L{n}a [ E(a,c)=X(a,c)+1.0; ];",
            "transposed, reads columns": f"L{n}a L{n}c [ E(a,c)=X(c,a); ];",
            "transposed, writes columns": f"L{n}a L{n}c [ E(c,a)=X(a,c); ];",
        }
        if n % 32 == 0:
            tiles = f"L{n // 32}a L{n // 32}c L32f L32g [ E(a*32+f,c*32+g)=X(c*32+g,a*32+f); ];"
            forms["transposed by tiles"] = tiles
        for name, text in forms.items():
            yield Case(f"copy {n}", name, program(tensors, text))


def _row_programs() -> dict[str, Program]:
    softmax = ("M(a)=max(M(a),X(a,c));", "H(a,c)=exp(X(a,c)-M(a));", "S(a)=S(a)+H(a,c);", "E(a,c)=H(a,c)/S(a);")
    chain = ("H(a,c)=X(a,c)+Y(a,c);", "K(a,c)=H(a,c)*2.0;", "E(a,c)=exp(K(a,c))/(K(a,c)*K(a,c)+1.0);")
    norm = (
        "L64a L256c [ M(a)=M(a)+X(a,c); ]; L64a [ N(a)=M(a)/256; ]; L64a L256c [ S(a)=S(a)+(X(a,c)-N(a))*(X(a,c)-N(a)); ];"
        " L64a L256c [ E(a,c)=(X(a,c)-N(a))/sqrt(S(a)/256+0.00001)*G(c); ];"
    )
    linear = (
        "L64a L64d L128c [ H(a,d)=H(a,d)+X(a,c)*W(c,d); ]; L64a L64d [ K(a,d)=H(a,d)+Y(d); ];"
        " L64a L64d [ E(a,d)=max(K(a,d),0.0); ];"
    )
    return {
        "matmul": program("A[128,128] C[128,128] -> D[128,128]", "L128a L128d L128c [ D(a,d)=D(a,d)+A(a,c)*C(c,d); ];"),
        "softmax": program("X[64,256] -> E[64,256]", " ".join(f"L64a L256c [ {e} ];" for e in softmax)),
        "layer norm": program("X[64,256] G[256] -> E[64,256]", norm),
        "linear": program("X[64,128] W[128,64] Y[64] -> E[64,64]", linear),
        "elementwise": program("X[256,256] Y[256,256] -> E[256,256]", " ".join(f"L256a L256c [ {e} ];" for e in chain)),
        "convolution": program(
            "X[16,66,66] W[16,3,3] -> E[64,64]", "L64a L64c L16d L3f L3g [ E(a,c)=E(a,c)+X(d,a+f,c+g)*W(d,f,g); ];"
        ),
    }


ORIGINALS = _row_programs()
"""Small programs as a person would write them first."""
