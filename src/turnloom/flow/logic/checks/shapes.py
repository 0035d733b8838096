"""Whether forks, loops and branches have what they need, and everything can be come to."""

from collections.abc import Iterator, Mapping
from typing import Any

from turnloom.errors import Diagnostic
from turnloom.flow.logic.checks.choices import missing, strangers, values_of, written
from turnloom.flow.logic.checks.problems import is_count, problem
from turnloom.flow.spec.nodes import BranchNode, ForkNode, Line, LoopNode, Node, Placed
from turnloom.kernel.signatures import fits
from turnloom.kernel.values import preview


def check_shapes(paths: Mapping[str, Placed], state: Any) -> Iterator[Diagnostic]:
    """Whether every fork, loop and branch has the paths and functions that it needs."""
    for placed in paths.values():
        for node in placed.line.nodes:
            match node:
                case ForkNode():
                    yield from _check_fork(node)
                case LoopNode():
                    yield from _check_loop(node)
                case BranchNode():
                    yield from _check_branch(node, state)
                case _:
                    pass


def _check_fork(node: ForkNode) -> Iterator[Diagnostic]:
    if len(node.paths) < 2:
        message = f"Fork {node.name!r} has {len(node.paths) or 'no'} path{'s'[len(node.paths) :]}."
        yield problem(node.site, "W107", message, "Give it two or more, or use `then`.")
    for number, line in enumerate(node.paths):
        if not line.nodes:
            message = f"Path {number} of fork {node.name!r} has no steps."
            yield problem(line.site, "W108", message, "Add one, or leave the path out.")
    if node.join is None:
        message = f"Fork {node.name!r} has no `join`."
        yield problem(node.site, "W109", message, "Name the step after its paths: `join=…`.")


def _check_loop(node: LoopNode) -> Iterator[Diagnostic]:
    if not node.body.nodes:
        message = f"Loop {node.name!r} has no steps."
        yield problem(node.site, "W110", message, "Give it a path with at least one.")
    if not is_count(node.max_iterations, 1):
        most = preview(node.max_iterations)
        message = f"Loop {node.name!r} is to be walked {most} times at most."
        yield problem(node.site, "W111", message, "Let `max_iterations` be 1 or more.")
    yield from check_asked(node, node.until, "until")


def _check_branch(node: BranchNode, state: Any) -> Iterator[Diagnostic]:
    if not node.cases:
        message = f"Branch {node.name!r} has no cases."
        yield problem(node.site, "W112", message, "Map values to paths: `{value: path, …}`.")
    yield from check_asked(node, node.on, "on")
    values = values_of(node.on, state)
    if values is None or not node.cases:
        return
    if node.otherwise is None and (left := missing(node, values)):
        message = f"Branch {node.name!r} has no path for {', '.join(map(written, left))}."
        yield problem(node.site, "W113", message, "Add it to the cases, or give `otherwise`.")
    for value in strangers(node, values):
        message = f"Branch {node.name!r} has a path for {written(value)}, which never is the value."
        remedy = f"The value is one of {', '.join(map(written, values))}. Use these."
        yield problem(node.site, "W127", message, remedy)


def check_asked(node: Node, function: object, role: str) -> Iterator[Diagnostic]:
    """Whether a function can be asked about the state."""
    if not callable(function) or not fits(function, 1):
        message = f"`{role}` of {node.name!r} is {preview(function)}."
        yield problem(node.site, "W126", message, "Give a function of the state: `lambda s: …`.")


def check_reach(paths: Mapping[str, Placed], state: Any) -> Iterator[Diagnostic]:
    """Whether something comes after where every way ends."""
    for placed in paths.values():
        lost = _lost(placed.line, state)
        if lost is not None:
            message = f"Nothing leads to {lost.name!r}: every way ends before it."
            yield problem(lost.site, "W114", message, "Remove it, or a `complete()` before it.")


def _lost(line: Line, state: Any) -> Node | None:
    """The first node that is never come to."""
    for at, node in enumerate(line.nodes):
        if line.end is not None and at >= line.end:
            return node
        if _ends(node, state):
            return line.nodes[at + 1] if at + 1 < len(line.nodes) else None
    return None


def ends(line: Line, state: Any) -> bool:
    """Whether every way through a path ends the flow."""
    return line.ends or any(_ends(node, state) for node in line.nodes)


def _ends(node: Node, state: Any) -> bool:
    match node:
        case BranchNode(cases=cases, otherwise=otherwise, on=on):
            lines = [line for _, line in cases] + ([] if otherwise is None else [otherwise])
            values = values_of(on, state)
            is_whole = otherwise is not None or values is not None and not missing(node, values)
            return bool(lines) and is_whole and all(ends(line, state) for line in lines)
        case LoopNode(body=body):
            return ends(body, state)
        case _:
            return False
