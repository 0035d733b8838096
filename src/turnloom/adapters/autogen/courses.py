"""The course of a group chat, and what follows from it."""

import logging
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from turnloom.adapters.autogen.confidence import Confidence
from turnloom.adapters.autogen.diaries import Diary, Told, Unrecorded
from turnloom.agents.events import AgentText, TurnFinished
from turnloom.agents.spec import RunState
from turnloom.kernel.values import Json, as_object
from turnloom.log.spec import Fact
from turnloom.variables.events import ContextChanged, ContextRefused
from turnloom.variables.logic.derivation import Triggers

# When facts of a chat happen: no trigger that is heard here asks.
SOMETIME = datetime.fromtimestamp(0, UTC)

log = logging.getLogger("turnloom.context")


class Said(NamedTuple):
    """A message of an agent: its words, and whether tools are called, so that its go goes on."""

    text: str
    calls: bool


def read(message: Any) -> Said:
    """A message as chats have it: a text, or an object."""
    content = as_object(message) or {"content": message}
    text = content.get("content")
    return Said(text if isinstance(text, str) else "", bool(content.get("tool_calls")))


class Course:
    """Who said what, whose go it is, how many there were, and which triggers fired.

    `open` is the agent whose go is not over, if there is one; `diary` is told what happens.
    """

    def __init__(self, triggers: Triggers, values: dict[str, Json], confidence: Confidence) -> None:
        self.state = RunState("", values=values)
        self.open = ""
        self.diary = Diary(Unrecorded(), confidence)
        self._triggers = triggers
        self._confidence = confidence

    def recall(self, messages: Iterable[tuple[str, Any]]) -> None:
        """Follow what agents said earlier."""
        for agent, message in messages:
            if self.open not in ("", agent):
                self.finish()
            self.open, said = agent, read(message)
            self.say(agent, said.text)
            if not said.calls:
                self.finish()

    def say(self, agent: str, text: str) -> list[ContextChanged]:
        """What follows from an agent's words."""
        return self.follow(AgentText(self.state.turns + 1, agent, text)) if text else []

    def finish(self, status: str = "done", error: str = "") -> list[ContextChanged]:
        """What follows from the end of the open go."""
        state, agent, self.open = self.state, self.open, ""
        state.turns += 1
        state.turns_of[agent] = state.turns_of.get(agent, 0) + 1
        return self.follow(TurnFinished(state.turns, agent, status, error), f"t{state.turns}/end")

    def follow(self, first: Fact, id: str = "") -> list[ContextChanged]:
        """The changes that a fact brings, and those that these bring; all of it is told."""
        changes, state = list[ContextChanged](), self.state
        waiting = deque[tuple[Fact, Told]]([(first, self.diary.tell(first, id=id))])
        while waiting:
            fact, told = waiting.popleft()
            for change in self._triggers.derive(fact.kind, fact, state, state.fired, SOMETIME):
                match change:
                    case ContextChanged(name, value, writer=writer):
                        known = self.diary.derive(change, told)
                        state.values[name] = value
                        state.fired.add(writer)
                        changes.append(change)
                        waiting.append((change, known))
                    case ContextRefused(name, writer, reason):
                        self.diary.derive(change, told)
                        why = self._confidence.masked(reason)
                        log.warning("%s may not set %s: %s", writer, name, why)
                    case _:
                        raise AssertionError(f"{change!r} needs a clock")
        return changes
