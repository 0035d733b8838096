"""Approvals: their questions, and the decisions in the answers."""

import re
from datetime import datetime
from typing import Any

from turnloom.agents.logic.answers import addressing, read_addressees
from turnloom.agents.spec import Question
from turnloom.flow.events import ApprovalDecided
from turnloom.flow.spec.nodes import ApprovalNode, ApprovalRequest, NodeSequence, Option
from turnloom.flow.spec.progress import OpenApproval
from turnloom.kernel.values import Json, as_object

# The asker of approvals.
APPROVAL = "approval"

APPROVED, REJECTED, DEFERRED, EXPIRED = "approved", "rejected", "deferred", "expired"
DEFER = "defer"


def asking_of(node: ApprovalNode, level: int) -> ApprovalRequest:
    """The request of an approval at an escalation level."""
    asking = node.asking
    for _ in range(level):
        assert isinstance(asking.then, ApprovalRequest)
        asking = asking.then
    return asking


def schema_of(asking: ApprovalRequest) -> Json:
    """The schema of an answer to an approval: an object with a decision and optional instructions,
    or the decision alone."""
    ids = [*(each.id for each in asking.options), DEFER]
    return {
        "type": ["object", "string"],
        "pattern": f"^({'|'.join(map(re.escape, ids))})$",
        "properties": {"decision": {"enum": [*ids]}, "instructions": {"type": "string"}},
        "required": ["decision"],
        "additionalProperties": False,
    }


def question_to(
    node: ApprovalNode, asking: ApprovalRequest, id: str, prompt: str, *, due: datetime | None
) -> Question:
    """The question to the approvers of a request."""
    to, among = addressing(read_addressees(asking.approver))
    return Question(
        id,
        prompt,
        to,
        APPROVAL,
        payload=payload_of(node, asking, prompt),
        schema=schema_of(asking),
        due=due,
        among=among,
    )


def payload_of(node: ApprovalNode, asking: ApprovalRequest, prompt: str) -> dict[str, Json]:
    """The payload of the question to an approver."""
    options: list[Json] = [_shown(each) for each in asking.options]
    return {
        "approval": node.name,
        "approver": asking.asked,
        "prompt": prompt,
        "options": options,
    }


def _shown(option: Option) -> dict[str, Json]:
    label = option.label or option.id
    return {"id": option.id, "label": label, "description": option.description}


def decided(
    node: ApprovalNode, place: str, path: str, asked: OpenApproval, strand: str
) -> ApprovalDecided:
    """The decision of an answer or a timeout; `path` is the position of the approval."""
    asking = asking_of(node, asked.level)
    if asked.status == EXPIRED:
        return _expired(node, place, path, asked, strand=strand)
    answer = as_object(asked.answer) or {"decision": asked.answer}
    option: Any = answer.get("decision")
    chosen = next((each for each in asking.options if each.id == option), None)
    outcome = DEFERRED if chosen is None else REJECTED if chosen.rejects else APPROVED
    return ApprovalDecided(
        node.name,
        place,
        asking.asked,
        outcome,
        option=str(option),
        instructions=str(answer.get("instructions", "")),
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
    to = late.asked if isinstance(late, ApprovalRequest) else ""
    return ApprovalDecided(
        node.name, place, asking.asked, EXPIRED, path=walked, to=to, strand=strand
    )
