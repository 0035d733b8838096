"""Checks of forks, loops, branches and approvals, and of the order of builder calls."""

import dis
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from turnloom.agents.logic.answers import read_addressees
from turnloom.assembly.logic.states import type_at
from turnloom.errors import Diagnostic
from turnloom.flow.logic.approvals import DEFER
from turnloom.flow.logic.checks.problems import is_count, problem
from turnloom.flow.logic.checks.settings import check_timeout
from turnloom.flow.logic.plans import lines_of
from turnloom.flow.spec.nodes import (
    ApprovalNode,
    ApprovalRequest,
    BranchNode,
    DeclaredFlow,
    ForkNode,
    LoopNode,
    MisplacedCall,
    Node,
    NodeSequence,
    PlacedPath,
)
from turnloom.kernel.code import fits
from turnloom.kernel.values import preview

# The instructions of a function that only reads attributes of its argument.
_READING = {"RESUME", "LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_ATTR", "RETURN_VALUE"}


def read_path(function: Any) -> tuple[str, ...]:
    """The chain of attributes that a function reads, if it does nothing else; the function is not
    called."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_argcount != 1:
        return ()
    instructions = [*dis.get_instructions(code)]
    if {each.opname for each in instructions} - _READING:
        return ()
    return tuple(each.argval for each in instructions if each.opname == "LOAD_ATTR")


def values_of(on: Any, state: Any) -> tuple[Any, ...] | None:
    """Every value of a branch's function, if they are finite."""
    return _values(_type_of(on, state))


def _type_of(on: Any, state: Any) -> Any:
    """The type of a function's result, by its annotation or by the attributes that it reads."""
    try:
        hint = get_type_hints(on).get("return", Any)
    except (NameError, TypeError, AttributeError):
        hint = Any
    path = read_path(on)
    return type_at(state, path).type if hint is Any and path and state is not None else hint


def _values(of: Any) -> tuple[Any, ...] | None:
    if of is bool:
        return True, False
    if of is NoneType:
        return (None,)
    if isinstance(of, type) and issubclass(of, Enum):
        return tuple(of)
    if get_origin(of) is Literal:
        return get_args(of)
    if get_origin(of) in (Union, UnionType):
        found = [_values(each) for each in get_args(of)]
        return None if None in found else tuple(each for values in found for each in values or ())
    return None


def missing(node: BranchNode, values: Iterable[Any]) -> list[Any]:
    """The values that a branch has no path for."""
    return [value for value in values if not _has([case for case, _ in node.cases], value)]


def strangers(node: BranchNode, values: Sequence[Any]) -> list[Any]:
    """The cases of a branch that never occur."""
    return [case for case, _ in node.cases if not _has(values, case)]


def _has(values: Iterable[Any], value: Any) -> bool:
    return any(each == value and type(each) is type(value) for each in values)


