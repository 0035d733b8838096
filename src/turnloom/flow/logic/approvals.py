"""Approvals: what is asked, and what an answer comes to."""

import re
from typing import Any

from turnloom.flow.events import ApprovalDecided
from turnloom.flow.spec.nodes import ApprovalNode, ApprovalRequest, NodeSequence, Option
from turnloom.flow.spec.progress import OpenApproval
from turnloom.kernel.values import Json, as_object

# What asks for approvals.
APPROVAL = "approval"

APPROVED, REJECTED, DEFERRED, EXPIRED = "approved", "rejected", "deferred", "expired"
DEFER = "defer"


def asking_of(node: ApprovalNode, level: int) -> ApprovalRequest:
    """Whom an approval asks after it was passed on so often."""
    asking = node.asking
    for _ in range(level):
        assert isinstance(asking.then, ApprovalRequest)
        asking = asking.then
    return asking


def schema_of(asking: ApprovalRequest) -> Json:
    """What an answer to an approval looks like: a decision with or without instructions, or, of the
    decision, just its word."""
    ids = [*(each.id for each in asking.options), DEFER]
    return {
        "type": ["object", "string"],
        "pattern": f"^({'|'.join(map(re.escape, ids))})$",
        "properties": {"decision": {"enum": [*ids]}, "instructions": {"type": "string"}},
        "required": ["decision"],
        "additionalProperties": False,
    }


def payload_of(node: ApprovalNode, asking: ApprovalRequest, told: str) -> dict[str, Json]:
    """What an approver is shown."""
    options: list[Json] = [_shown(each) for each in asking.options]
    return {"approval": node.name, "approver": asking.approver, "prompt": told, "options": options}


def _shown(option: Option) -> dict[str, Json]:
    label = option.label or option.id
    return {"id": option.id, "label": label, "description": option.description}


def decided(
    node: ApprovalNode, place: str, path: str, asked: OpenApproval, strand: str
) -> ApprovalDecided:
    """What an answer, or that there was none, comes to; `path` is where the approval stands."""
    asking = asking_of(node, asked.level)
    if asked.status == EXPIRED:
        return _expired(node, place, path, asked, strand=strand)
    said = as_object(asked.answer) or {"decision": asked.answer}
    option: Any = said.get("decision")
    chosen = next((each for each in asking.options if each.id == option), None)
    outcome = DEFERRED if chosen is None else REJECTED if chosen.rejects else APPROVED
    return ApprovalDecided(
        node.name,
        place,
        asking.approver,
        outcome,
        option=str(option),
        instructions=str(said.get("instructions", "")),
        by=asked.by,
        path=f"{path}.rejected" if outcome == REJECTED and node.on_rejection else "",
        strand=strand,
    )


def _expired(
    node: ApprovalNode, place: str, path: str, asked: OpenApproval, strand: str
) -> ApprovalDecided:
    asking = asking_of(node, asked.level)
    late = asking.then
    walked = f"{path}.late.{asked.level}" if isinstance(late, NodeSequence) else ""
    to = late.approver if isinstance(late, ApprovalRequest) else ""
    return ApprovalDecided(
        node.name, place, asking.approver, EXPIRED, path=walked, to=to, strand=strand
    )
