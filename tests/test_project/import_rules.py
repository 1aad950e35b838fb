"""The import rules of the tree, as tables and one checker that reads the source and imports nothing.

    python -m tests.test_project.import_rules [ROOT]

prints one line per violation, and ends with status 1 if there is one. The rules:

* direction: a package imports only what stands to its left in the data flow (`SEES`); the command line sees everything;
* adapters: a third-party library is imported only in the modules listed for it (`ADAPTERS`);
* laziness: a module in `LIGHT` never loads a heavy library (`HEAVY`) at import time, not even through other modules of ours;
* processes: a module that names egglog starts no process by fork.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

SEES: Mapping[str, frozenset[str]] = {
    "leir": frozenset(),
    "rules": frozenset({"leir"}),
    "rewrite": frozenset({"leir", "rules"}),
    "extract": frozenset({"leir", "rules", "rewrite"}),
    "lower": frozenset({"leir"}),
    "llm": frozenset({"leir", "rules", "rewrite", "extract", "lower"}),
}
PACKAGES = tuple(SEES)

# The command line may import every package; `LIGHT` keeps it from loading them at start.
COMMAND_LINE = "leir.cli"

# Module patterns per library. The only other places that may import these are tests and benchmarks.
ADAPTERS: Mapping[str, tuple[str, ...]] = {
    "egglog": ("rewrite.egraph*",),
    "islpy": ("leir.polyhedral",),
    "matplotlib": ("llm.search.plot",),
    "pyarrow": ("llm.rows",),
    "sympy": ("rules.sympy_bridge",),
    "torch": ("leir.import_torch*",),
    "transformers": (),
    "tvm": ("lower.build", "lower.tir*"),
    "tvm_ffi": ("lower.build",),
}

# Libraries that load only where they are used.
HEAVY = frozenset({"egglog", "matplotlib", "pyarrow", "sympy", "torch", "transformers", "tvm", "tvm_ffi"})

# Entry points that must stay cheap: every package, the command line, and what `leir show` goes through.
LIGHT = (*PACKAGES, "leir.cli*", "leir.doctor", "leir.files", "leir.parser", "leir.printer", "leir.check", "leir.diff", "leir.key")


@dataclass(frozen=True, slots=True)
class Import:
    """One import statement: the module it names, where, and whether it runs when its own module is imported."""

    target: str
    line: int
    at_import: bool


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    path: Path
    imports: tuple[Import, ...]
    names_fork: int | None  # the line of the first "fork" or os.fork


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    path: str
    line: int
    message: str = field(compare=False)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def violations(root: Path) -> list[Violation]:
    """Every breach of the rules in the packages below ``root``, in the order of paths and lines."""
    modules = {m.name: m for m in _modules(root)}
    found = [v for m in modules.values() for v in (*_direction(m), *_adapters(m), *_forks(m))]
    found += [v for m in modules.values() if _matches(m.name, LIGHT) for v in _laziness(m, modules)]
    return sorted(
        (Violation(str(Path(v.path).relative_to(root)), v.line, v.message) for v in found),
        key=lambda v: (v.path, v.line, v.message),
    )


# ------------------------------------------------------------------------------------------------------------------- the rules


def _direction(module: Module) -> Iterator[Violation]:
    if module.name == COMMAND_LINE or module.name.startswith(COMMAND_LINE + "."):
        return
    here = _package(module.name)
    for imported in module.imports:
        there = _package(imported.target)
        if imported.target == COMMAND_LINE or imported.target.startswith(COMMAND_LINE + "."):
            yield Violation(str(module.path), imported.line, f"{module.name} imports the command line ({imported.target})")
        elif there in SEES and there != here and there not in SEES[here]:
            sees = ", ".join(sorted(SEES[here])) or "no other package"
            yield Violation(str(module.path), imported.line, f"{here} imports {imported.target}; {here} sees {sees}")
        elif there in ("tests", "benchmarks"):
            yield Violation(str(module.path), imported.line, f"{here} imports {imported.target}")


def _adapters(module: Module) -> Iterator[Violation]:
    for imported in module.imports:
        library = _package(imported.target)
        if library in ADAPTERS and not _matches(module.name, ADAPTERS[library]):
            allowed = ", ".join(ADAPTERS[library]) or "no module"
            yield Violation(str(module.path), imported.line, f"{module.name} imports {library}; only {allowed} may")


def _laziness(module: Module, modules: Mapping[str, Module]) -> Iterator[Violation]:
    """Follows the imports that run at import time; reports where ``module``'s own first step is on the way to a heavy library."""
    for imported in module.imports:
        if imported.at_import:
            chain = _chain_to_heavy(imported.target, modules, {module.name})
            if chain:
                way = " -> ".join((module.name, *chain))
                yield Violation(
                    str(module.path), imported.line, f"{way} loads at start; import it inside the function that uses it"
                )


def _chain_to_heavy(target: str, modules: Mapping[str, Module], seen: set[str]) -> tuple[str, ...]:
    if _package(target) in HEAVY:
        return (_package(target),)
    for name in _loaded_by(target, modules):
        if name in seen:
            continue
        seen.add(name)
        for imported in modules[name].imports:
            if imported.at_import:
                chain = _chain_to_heavy(imported.target, modules, seen)
                if chain:
                    return (name, *chain)
    return ()


def _forks(module: Module) -> Iterator[Violation]:
    if module.names_fork is not None and any(_package(i.target) == "egglog" for i in module.imports):
        message = f"{module.name} uses egglog and forks; egglog lives in spawned processes"
        yield Violation(str(module.path), module.names_fork, message)


# -------------------------------------------------------------------------------------------------------------- reading source


def _modules(root: Path) -> Iterator[Module]:
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
            yield Module(name, path, tuple(_imports(tree, name, is_package)), _first_fork(tree))


def _imports(tree: ast.AST, module: str, is_package: bool, at_import: bool = True) -> Iterator[Import]:
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield Import(alias.name, node.lineno, at_import)
            case ast.ImportFrom():
                base = _absolute(node, module, is_package)
                for alias in node.names:
                    yield Import(f"{base}.{alias.name}" if base else alias.name, node.lineno, at_import)
            case ast.Call(
                func=ast.Name(id="__import__") | ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name)), *_]
            ):
                yield Import(name, node.lineno, at_import)
            case ast.If() if _is_type_checking(node.test):
                for statement in node.body:
                    yield from _imports(ast.Module([statement], []), module, is_package, at_import=False)
                for statement in node.orelse:
                    yield from _imports(ast.Module([statement], []), module, is_package, at_import)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                yield from _imports(node, module, is_package, at_import=False)
            case _:
                yield from _imports(node, module, is_package, at_import)


def _absolute(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    kept = parts[: len(parts) - node.level + is_package]
    return ".".join((*kept, node.module) if node.module else kept)


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _first_fork(tree: ast.AST) -> int | None:
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value="fork" | "forkserver"):
                return node.lineno
            case ast.Attribute(attr="fork", value=ast.Name(id="os")):
                return node.lineno
    return None


def _package(module: str) -> str:
    return module.partition(".")[0]


def _matches(module: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(module, pattern) for pattern in patterns)


def _loaded_by(target: str, modules: Mapping[str, Module]) -> Iterator[str]:
    """Our modules that importing ``target`` runs: its packages from the outside in, then itself where it is a module."""
    parts = target.split(".")
    for end in range(1, len(parts) + 1):
        name = ".".join(parts[:end])
        if name in modules:
            yield name


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[2]
    found = violations(root)
    for violation in found:
        print(violation, file=sys.stderr)
    print(f"import rules: {len(found)} violation{'' if len(found) == 1 else 's'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
