"""Whether people can be asked for approval as it is declared."""

from collections.abc import Iterator, Mapping
from typing import cast

from turnloom.errors import Diagnostic
from turnloom.flow.logic.approvals import DEFER
from turnloom.flow.logic.checks.problems import problem
from turnloom.flow.logic.checks.settings import check_timeout
from turnloom.flow.logic.checks.shapes import check_asked
from turnloom.flow.spec.nodes import ApprovalNode, Asking, Placed
from turnloom.kernel.values import preview


def check_approvals(paths: Mapping[str, Placed]) -> Iterator[Diagnostic]:
    """Whether every approval asks somebody, who has a choice."""
    for placed in paths.values():
        for node in placed.line.nodes:
            if isinstance(node, ApprovalNode):
                yield from _check(node)


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
