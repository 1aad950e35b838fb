"""Names, the signature, and how tensors are used: everything that needs no arithmetic."""

from __future__ import annotations

from math import prod

from leir.checker.facts import ITEM_BYTES, Facts, TensorUse, is_indirect, shown
from leir.ir import DTYPES, GPU_AXES, INT_DTYPES, ROLES, Known
from leir.names import index_name_problem, tensor_name_problem

MAX_EXTENT = 2**31 - 1
MAX_BYTES = 2**63 - 1


def check_signature(facts: Facts) -> None:
    """Report declarations that are none, and inputs that nothing reads."""
    seen: set[str] = set()
    for tensor in facts.signature.tensors:
        name_problem = tensor_name_problem(tensor.name)
        if name_problem is not None:
            facts.report("tensor-name", name_problem)
        problem = f"{tensor.name} is declared twice" if tensor.name in seen else _declaration_problem(tensor)
        if problem is not None:
            facts.report("signature-invalid", problem)
        seen.add(tensor.name)
        if tensor.role != "output" and not facts.tensors[tensor.name].reads:
            facts.report("unread-known", f"nothing reads the {tensor.role} {tensor.name}")


def _declaration_problem(tensor: Known) -> str | None:
    if tensor.dtype not in DTYPES:
        return f"{tensor.name} has the dtype {tensor.dtype!r}; dtypes are {' '.join(DTYPES)}"
    if tensor.role not in ROLES:
        return f"{tensor.name} has the role {tensor.role!r}; roles are {' '.join(ROLES)}"
    if not all(1 <= size <= MAX_EXTENT for size in tensor.shape):
        return f"{tensor.name} has the shape {list(tensor.shape)}; extents are 1 to {MAX_EXTENT}"
    if tensor.range is None:
        return None
    if tensor.dtype not in INT_DTYPES:
        return f"{tensor.name} is {tensor.dtype} and has a range; only integer tensors have one"
    if tensor.range[0] > tensor.range[1]:
        return f"{tensor.name} has the range {list(tensor.range)}, which holds no value"
    return None


def check_names(facts: Facts) -> None:
    """Report names of loops and tensors that the text could not have, and loops without an extent."""
    around: dict[tuple[int, ...], list[str]] = {}
    for node in facts.nodes:
        name, bound = node.loop.name, node.loop.kind == "B"
        problem = index_name_problem(name, bound)
        if problem is not None:
            prefixed = name[:2] in GPU_AXES
            facts.report("bound-prefix" if bound != prefixed else "index-name", problem, node.nest)
        if not 1 <= node.loop.extent <= MAX_EXTENT:
            facts.report("loop-extent", f"the loop {name} has {node.loop.extent} iterations", node.nest)
        outer = [n for k in range(1, len(node.nest) + 1) for n in around.get(node.nest[:k], ())]
        if name in outer:
            facts.report("duplicate-index", f"the index {name} is already used by an enclosing loop", node.nest)
        around.setdefault(node.nest, []).append(name)
    for use in facts.tensors.values():
        problem = tensor_name_problem(use.name)
        first = next(use.accesses, None)
        if problem is not None and use.known is None and first is not None:
            facts.report("tensor-name", problem, first[0].path, first[1].scalar)


def check_tensors(facts: Facts) -> None:
    """Report tensors used against their dtype, scope, rank, role or size."""
    for use in facts.tensors.values():
        if use.known is None and not use.writes:
            site, touch = use.reads[0]
            facts.report("unknown-tensor", f"{use.name} is no input, and nothing writes it", site.path, touch.scalar)
        _check_declared(facts, use)
        _check_rank(facts, use)
        _check_size(facts, use)
        if use.known is not None and use.known.role != "output":
            for site in use.writes:
                facts.report("write-to-input", f"{use.name} has the role {use.known.role}, and is written", site.path)
        elif use.known is None and use.writes and not use.reads:
            facts.report("unread-temporary", f"nothing reads {use.name}", use.writes[0].path)
    for site in facts.sites:
        target = site.equation.target
        if is_indirect(target):
            facts.report("indirect-target", f"the target {shown(target, site.names)} has a tensor in a subscript", site.path)


def _check_declared(facts: Facts, use: TensorUse) -> None:
    """One dtype and one scope per tensor: those of the signature, else those of the first access in the text."""
    found = sorted(use.accesses, key=lambda member: (member[0].path, member[1].scalar is None, member[1].scalar or ()))
    if not found:
        return
    dtype, scope = (use.known.dtype, "g") if use.known else (found[0][1].access.tensor.dtype, found[0][1].access.tensor.scope)
    reported: set[str] = set()
    for site, touch in found:
        tensor = touch.access.tensor
        for code, wrong, message in (
            ("tensor-dtypes", tensor.dtype != dtype, f"{use.name} is {dtype}, and {tensor.dtype} here"),
            ("tensor-scopes", tensor.scope != scope, f"{use.name} has the scope {scope}, and {tensor.scope} here"),
        ):
            if wrong and code not in reported:
                reported.add(code)
                facts.report("known-mismatch" if use.known else code, message, site.path, touch.scalar)


def _check_rank(facts: Facts, use: TensorUse) -> None:
    if use.shape is None:
        return
    for site, touch in use.accesses:
        given = len(touch.access.subscripts)
        if given != len(use.shape):
            message = f"{shown(touch.access, site.names)} has {given} subscripts, and {use.name} has the shape {list(use.shape)}"
            facts.report("rank-mismatch", message, site.path, touch.scalar)


def _check_size(facts: Facts, use: TensorUse) -> None:
    first = next(use.accesses, None)
    if use.shape is None or first is None:
        return
    size = prod(use.shape) * ITEM_BYTES[first[1].access.tensor.dtype]
    if size > MAX_BYTES:
        facts.report("tensor-too-large", f"{use.name} has the shape {list(use.shape)}, which is {size} bytes", first[0].path)
