"""Conversations from texts, and what is said in them, without a driver or a store.

The one place in which tests fold facts into a state and have a conversation decide.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from textwrap import dedent

from turnloom.adapters.files import restore_folder
from turnloom.agents.events import AgentText, TurnFinished, TurnStarted, UserText
from turnloom.conversation.events import RouteDecided
from turnloom.conversation.logic.checking import check, unreadable
from turnloom.conversation.logic.routing import ConversationForm
from turnloom.conversation.spec import Conversation
from turnloom.errors import Diagnostic
from turnloom.kernel.values import Json
from turnloom.log.spec import Event, Fact, RunKey
from turnloom.runs.actions import Action, Ask, Begin, Finish
from turnloom.runtime.logic import derive, evolve, fresh
from turnloom.variables.events import ContextLoaded, ContextSuppressed, InitialValue

AT = datetime(2026, 1, 1, tzinfo=UTC)


def examine(files: Mapping[str, str]) -> tuple[Conversation | None, list[Diagnostic]]:
    """The conversation that texts declare, and everything there is to say about them."""
    texts = {file: dedent(text).strip("\n") for file, text in files.items()}
    folder, problems = restore_folder("Flow", "Flow", texts, {})
    conversation, found = check(folder, unreadable(problems))
    return conversation, sorted([*problems, *found])


def first_decision(conversation: Conversation) -> Action | None:
    """What comes first of all."""
    workflow = ConversationForm(conversation)
    return workflow.decide(fresh(RunKey("local", "r"), workflow))


class Talk:
    """A conversation as it goes: facts come in, decisions go out."""

    def __init__(self, files: Mapping[str, str], **values: Json) -> None:
        conversation, problems = examine(files)
        assert conversation is not None, problems
        self.workflow = ConversationForm(conversation)
        self.state = fresh(RunKey("local", "r"), self.workflow)
        declared = conversation.variables.definitions.values()
        defaults = {each.name: getattr(each.source, "default", None) for each in declared}
        given = {**defaults, **values}
        self.record(
            ContextLoaded(tuple(InitialValue(name, "", each) for name, each in given.items()))
        )

    def record(self, fact: Fact) -> None:
        """Put a fact on record with all that is derived from it."""
        facts = [fact]
        while facts:
            event = self._event(facts.pop(0))
            evolve(self.workflow, self.state, event)
            facts += derive(self.workflow, self.state, event)

    def _event(self, fact: Fact) -> Event:
        seq = self.state.position + 1
        return Event(f"e{seq}", "r", seq, AT, fact.kind, "test", fact)

    def suppress(self, *names: str) -> None:
        """Take variables away, as production does."""
        self.record(ContextSuppressed(names, "production has none"))

    def route(self) -> RouteDecided:
        """The route that is decided now, on record."""
        action = self.workflow.decide(self.state)
        assert action is not None
        ((_, route),) = action.facts
        assert isinstance(route, RouteDecided)
        assert to(action) == route.target
        self.record(route)
        return route

    def say(self, agent: str, text: str = "") -> None:
        """A whole turn of an agent."""
        turn = self.state.turns + 1
        self.record(TurnStarted(turn, agent))
        if text:
            self.record(AgentText(turn, agent, text))
        self.record(TurnFinished(turn, agent))

    def answer(self, text: str, author: str = "user") -> None:
        """The user says something."""
        self.record(UserText(author, text))

    def after(self, agent: str, text: str = "") -> RouteDecided:
        """The route that follows a turn."""
        self.say(agent, text)
        return self.route()


def to(action: Action) -> str:
    """Whom an action gives the turn."""
    match action:
        case Begin(opens=((_, TurnStarted(agent=agent)),)):
            return agent
        case Ask():
            return "user"
        case Finish():
            return "terminate"
