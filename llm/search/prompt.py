"""What a model is told before it answers: the program, its known tensors, how fast it is, where it came from, what was tried and
failed, the machine's limits, and the legal steps by number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from leir.ir import Known
from leir.printer import print_program
from llm.chat import SYSTEM, Message
from llm.search.node import Attempt, Node
from rewrite.enumerate import Found
from rules.catalogue import find
from rules.strategy import Target

SHOWN_STEPS = 60
SHOWN_ATTEMPTS = 6
SHOWN_DETAIL = 200

LIMITS: dict[Target, str] = {
    "llvm": (
        "The target is a CPU. P loops run on threads and B loops as plain loops; V is for an innermost loop of unit stride, "
        "at most 16 bytes an access."
    ),
    "cuda": (
        "The target is an NVIDIA GPU. Every expression is a kernel. blockIdx: bx up to 2147483647, by and bz up to 65535. "
        "threadIdx: tx and ty up to 1024, tz up to 64, their product at most 1024. Shared memory: 48 KiB a block. An s tensor "
        "lives in one block of one kernel, an l tensor in one thread. V is for at most 16 bytes an access, of unit stride."
    ),
}

TASK = (
    "Make the program faster by one single-step optimisation. It must compute the same outputs. Do not undo an earlier step, and "
    "do not repeat what was tried. Think first. Then answer between <answer> and </answer>, with a JSON object of one of two forms:"
    "\n"
    '{"step": NUMBER} takes one of the numbered legal steps;\n'
    '{"strategy": NAME, "leir": TEXT} writes the whole new program, which will be checked and run.'
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """``shown`` are the legal steps in the order of their numbers, from 1."""

    messages: tuple[Message, ...]
    shown: tuple[Found, ...]


def build_prompt(node: Node, legal: Sequence[Found], target: Target) -> Prompt:
    """The prompt to go on from ``node``. The same node with the same attempts gives the same prompt."""
    shown = shown_steps(legal)
    blocks = (_program(node), _standing(node), _history(node), LIMITS[target], _steps(shown, len(legal)), TASK)
    text = "\n\n".join(block for block in blocks if block)
    return Prompt(({"role": "system", "content": SYSTEM}, {"role": "user", "content": text}), shown)


def shown_steps(legal: Sequence[Found], limit: int = SHOWN_STEPS) -> tuple[Found, ...]:
    """At most ``limit`` of the legal steps, in their order; where there are more, every strategy gets its turn."""
    if len(legal) <= limit:
        return tuple(legal)
    groups: dict[str, list[int]] = defaultdict(list)
    for number, found in enumerate(legal):
        groups[found.step.strategy].append(number)
    chosen = list(_in_turn(groups.values()))[:limit]
    return tuple(legal[number] for number in sorted(chosen))


def _in_turn(groups: Iterable[list[int]]) -> Iterator[int]:
    queues = [list(group) for group in groups]
    while queues:
        for queue in queues:
            yield queue.pop(0)
        queues = [queue for queue in queues if queue]


def _program(node: Node) -> str:
    program = node.program
    known = "\n".join(f"- {_known(tensor)}" for tensor in program.signature.tensors)
    return (
        f"Program {program.name}:\n{print_program(program)}\n\n"
        f"Known tensors, which keep their names, shapes, dtypes and scopes:\n{known}"
    )


def _standing(node: Node) -> str:
    if node.parent is None:
        return f"It is the original program, and takes {_time(node.seconds)}."
    root = node.path[0].parent
    assert root is not None
    came = node.proposal.step if node.proposal is not None else None
    how = "a program that you wrote" if came is None else f"the step {came}"
    return (
        f"It takes {_time(node.seconds)}, {_ratio(root.seconds, node.seconds)} the original's speed, after {node.depth} "
        f"step{'' if node.depth == 1 else 's'}. It came by {how} from its parent, which takes {_time(node.parent.seconds)}:\n"
        f"{print_program(node.parent.program)}"
    )


def _history(node: Node) -> str:
    if not node.attempts:
        return ""
    recent = node.attempts[-SHOWN_ATTEMPTS:]
    failed = sum(attempt.score is None or attempt.score.seconds is None for attempt in node.attempts)
    lines = [f"Tried from this program: {len(node.attempts)}, of which {failed} failed. The latest, oldest first:"]
    return "\n".join([*lines, *(f"- {_attempt(attempt)}" for attempt in recent)])


def _attempt(attempt: Attempt) -> str:
    proposal, score = attempt.proposal, attempt.score
    what = str(proposal.step) if proposal.step is not None else "a program that you wrote"
    if attempt.repeat:
        return f"{what}: this program was reached before"
    if proposal.program is None:
        return f"{proposal.verdict}: {proposal.detail[:SHOWN_DETAIL]}"
    assert score is not None
    if score.seconds is None:
        return f"{what}: {score.status}: {score.detail[:SHOWN_DETAIL]}"
    return f"{what}: takes {_time(score.seconds)}"


def _steps(shown: Sequence[Found], total: int) -> str:
    if not shown:
        return "No strategy has a legal step here."
    more = f", {len(shown)} of {total}" if total > len(shown) else ""
    lines = [f"Legal single steps{more} (strategy, place, arguments):"]
    lines += [f"{number}. {found.step}" for number, found in enumerate(shown, 1)]
    lines.append("What the strategies do:")
    lines += [f"- {name}: {_summary(name)}" for name in dict.fromkeys(found.step.strategy for found in shown)]
    return "\n".join(lines)


def _summary(name: str) -> str:
    strategy = find(name)
    assert strategy is not None
    return strategy.summary


def _known(tensor: Known) -> str:
    span = f", values in [{tensor.range[0]}, {tensor.range[1]}]" if tensor.range else ""
    return f"{tensor.name}: {tensor.role}, {tensor.dtype}[{','.join(map(str, tensor.shape))}]{span}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.4g} us"


def _ratio(before: float, now: float) -> str:
    return f"{before / now:.3g} times"
