"""The chat: what a user sees of each kind of event."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from turnloom import ChatEvent
from turnloom.agents import events as agents
from turnloom.agents.spec import USER, WORKFLOW
from turnloom.log import events as log
from turnloom.log.spec import Event
from turnloom.runs.chat import SHOWN, Viewer, chat_view, delta_audience
from turnloom.runtime.logic import FACTS

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ANN = Viewer("ann", "user", "ann", "conversation", frozenset({"q"}))

# The kinds of which a user sees nothing. A kind must be here or be shown.
HIDDEN = {
    *("cancel.requested", "context.loaded", "context.changed", "context.refused"),
    *("context.missed", "context.suppressed", "timer.set", "timer.expired", "frame.assembled"),
    *("context.gathered", "provider.failed", "retrieval.searched", "history.summarised"),
    *("model.called", "model.answered", "model.retried", "model.failed", "model.limited"),
    *("output.refused", "run.limited"),
    *("transfer.chosen", "tool.called", "tool.returned", "tool.failed", "calls.settled"),
    *("tools.offered", "effect.done", "chance.drawn", "speaker.picked", "message_hook.called"),
    *("message_hook.returned", "message_hook.failed", "lifecycle.tool_call"),
    *("lifecycle.tool_result", "lifecycle.tool_error", "route.decided", "artifact.published"),
    *("artifact.refused", "artifact.made", "artifact.consumed", "artifact.offered"),
    *("artifact.opened", "artifact.received", "artifacts.given", "run.opened"),
    *("artifact.forwarded", "join.expired", "batch.closed", "retry.asked", "limit.reached"),
    *("sample.chosen", "state.given", "state.migrated", "step.started", "step.completed"),
    *("step.retried", "step.failed", "step.handled", "step.recovered", "step.skipped"),
    *("step.compensated", "branch.taken", "fork.opened", "fork.failed", "fork.joined"),
    *("loop.passed", "loop.ended", "approval.decided", "flow.stopped", "flow.rewound"),
    *("selection.made", "selection.judged", "budget.reserved", "budget.spent"),
    *("budget.exceeded", "scarcity.changed", "window.neared", "loop.checked", "loop.detected"),
}


def event(fact: Any, actor: str = "ann") -> Event:
    return Event("id", "run", 7, NOON, fact.kind, actor, fact)


def shown(fact: Any, viewer: Viewer = ANN, actor: str = "ann") -> dict[str, Any] | None:
    """What is shown, without what every event has."""
    seen = chat_view(event(fact, actor), viewer)
    if seen is None:
        return None
    assert (seen.seq, seen.at, seen.kind) == (7, NOON, fact.kind)
    plain = msgspec.to_builtins(seen)
    return {name: value for name, value in plain.items() if name not in ("seq", "at", "kind")}


def test_every_kind_is_shown_or_hidden() -> None:
    kinds = {fact.kind for fact in FACTS}
    assert SHOWN | HIDDEN == kinds and not SHOWN & HIDDEN
    for kind in (*HIDDEN, "not.known"):
        assert chat_view(Event("id", "run", 7, NOON, kind, "ann", None), ANN) is None


STARTED = log.RunStarted("Talk", "1", "d", "/root", files={"a": "b"}, code={}, user="ann")
SEEN: list[tuple[Any, dict[str, Any]]] = [
    (STARTED, {"status": "running", "workflow": "Talk"}),
    (log.RunPaused("q", NOON), {"status": "waiting"}),
    (log.RunPaused("", NOON), {"status": "collecting"}),
    (log.RunResumed(), {"status": "running"}),
    (log.RunRetried("dev", ((3, 5),), "t2"), {"status": "running", "voided": ((3, 5),)}),
    (log.RunForked("secret-run", 3, "dev", NOON), {"status": "running"}),
    (
        log.RunForked("mine", 3, "ann", NOON, continues=True),
        {"status": "running", "continues": "mine"},
    ),
    (log.RunFinished("secret"), {"status": "finished"}),
    (log.RunFailed("secret", "secret"), {"status": "failed"}),
    (log.RunCancelled("dev", "secret"), {"status": "cancelled"}),
    (agents.TurnStarted(1, "Eve"), {"turn": 1, "agent": "Eve"}),
    (
        agents.TurnFinished(1, "Eve", "failed", "secret"),
        {"turn": 1, "agent": "Eve", "status": "failed"},
    ),
    (agents.AgentText(1, "Eve", "Hi"), {"turn": 1, "agent": "Eve", "text": "Hi"}),
    (
        agents.AgentOutput(1, "Eve", "Plan", {"a": 1}, tags=("secret",)),
        {"turn": 1, "agent": "Eve", "output": {"a": 1}},
    ),
    (agents.UserText(USER, "Hello"), {"text": "Hello", "by": "ann"}),
    (
        agents.MessageSent("Hello", "ann", "enqueue", "queued"),
        {"text": "Hello", "by": "ann", "status": "queued"},
    ),
    (agents.QuestionAnswered("q", 5, "ann"), {"question_id": "q", "value": 5, "by": "ann"}),
    (agents.QuestionAnswered("q", "secret", "bob"), {"question_id": "q", "by": "bob"}),
    (agents.QuestionExpiredFact("q", "secret"), {"question_id": "q"}),
    (agents.AnswerRefused("q", "ann", "secret"), {"question_id": "q", "by": "ann"}),
]


@pytest.mark.parametrize(("fact", "expected"), SEEN, ids=lambda each: getattr(each, "kind", ""))
def test_what_is_shown_of_a_kind(fact: Any, expected: dict[str, Any]) -> None:
    assert shown(fact) == expected


def test_all_shown_kinds_are_tried() -> None:
    assert {fact.kind for fact, _ in SEEN} | {"question.asked"} == SHOWN
    assert {each.name for each in msgspec.structs.fields(ChatEvent)} >= {
        *(name for _, fields in SEEN for name in fields),
    }


UNSEEN = [
    agents.AgentText(1, "Eve", "secret", hidden=True),
    agents.AgentOutput(1, "Eve", "Plan", "secret", hidden=True),
    agents.UserText(WORKFLOW, "secret"),
    agents.MessageSent("secret", "bob"),
    agents.MessageSent("its text follows", "ann"),
    agents.QuestionAsked("p", "secret", "bob"),
    agents.QuestionAsked("p", "secret", "role:admin"),
    agents.QuestionAsked("p", "secret", "bob or eve", among=("bob", "eve")),
    agents.QuestionAnswered("p", "secret", "bob"),
    agents.QuestionExpiredFact("p"),
    agents.AnswerRefused("q", "bob", "secret"),
]


@pytest.mark.parametrize("fact", UNSEEN, ids=lambda each: each.kind)
def test_what_is_not_for_the_user_is_not_shown(fact: Any) -> None:
    assert shown(fact) is None


@pytest.mark.parametrize("to", ["", "ann", "role:user", "bob or ann"])
def test_a_question_put_to_the_user_is_shown(to: str) -> None:
    among = ("bob", "ann") if " " in to else ()
    asked = shown(agents.QuestionAsked("q", "Ready?", to, payload={"a": 1}, among=among))
    assert asked is not None and asked["question"]["prompt"] == "Ready?"


@pytest.mark.parametrize("form", ["reaction", "flow"])
def test_agents_of_boards_and_flows_do_not_chat(form: str) -> None:
    elsewhere = Viewer("ann", "user", "ann", form)
    for fact in (agents.AgentText(1, "Eve", "a"), agents.AgentOutput(1, "Eve", "P", 1)):
        assert shown(fact, elsewhere) is None
    assert delta_audience(form, "ann") == "" and delta_audience("conversation", "ann") == "ann"
