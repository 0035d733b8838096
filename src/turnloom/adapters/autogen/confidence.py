"""The secrets of a group chat, in nothing that is told of it."""

from collections.abc import Mapping
from typing import Any

import msgspec
from autogen.agentchat.group.context_variables import ContextVariables

from turnloom.kernel.marks import mark
from turnloom.kernel.values import Json
from turnloom.log.spec import Fact
from turnloom.variables.events import ContextChanged
from turnloom.variables.logic.secrets import NO_SECRETS, Secrets, received_fact
from turnloom.variables.logic.types import is_json
from turnloom.variables.spec import Definition


class Confidence:
    """The secrets of a chat: every value that its secret variables had so far.

    The chat's own code may set them at any time, so they are read whenever something is told.
    """

    def __init__(self, context: ContextVariables, definitions: Mapping[str, Definition]) -> None:
        self._context = context
        self._seen: dict[str, list[Json]] = {
            name: [] for name, each in definitions.items() if each.secret
        }
        self._secrets = NO_SECRETS

    @property
    def secrets(self) -> Secrets:
        """The secrets by now."""
        current = [(name, self._context.get(name)) for name in self._seen]
        unseen = [(name, value) for name, value in current if self._is_unseen(name, value)]
        for name, value in unseen:
            self._seen[name].append(value)
        if unseen:
            self._secrets = Secrets({name: seen for name, seen in self._seen.items() if seen})
        return self._secrets

    def _is_unseen(self, name: str, value: Any) -> bool:
        return value is not None and is_json(value) and value not in self._seen[name]

    def masked(self, text: str) -> str:
        """A text without the secrets."""
        return self.secrets.masked(text)

    def shown(self, name: str, value: Json) -> Json:
        """The value of a variable as it may be told."""
        return mark(name) if name in self._seen and value is not None else value

    def masked_fact(self, fact: Fact) -> Fact:
        """A fact without the secrets."""
        secrets = self.secrets
        if isinstance(fact, ContextChanged) and fact.name in self._seen:
            value, previous = (self.shown(fact.name, each) for each in (fact.value, fact.previous))
            fact = msgspec.structs.replace(fact, value=value, previous=previous)
        received = received_fact(fact)
        return secrets.mask(received) if secrets else received
