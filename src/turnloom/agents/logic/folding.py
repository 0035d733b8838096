"""Folds of turn, message and question events into the state of a run."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from turnloom.agents.events import (
    AgentOutput,
    AgentText,
    MessageSent,
    ModelAnswered,
    ModelFailed,
    QuestionAnswered,
    QuestionAsked,
    QuestionExpiredFact,
    ToolsOffered,
    TurnFinished,
    TurnStarted,
    UserText,
)
from turnloom.agents.spec import SELECTOR, Failure, OpenTurn, Question, QueuedMessage, RunState
from turnloom.assembly.events import FrameAssembled, Span
from turnloom.assembly.logic import estimate, spoken
from turnloom.assembly.spec import Message
from turnloom.board.spec import Public, Visibility
from turnloom.kernel.digests import chain_digest
from turnloom.kernel.values import as_data
from turnloom.log.events import CancelRequested, RunForked
from turnloom.log.spec import Event

# Id prefix of the recorded speaker selection, dropped when the next turn starts.
PICKING = "chat/pick/"

# The visibility of a message that declares none.
EVERYONE = Public()


def add_message(
    state: RunState, seq: int, author: str, text: str, visibility: Visibility | None = None
) -> None:
    """Append a message to the history."""
    state.messages.append(Message(seq, author, text, visibility or EVERYONE))
    state.veiled = state.veiled or visibility not in (None, EVERYONE)
    said = spoken(author, text)
    before = state.history
    state.history = Span(
        before.first or seq,
        seq,
        before.count + 1,
        before.tokens + estimate(said),
        digest=chain_digest(before.digest, said),
    )


def on_turn_started(state: RunState, event: Event) -> None:
    """Open a turn."""
    fact: TurnStarted = event.data
    state.turns = fact.turn
    state.begun = True
    state.status = "running"
    state.open[fact.turn] = state.scopes[f"t{fact.turn}"] = OpenTurn(
        fact.turn, fact.agent, life=state.life
    )
    if state.chat:
        state.chat = {id: it for id, it in state.chat.items() if not id.startswith(PICKING)}


def on_turn_finished(state: RunState, event: Event) -> None:
    """Close an open turn and count it."""
    fact: TurnFinished = event.data
    state.turns_of[fact.agent] = state.turns_of.get(fact.agent, 0) + 1
    state.open.pop(fact.turn, None)
    state.scopes.pop(f"t{fact.turn}", None)
    state.interrupted = 0


def on_agent_text(state: RunState, event: Event) -> None:
    """Append an agent's text."""
    fact: AgentText = event.data
    add_message(state, event.seq, fact.agent, fact.text)


def on_agent_output(state: RunState, event: Event) -> None:
    """Append an agent's output as JSON, with its visibility."""
    fact: AgentOutput = event.data
    add_message(state, event.seq, fact.agent, as_data(fact.output), visibility=fact.visibility)


def on_model_answered(state: RunState, event: Event) -> None:
    """Count a model call of an agent."""
    _count_call(state, event.data)


def _count_call(state: RunState, fact: ModelAnswered | ModelFailed) -> None:
    state.calls_of[fact.agent] = state.calls_of.get(fact.agent, 0) + 1


def on_tools_offered(state: RunState, event: Event) -> None:
    """Store the tools that a server offers."""
    fact: ToolsOffered = event.data
    state.offered[fact.server] = fact.tools
    state.revision += 1
    if fact.error:
        state.failure = Failure(f"tool server {fact.server} is unavailable", fact.error)


def on_model_failed(state: RunState, event: Event) -> None:
    """Count the call; a failed speaker selection stops the run, a failed turn reports itself."""
    fact: ModelFailed = event.data
    _count_call(state, fact)
    if fact.agent == SELECTOR and state.failure is None:
        state.failure = Failure("no speaker could be picked", f"{fact.error}: {fact.message}")


def on_user_text(state: RunState, event: Event) -> None:
    """Append a message of the user, which is queued no longer."""
    fact: UserText = event.data
    add_message(state, event.seq, fact.author, fact.text)
    if state.queue and event.id == text_id(state.queue[0].id):
        state.queue = state.queue[1:]


def text_id(message: str) -> str:
    """The id of the text of a message that was sent."""
    return f"{message}/text"


def on_message_sent(state: RunState, event: Event) -> None:
    """Queue a message; one that interrupts ends the open turn."""
    fact: MessageSent = event.data
    if fact.verdict in ("taken", "queued", "interrupts"):
        state.queue = (*state.queue, QueuedMessage(event.id, fact.text, fact.by))
    if fact.verdict == "interrupts":
        state.interrupted = max(state.open, default=0)


def on_question_asked(state: RunState, event: Event) -> None:
    """Open a question."""
    asked = question_of(event.data, event.seq)
    state.questions[asked.id] = asked


def on_question_answered(state: RunState, event: Event) -> None:
    """Close a question."""
    fact: QuestionAnswered = event.data
    state.status = "running"
    state.questions.pop(fact.question, None)


def on_question_expired(state: RunState, event: Event) -> None:
    """Close a question without an answer."""
    fact: QuestionExpiredFact = event.data
    state.status = "running"
    state.questions.pop(fact.question, None)


def question_of(fact: QuestionAsked, seq: int) -> Question:
    """The question of an event, with its position."""
    return Question(
        fact.question,
        fact.prompt,
        fact.to,
        fact.tool,
        payload=fact.payload,
        component=fact.component,
        display=fact.display,
        schema=fact.schema,
        due=fact.due,
        seq=seq,
        among=fact.among,
    )


def postponed(questions: Mapping[str, Question], by: timedelta) -> dict[str, Question]:
    """Questions with later deadlines."""
    return {
        id: msgspec.structs.replace(each, due=each.due + by) if each.due is not None else each
        for id, each in questions.items()
    }


def open_questions(events: Iterable[Event]) -> list[Question]:
    """The open questions of a run after these events, oldest first."""
    asked: dict[str, Question] = {}
    for event in events:
        if isinstance(event.data, QuestionAsked):
            asked[event.data.question] = question_of(event.data, event.seq)
        elif isinstance(event.data, QuestionAnswered | QuestionExpiredFact):
            asked.pop(event.data.question, None)
        elif isinstance(event.data, CancelRequested):
            asked.clear()
        elif isinstance(event.data, RunForked):
            asked = postponed(asked, event.at - event.data.since)
    return [*asked.values()]


def on_frame_assembled(state: RunState, event: Event) -> None:
    """Store the texts and views of a frame."""
    fact: FrameAssembled = event.data
    if not fact.as_in:
        state.views[fact.view] = (event.seq, fact.segments)
        for segment in fact.segments:
            if segment.text is not None:
                state.texts[segment.digest] = segment.text


FOLDS: dict[type, Callable[[RunState, Any], None]] = {
    FrameAssembled: on_frame_assembled,
    TurnStarted: on_turn_started,
    TurnFinished: on_turn_finished,
    AgentText: on_agent_text,
    UserText: on_user_text,
    MessageSent: on_message_sent,
    QuestionAsked: on_question_asked,
    QuestionAnswered: on_question_answered,
    QuestionExpiredFact: on_question_expired,
    AgentOutput: on_agent_output,
    ModelAnswered: on_model_answered,
    ModelFailed: on_model_failed,
    ToolsOffered: on_tools_offered,
}
