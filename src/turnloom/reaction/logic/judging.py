"""Whether an artifact is for a subscription, as far as that can be computed."""

from datetime import datetime

from turnloom.board.logic.matching import tagged
from turnloom.board.logic.seeing import visible_from
from turnloom.board.spec import Artifact
from turnloom.reaction.events import Verdict
from turnloom.reaction.spec import Member, Subscription

TAKEN = "taken"
FORWARDED = "forwarded"
LATER = "later"
NOT_CHOSEN = "not_chosen"
# Code of users failed, so that nothing was decided.
WHERE_FAILED, KEY_FAILED = FAILED = ("where_failed", "key_failed")


def judge(
    subscription: Subscription, member: Member, tenant: str, artifact: Artifact, now: datetime
) -> Verdict:
    """What a subscription of a tenant's board makes of an artifact of one of its types, before it
    is asked itself."""

    def verdict(what: str, detail: str = "", opens: datetime | None = None) -> Verdict:
        return Verdict(subscription.id, what, detail, opens=opens)

    producer = artifact.produced_by
    if producer == member.agent.name and not member.wakes_itself:
        return verdict("own", "it made this itself")
    if subscription.from_agents is not None and producer not in subscription.from_agents:
        return verdict("from_agents", f"made by {producer}")
    if subscription.tags is not None and not tagged(subscription.tags, artifact.tags):
        return verdict("tags", f"tagged {', '.join(sorted(artifact.tags)) or 'with nothing'}")
    opens = visible_from(artifact.visibility, member.reader(tenant))
    if opens is None:
        return verdict("not_visible")
    return verdict(TAKEN) if opens <= now else verdict(LATER, opens=opens)
