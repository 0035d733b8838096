"""Conversations as users declare them, and their state in a run."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BeforeValidator, Field

from turnloom.agents.spec import TERMINATE, USER, Agent, OutputModel, Script, Toolkit
from turnloom.guards.spec import NO_GUARDS, Guards
from turnloom.hooks.spec import Hooks, MessageHook
from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json
from turnloom.variables.logic.conditions import Condition
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.spec import Variables

Startup = Literal["AgentDriven", "UserDriven", "BackendOnly"]
Pattern = Literal[
    "DefaultPattern", "RoundRobinPattern", "AutoPattern", "RandomPattern", "ManualPattern"
]

# Keys of workflows of MozaiksAI that its interface and its services read.
FOREIGN = (
    *("runtime_extensions", "image_generation_enabled", "attachments", "artifacts"),
    *("theme", "themes", "general_chat"),
)

# The same, for agents and for the orchestrator, for the orchestrator alone, and for tools.
FOREIGN_SETUP = (
    *(*FOREIGN, "description", "display_name", "human_input_mode", "llm_config"),
    *("multimodal_inputs_enabled", "image_generation", "sandbox_shell"),
    *("web_search", "web_fetch", "duck_search"),
)
FOREIGN_START = (*FOREIGN_SETUP, "metadata", "triggers", "inputs", "outputs")
FOREIGN_TOOL = (
    *(*FOREIGN, "constraints", "integration"),
    *("ui_contract", "outcome", "bind_to_agent"),
)
FOREIGN_UI = ("workflow_primitive", "realization")
FOREIGN_RULE = ("termination_reason",)
# The version of a file's format, which its later releases write.
FOREIGN_VERSION = ("schema_version",)

# Synonyms in workflows from other systems.
_ALIASES = {
    "context": "expression",
    "context_expression": "expression",
    "llm": "string_llm",
    "before_reply": "pre",
    "immediate": "pre",
    "context_pre": "pre",
    "AgentNameTarget": "AgentTarget",
    "ag2_network": "DefaultPattern",
    "UI_Surface": "UI_Tool",
}
# Synonyms of keys: of agents, of the orchestrator, and of tools.
AGENT_WORDS = {"structured_output": "structured_outputs"}
START_WORDS = {"workflow_startup_mode": "startup_mode"}
TOOL_WORDS = {"auto_tool_call": "auto_invoke"}
_PARTIES = {
    **dict.fromkeys(("user", "user_proxy", "userproxy", "human"), USER),
    **dict.fromkeys(("terminate", "termination", "end", "exit"), TERMINATE),
}


def usual(word: Json) -> Json:
    """Our word for a synonym."""
    return _ALIASES.get(word, word) if isinstance(word, str) else word


def in_our_words(value: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    """An entry with our keys for their synonyms, unless it has ours, too."""
    if not value.keys().isdisjoint(words.values()):
        return {**value}
    return {words.get(key, key): said for key, said in value.items()}


def _said(text: Json) -> Json:
    """None for an empty text; the text of a truth value, as YAML reads it."""
    if isinstance(text, bool):
        return str(text)
    return None if isinstance(text, str) and not text.strip() else text


def party(name: str, agents: Collection[str]) -> str:
    """The agent that a handoff names, whose letters may differ in case; or the user or the end,
    which have synonyms."""
    lowered = name.lower()
    alike = [agent for agent in agents if agent.lower() == lowered]
    if name in (USER, TERMINATE, *agents) or len(alike) > 1:
        return name
    return alike[0] if alike else _PARTIES.get(lowered, name)


def _written(version: Json) -> Json:
    """A version that YAML reads as a number, as text."""
    is_number = isinstance(version, int | float) and not isinstance(version, bool)
    return str(version) if is_number else version


class Orchestrator(Declared):
    """How a conversation starts, ends, and continues when no rule fires."""

    workflow_name: str | None = None
    version: Annotated[str, BeforeValidator(_written)] = "1"
    orchestration_pattern: Annotated[Pattern, BeforeValidator(usual)] = "DefaultPattern"
    startup_mode: Startup = "AgentDriven"
    initial_agent: str | None = None
    initial_message: str | None = None
    initial_message_to_user: str | None = None
    max_turns: int | None = Field(default=None, ge=1)
    human_in_the_loop: bool = False
    database_name: str | None = Field(default=None, min_length=1)
    model: str | None = Field(default=None, min_length=1)
    entry_point: bool = False
    visual_agents: tuple[str, ...] | None = Field(default=None, strict=False)
    guards: Guards = NO_GUARDS


class Handoff(Declared):
    """A rule that passes the turn to another agent, the user or the end."""

    source_agent: str
    target_agent: str
    handoff_type: Literal["condition", "after_work"]
    condition_type: Annotated[
        Literal["expression", "string_llm"] | None, BeforeValidator(usual)
    ] = None
    condition_scope: Annotated[Literal["pre"] | None, BeforeValidator(usual)] = None
    condition: Annotated[str | None, BeforeValidator(_said)] = None
    transition_target: Annotated[
        Literal["AgentTarget", "RevertToUserTarget", "TerminateTarget"] | None,
        BeforeValidator(usual),
    ] = None
    description: str | None = None


class UiConfig(Declared):
    """The agents whose messages the user sees."""

    visual_agents: tuple[str, ...] | None = Field(default=None, strict=False)


class HandoffRule(msgspec.Struct, frozen=True):
    """A checked handoff; `number` is its position in the file, from 1.

    With `llm`, the agent's model judges the text in `said`; with `pre`, the rule is judged before
    the agent replies.
    """

    number: int
    target: str
    kind: str
    condition: Condition | None
    said: str
    llm: bool = False
    pre: bool = False
    description: str = ""


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
    rules: Mapping[str, tuple[HandoffRule, ...]]
    script: Script
    toolkit: Toolkit
    outputs: Mapping[str, OutputModel]
    hooks: Hooks
    message_hooks: tuple[MessageHook, ...] = ()
    visible: frozenset[str] | None = None


class ConversationState(msgspec.Struct):
    """The conversation's part of a run's state: the last speaker, the last agent that spoke, and
    the next speaker if that is decided.

    `choice` is the rule that the last agent's model chose, `picked` the speaker drawn or picked,
    and `streak` the number of replies of each agent since the user's last message. `selected` is
    the candidate that the selection guard chose for the next turn, in `category`.
    """

    last: str = ""
    agent: str = ""
    next: str | None = None
    reason: str = ""
    choice: int = 0
    picked: str = ""
    streak: dict[str, int] = {}
    selected: str = ""
    category: str = ""
