"""Whether people can be asked for approval as it is declared."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from turnloom.errors import Diagnostic
from turnloom.flow.logic.approvals import DEFER
from turnloom.flow.logic.checks.problems import problem
from turnloom.flow.logic.checks.settings import check_timeout
from turnloom.flow.logic.checks.shapes import check_asked, ends
from turnloom.flow.spec.nodes import ApprovalNode, Asking, Line, Node, Placed
from turnloom.kernel.values import preview

# Parts of paths after whose end the flow continues behind the node that they belong to.
_REJOINING = frozenset({"case", "low", "rejected", "late"})


def check_approvals(paths: Mapping[str, Placed], state: Any) -> Iterator[Diagnostic]:
    """Whether every approval asks somebody, who has a choice."""
    for placed in paths.values():
        for at, node in enumerate(placed.line.nodes):
            if isinstance(node, ApprovalNode):
                yield from _check(node)
                yield from _check_refusals(node, _next(paths, placed, at), state)


def _check_refusals(node: ApprovalNode, after: Node | None, state: Any) -> Iterator[Diagnostic]:
    """Whether a rejection, or that there is no answer, leads where an approval does."""
    asked = [*_asked(node)]
    refusals = [
        ("on_rejection", node.on_rejection, any(o.rejects for each in asked for o in each.options)),
        ("on_timeout", asked[-1].then, asked[-1].timeout is not None),
    ]
    for setting, line, can_be in refusals:
        if after is not None and can_be and isinstance(line, Line) and not ends(line, state):
            message = (
                f"`{setting}` of {node.name!r} leads to {after.name!r} at its end, as an approval "
                "does."
            )
            remedy = f"End the flow there: `{setting}=Path(…).complete()`."
            yield problem(node.site, "W132", message, remedy, "warning")


def _next(paths: Mapping[str, Placed], placed: Placed, at: int) -> Node | None:
    """What follows a node where nothing is decided in between; after the last one of a path that
    is walked for a while, what follows that."""
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


def _asked(node: ApprovalNode) -> Iterator[Asking]:
    """Whom an approval asks, one after the other."""
    asking = node.asking
    yield asking
    while isinstance(asking.then, Asking):
        asking = asking.then
        yield asking


def _check_asking(node: ApprovalNode, asking: Asking) -> Iterator[Diagnostic]:
    approver = cast(object, asking.approver)
    if not isinstance(approver, str) or not approver.strip():
        message = f"Approval {node.name!r} asks {preview(approver)}."
        yield problem(node.site, "W126", message, "Say who is asked.")
    yield from check_timeout(f"`timeout` of approval {node.name!r}", asking.timeout, node.site)
    if asking.then is not None and asking.timeout is None:
        message = f"`on_timeout` of {node.name!r} has no effect: it waits without an end."
        yield problem(node.site, "W127", message, "Add `timeout=…`.")
    if not isinstance(asking.context, str):
        yield from check_asked(node, asking.context, "context")
    ids = [option.id for option in asking.options]
    if len({*ids}) < len(ids) or DEFER in ids or not all(ids):
        message = f"The options of {node.name!r} are {', '.join(map(repr, ids))}."
        remedy = f"Give each an id of its own; {DEFER!r} can always be said."
        yield problem(node.site, "W126", message, remedy)
    if all(option.rejects for option in asking.options):
        message = f"Every option of {node.name!r} rejects."
        yield problem(node.site, "W126", message, "Add one that approves.")