def written(value: Any) -> str:
    """A value as Python source."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    return preview(value)


def check_shapes(paths: Mapping[str, PlacedPath], state: Any) -> Iterator[Diagnostic]:
    """Check the paths and functions of every fork, loop and branch."""
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
        yield problem(node.site, "W107", message, "Give two or more paths, or use `then`.")
    for number, line in enumerate(node.paths):
        if not line.nodes:
            message = f"Path {number} of fork {node.name!r} has no steps."
            yield problem(line.site, "W108", message, "Add a step, or remove the path.")
    if node.join is None:
        message = f"Fork {node.name!r} has no `join`."
        yield problem(node.site, "W109", message, "Name the step after its paths: `join=…`.")


def _check_loop(node: LoopNode) -> Iterator[Diagnostic]:
    if not node.body.nodes:
        message = f"Loop {node.name!r} has no steps."
        yield problem(node.site, "W110", message, "Give a path with at least one step.")
    if not is_count(node.max_iterations, 1):
        most = preview(node.max_iterations)
        message = f"`max_iterations` of loop {node.name!r} is {most}."
        yield problem(node.site, "W111", message, "Give a whole number of 1 or more.")
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
        message = f"Branch {node.name!r} has a path for {written(value)}, which never occurs."
        remedy = f"Use one of {', '.join(map(written, values))}."
        yield problem(node.site, "W127", message, remedy)


def check_asked(node: Node, function: object, role: str) -> Iterator[Diagnostic]:
    """Check that a function takes the state."""
    if not callable(function) or not fits(function, 1):
        message = f"`{role}` of {node.name!r} is {preview(function)}."
        yield problem(node.site, "W126", message, "Give a function of the state: `lambda s: …`.")


def check_reach(paths: Mapping[str, PlacedPath], state: Any) -> Iterator[Diagnostic]:
    """Check that every node is reachable."""
    for placed in paths.values():
        lost = _lost(placed.line, state)
        if lost is not None:
            message = f"{lost.name!r} is unreachable: every path ends before it."
            yield problem(lost.site, "W114", message, "Remove it, or a `complete()` before it.")


def _lost(line: NodeSequence, state: Any) -> Node | None:
    """The first unreachable node."""
    for at, node in enumerate(line.nodes):
        if line.end is not None and at >= line.end:
            return node
        if _ends(node, state):
            return line.nodes[at + 1] if at + 1 < len(line.nodes) else None
    return None


def ends(line: NodeSequence, state: Any) -> bool:
    """Whether a path always ends the flow."""
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


# The maximum nesting of paths: flows are checked, drawn and run recursively.
DEEPEST = 100


def check_calls(declared: DeclaredFlow) -> Iterator[Diagnostic]:
    """Check the order of the builder calls."""
    early = [each for each in declared.misplaced if not each.after]
    for each in early[:1]:
        yield problem(
            each.site,
            "W101",
            f"Flow {declared.name!r} starts with `{each.call}`.",
            "Start it with `start_with`.",
        )
    for each in declared.misplaced:
        if each.after:
            yield _late(declared.name, each)
    if not declared.main.nodes:
        message = f"Flow {declared.name!r} has no steps."
        yield problem(declared.main.site, "W104", message, "Add one with `start_with`.")


def _late(flow: str, misplaced: MisplacedCall) -> Diagnostic:
    call, site, after = misplaced
    if call == after:
        code = "W102" if call == "start_with" else "W103"
        remedy = "Use `then` for the other step." if code == "W102" else "Keep one of them."
        return problem(site, code, f"Flow {flow!r} has `{call}` twice.", remedy)
    message = f"In flow {flow!r}, `{call}` comes after `{after}`."
    return problem(site, "W103", message, f"Put it before `{after}`.")


def check_repeats(paths: Mapping[str, PlacedPath]) -> Iterator[Diagnostic]:
    """Check that no path repeats a call, and that none is a flow."""
    for placed in paths.values():
        for call, site in placed.line.again:
            yield problem(site, "W103", f"A path has `{call}` twice.", "Keep one of them.")
        if placed.line.flow is not None:
            message = (
                f"Flow {placed.line.flow!r} is used as a path. Its timeout, variables, hooks, "
                "guards and `on_failure` would be ignored."
            )
            yield problem(
                placed.line.site, "W130", message, "Use a path with its steps: `Path(…)`."
            )


def check_nesting(declared: DeclaredFlow) -> Iterator[Diagnostic]:
    """Check that no path contains itself, or is nested too deeply."""
    for line in (declared.main, declared.failure):
        if line is not None:
            yield from _nested(line, ())


def _nested(line: NodeSequence, around: tuple[int, ...]) -> Iterator[Diagnostic]:
    if id(line) in around:
        message = "A path contains itself."
        yield problem(line.site, "W115", message, "Build a separate path, or use `repeat_until`.")
        return
    if len(around) > DEEPEST:
        message = f"A path is nested in more than {DEEPEST} others."
        remedy = "Put the cases into one branch, or use `repeat_until`."
        yield problem(line.site, "W129", message, remedy)
        return
    inner = [each for node in line.nodes for _, _, each in lines_of(node)]
    for each in (*inner, *([line.handler] if line.handler is not None else [])):
        yield from _nested(each, (*around, id(line)))


# Paths at whose end the flow continues after the node that they belong to.
_REJOINING = frozenset({"case", "low", "rejected", "late"})


def check_approvals(paths: Mapping[str, PlacedPath], state: Any) -> Iterator[Diagnostic]:
    """Check the approvers, options and paths of every approval."""
    for placed in paths.values():
        for at, node in enumerate(placed.line.nodes):
            if isinstance(node, ApprovalNode):
                yield from _check(node)
                yield from _check_refusals(node, _next(paths, placed, at), state)


def _check_refusals(node: ApprovalNode, after: Node | None, state: Any) -> Iterator[Diagnostic]:
    """Warn if a rejection or a timeout leads to the same step as an approval."""
    asked = [*_asked(node)]
    refusals = [
        ("on_rejection", node.on_rejection, any(o.rejects for each in asked for o in each.options)),
        ("on_timeout", asked[-1].then, asked[-1].timeout is not None),
    ]
    for setting, line, can_be in refusals:
        if (
            after is not None
            and can_be
            and isinstance(line, NodeSequence)
            and not ends(line, state)
        ):
            message = (
                f"After `{setting}` of {node.name!r}, the flow continues with {after.name!r}, as "
                "after an approval."
            )
            remedy = f"End the flow there: `{setting}=Path(…).complete()`."
            yield problem(node.site, "W132", message, remedy, severity="warning")


def _next(paths: Mapping[str, PlacedPath], placed: PlacedPath, at: int) -> Node | None:
    """The node after another; after the last of a path that rejoins, the node after that path."""
    if at + 1 < len(placed.line.nodes):
        return placed.line.nodes[at + 1]
    if placed.line.ends or placed.part not in _REJOINING:
        return None
    return _next(paths, paths[placed.owner], placed.at)


def _check(node: ApprovalNode) -> Iterator[Diagnostic]:
    asked = [*_asked(node)]
    for asking in asked:
        yield from _check_asking(node, asking)
    options = [option for asking in asked for option in asking.options]
    if node.on_rejection is not None and not any(option.rejects for option in options):
        message = f"`on_rejection` of {node.name!r} has no effect: no option rejects."
        yield problem(node.site, "W127", message, "Add `Option(…, rejects=True)`.")


def _asked(node: ApprovalNode) -> Iterator[ApprovalRequest]:
    """The requests of an approval, one after the other."""
    asking = node.asking
    yield asking
    while isinstance(asking.then, ApprovalRequest):
        asking = asking.then
        yield asking


def _check_asking(node: ApprovalNode, asking: ApprovalRequest) -> Iterator[Diagnostic]:
    try:
        read_addressees(asking.approver)
    except ValueError as error:
        message = f"Approval {node.name!r} asks {preview(asking.approver)}: {error}."
        yield problem(node.site, "W126", message, "Name the approver.")
    yield from check_timeout(f"`timeout` of approval {node.name!r}", asking.timeout, node.site)
    if asking.then is not None and asking.timeout is None:
        message = f"`on_timeout` of {node.name!r} has no effect: it has no timeout."
        yield problem(node.site, "W127", message, "Add `timeout=…`.")
    if not isinstance(asking.context, str):
        yield from check_asked(node, asking.context, "context")
    ids = [option.id for option in asking.options]
    if len({*ids}) < len(ids) or DEFER in ids or not all(ids):
        message = f"The options of {node.name!r} are {', '.join(map(repr, ids))}."
        remedy = f"Give each a unique id; {DEFER!r} is always available."
        yield problem(node.site, "W126", message, remedy)
    if all(option.rejects for option in asking.options):
        message = f"Every option of {node.name!r} rejects."
        yield problem(node.site, "W126", message, "Add one that approves.")
