"""What a user declares about a conversation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec
from pydantic import Field

from weft.agents.spec import Agent, Script
from weft.kernel.models import Declared
from weft.variables.logic.conditions import Condition
from weft.variables.logic.derivation import Triggers
from weft.variables.spec import Variables

Startup = Literal["AgentDriven", "UserDriven", "BackendOnly"]


class Orchestrator(Declared):
    """How a conversation starts, ends, and goes on when no rule fires."""

    workflow_name: str | None = None
    version: str = "1"
    orchestration_pattern: Literal["DefaultPattern"] = "DefaultPattern"
    startup_mode: Startup = "AgentDriven"
    initial_agent: str | None = None
    initial_message: str | None = None
    initial_message_to_user: str | None = None
    max_turns: int | None = Field(default=None, ge=1)
    human_in_the_loop: bool = False
    database_name: str | None = Field(default=None, min_length=1)


class Handoff(Declared):
    """A rule that passes the turn."""

    source_agent: str
    target_agent: str
    handoff_type: Literal["condition", "after_work"]
    condition_type: Literal["expression"] | None = None
    condition_scope: None = None
    condition: str | None = None
    transition_target: Literal["AgentTarget", "RevertToUserTarget", "TerminateTarget"] | None = None


class Rule(msgspec.Struct, frozen=True):
    """A handoff, ready to be judged; `number` is its place in the file, from 1."""

    number: int
    target: str
    kind: str
    condition: Condition | None
    said: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """A checked conversation."""

    name: str
    version: str
    digest: str
    orchestrator: Orchestrator
    agents: Mapping[str, Agent]
    variables: Variables
    triggers: Triggers
    rules: Mapping[str, tuple[Rule, ...]]
    script: Script


class Floor(msgspec.Struct):
    """Who spoke last, which agent spoke last, and who is to speak next if that is decided."""

    last: str = ""
    agent: str = ""
    next: str | None = None
    reason: str = ""
