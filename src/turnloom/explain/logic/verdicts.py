"""Verdicts of subscriptions in words.

What artifacts say is not told. What code said when it failed may quote them: its error is named,
and not quoted.
"""

from turnloom.board.events import ArtifactConsumed
from turnloom.log.spec import Event
from turnloom.reaction.events import ArtifactOpened, JoinExpired, Verdict
from turnloom.reaction.logic.judging import (
    FORWARDED,
    KEY_FAILED,
    LATER,
    NOT_CHOSEN,
    TAKEN,
    WHERE_FAILED,
)

# Why an artifact is not for a subscription; those whose detail quotes nothing say more.
_WHY_NOT = {
    "own": "its agent made it, and does not wake itself",
    "from_agents": "it takes what others make",
    "tags": "it takes what is tagged otherwise",
    "not_visible": "its agent may not see it",
    "no_key": "there is no key to join it by",
    KEY_FAILED: "the key to join it by could not be had",
    "where": "",
    WHERE_FAILED: "",
    NOT_CHOSEN: "",
}
_TELLING = frozenset({"from_agents", "tags", "where", NOT_CHOSEN})


def words_for(verdict: Verdict, then: Event | None) -> str:
    """What a verdict means; `then` is what came next between the artifact and the subscription."""
    if verdict.verdict == TAKEN:
        return _taken(then)
    if verdict.verdict == FORWARDED:
        return "brought to the run that collects for it"
    if verdict.verdict == LATER:
        return _later(then)
    why = _WHY_NOT.get(verdict.verdict, verdict.verdict)
    return f"no: {', '.join(filter(None, (why, _detail(verdict))))}"


def _detail(verdict: Verdict) -> str:
    if verdict.verdict in _TELLING:
        return verdict.detail
    # "condition 2 failed: KeyError: what it said", or "KeyError: what it said"
    told = {WHERE_FAILED: 2, KEY_FAILED: 1}.get(verdict.verdict, 0)
    return ": ".join(verdict.detail.split(": ")[:told])


def _taken(then: Event | None) -> str:
    match then.data if then else None:
        case ArtifactConsumed(run=run) if run:
            return f"taken into run {run}"
        case ArtifactConsumed(turn=turn):
            return f"taken into turn {turn}"
        case JoinExpired():
            return "taken, and waited too long for others"
        case _:
            return "taken, and waits"


def _later(then: Event | None) -> str:
    if then is not None and isinstance(then.data, ArtifactOpened):
        return f"not to be seen yet; offered again after seq {then.seq}"
    return "not to be seen yet"
