"""What an agent is shown, and how what happens in turns changes what a run knows."""

from weft.agents.events import (
    AgentText,
    QuestionAnswered,
    QuestionAsked,
    TurnFinished,
    TurnStarted,
    UserText,
)
from weft.agents.spec import Agent, OpenTurn, Question, RunState
from weft.assembly.events import FrameAssembled, Span, Withheld
from weft.assembly.logic import View, apart, estimate, piece, spoken, view
from weft.assembly.spec import Message, Piece
from weft.kernel.digests import chain
from weft.log.spec import Event
from weft.variables.logic.exposure import Shown, Values, expose
from weft.variables.spec import Variables


def view_of(agent: Agent, variables: Variables, state: RunState) -> View:
    """What the agent's system text says at this moment, and what it leaves out."""
    told = piece("instruction", f"agents.{agent.name}", agent.instructions, "its instructions")
    exposure = variables.exposures.get(agent.name)
    if exposure is None or not (exposure.template or exposure.variables):
        return view([told], [])
    values = Values(state.values, state.absent, variables.definitions)
    shown = list(expose(exposure, values))
    withheld = [
        Withheld(f"context_variables.{each.variable}", each.withheld, each.detail)
        for each in shown
        if each.withheld
    ]
    around = "heads the variables" if exposure.template is None else "stands around the variables"
    pieces = [_piece(agent, each, around) for each in shown if each.text]
    return view(_placed(exposure.placement, told, pieces), withheld)


def _piece(agent: Agent, shown: Shown, around: str) -> Piece:
    if shown.variable is None:
        origin = f"context_variables.agents.{agent.name}"
        return piece("instruction", origin, shown.text, around)
    origin = f"context_variables.{shown.variable}"
    return piece("variable", origin, shown.text, "exposed to this agent")


def _placed(placement: str, told: Piece, pieces: list[Piece]) -> list[Piece]:
    """Instructions and variables in order; the separator belongs to what comes second."""
    if not pieces:
        return [told]
    if placement == "replace":
        return pieces
    if placement == "prepend":
        return [*pieces, apart(told)] if told.text else pieces
    return [told, apart(pieces[0]), *pieces[1:]] if told.text else pieces


def hear(state: RunState, seq: int, author: str, text: str) -> None:
    """Add a message to what was said."""
    state.messages.append(Message(seq, author, text))
    said = spoken(author, text)
    before = state.history
    state.history = Span(
        before.first or seq,
        seq,
        before.count + 1,
        before.tokens + estimate(said),
        chain(before.digest, said),
    )


def on_turn_started(state: RunState, event: Event) -> None:
    """A turn opens."""
    fact: TurnStarted = event.data
    state.turns = fact.turn
    state.status = "running"
    state.open = OpenTurn(fact.turn, fact.agent, {})


def on_turn_finished(state: RunState, event: Event) -> None:
    """The open turn closes, and counts."""
    fact: TurnFinished = event.data
    state.turns_of[fact.agent] = state.turns_of.get(fact.agent, 0) + 1
    state.open = None


def on_agent_text(state: RunState, event: Event) -> None:
    """An agent is heard."""
    fact: AgentText = event.data
    hear(state, event.seq, fact.agent, fact.text)


def on_user_text(state: RunState, event: Event) -> None:
    """The user is heard."""
    fact: UserText = event.data
    hear(state, event.seq, fact.author, fact.text)


def on_question_asked(state: RunState, event: Event) -> None:
    """A question opens."""
    fact: QuestionAsked = event.data
    state.question = Question(fact.question, fact.prompt, fact.to)


def on_question_answered(state: RunState, event: Event) -> None:
    """The open question closes."""
    fact: QuestionAnswered = event.data
    state.status = "running"
    if state.question is not None and state.question.id == fact.question:
        state.question = None


def on_frame_assembled(state: RunState, event: Event) -> None:
    """Texts and views that the run now holds."""
    fact: FrameAssembled = event.data
    if not fact.as_in:
        state.views[fact.view] = (event.seq, fact.segments)
        for segment in fact.segments:
            if segment.text is not None:
                state.texts[segment.digest] = segment.text


FOLDS = {
    FrameAssembled: on_frame_assembled,
    TurnStarted: on_turn_started,
    TurnFinished: on_turn_finished,
    AgentText: on_agent_text,
    UserText: on_user_text,
    QuestionAsked: on_question_asked,
    QuestionAnswered: on_question_answered,
}
