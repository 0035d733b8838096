"""What each field that can be declared does: one change of one value, and what is seen of it.

An effect stands at the path of its field in a small workflow that is run twice, once as it is and
once with the other value there. `look` says where to look; `before` and `after` what is seen.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from os.path import dirname
from typing import Any

from tests.parity.runs import BASE, Seen
from turnloom.cli.programs import entrance
from turnloom.errors import UsageError
from turnloom.variables.logic.exposure import HEADER

Path = tuple[str | int, ...]
ABSENT = object()


@dataclass(frozen=True)
class Effect:
    """One field with another value, and the difference that it makes."""

    at: Path
    to: Any
    look: Callable[[Seen], Any]
    before: Any
    after: Any
    given: Mapping[Path, Any] = field(default_factory=dict[Path, Any])
    explained: tuple[str, ...] = ()

    def documents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The workflow as it is, and with the other value."""
        base = deepcopy(BASE)
        for path, value in self.given.items():
            put(base, path, deepcopy(value))
        changed = deepcopy(base)
        put(changed, self.at, deepcopy(self.to))
        return base, changed


def put(root: Any, path: Path, value: Any) -> None:
    """Set or remove the value at a path."""
    for step in path[:-1]:
        root = root[step]
    if value is ABSENT:
        del root[path[-1]]
    else:
        root[path[-1]] = value


def codes(seen: Seen) -> list[str]:
    return seen.codes


def spoke(seen: Seen) -> str:
    return seen.spoke


def routes(seen: Seen) -> str:
    return seen.routes


def said(seen: Seen) -> list[str]:
    return seen.said


def changes(seen: Seen) -> list[tuple[str, Any]]:
    return seen.changes


def system(agent: str) -> Callable[[Seen], str]:
    return lambda seen: seen.system(agent)


def models(agent: str) -> Callable[[Seen], str | None]:
    return lambda seen: next(task.model for task in seen.tasks if task.agent == agent)


def offered(agent: str) -> Callable[[Seen], list[str]]:
    return lambda seen: [tool.name for tool in seen.tools(agent)]


def first(name: str) -> Callable[[Seen], Any]:
    return lambda seen: seen.first(name)


def data(kind: str, name: str) -> Callable[[Seen], list[Any]]:
    return lambda seen: seen.data(kind, name)


def is_entrance(seen: Seen) -> bool:
    """Whether who runs the folder above runs this workflow."""
    (root,) = seen.data("run.started", "root")
    try:
        return entrance(dirname(root)) == root
    except UsageError:
        return False


# What stands above the variables in a system text; what follows is seen of a run.
HEAD = f"\n\n{HEADER}"
SETUP: Path = ("orchestrator",)
A: Path = ("agents", "agents", "A")
DEFINITIONS: Path = ("context_variables", "definitions")
GO: Path = (*DEFINITIONS, "go", "source")
TRIGGER: Path = (*GO, "triggers", 0)
MATCH: Path = (*TRIGGER, "match")
EXPOSED: Path = ("context_variables", "agents")
RULES: Path = ("handoffs", "handoff_rules")

# The run as it is: A greets, the user answers, A says the word, B ends it.
USUAL = "A user A B terminate"
NEVER = "A user A user A user"
CHANGED = [("go", True)]

SECTIONS = [{"id": "role", "heading": "Role", "content": "Be A."}, {"id": "aim", "content": "Ask."}]
IN_SECTIONS = {A: {"prompt_sections": SECTIONS}}
SECTION: Path = (*A, "prompt_sections", 0)

LISTED = {
    ("agents",): [{"name": "A", "system_message": "Hi."}],
    ("context_variables",): {},
    ("handoffs",): [],
    SETUP: {},
}
NO_RULE = {RULES: []}
SAID_TWICE = {
    SETUP: {"max_turns": 4},
    RULES: [{"source_agent": "A", "target_agent": "A", "handoff_type": "after_work"}],
    (*GO, "triggers"): [
        {"type": "agent_text", "agent": "A", "match": {"equals": "GO"}},
        {"type": "agent_text", "agent": "A", "match": {"equals": "STOP"}, "value": False},
    ],
}
TWO_RULES = {
    RULES: [
        {
            "source_agent": "A",
            "target_agent": "terminate",
            "handoff_type": "after_work",
            "condition": "go is true",
        },
        {
            "source_agent": "A",
            "target_agent": "B",
            "handoff_type": "condition",
            "condition": "go is true",
        },
    ]
}

STEP: Path = (*DEFINITIONS, "step", "source", "triggers", 0)
STEPS = {
    (*DEFINITIONS, "step"): {
        "type": "boolean",
        "source": {
            "type": "derived",
            "default": False,
            "triggers": [
                {"type": "context_changed", "variable": "go", "equals": True},
                {"type": "context_changed", "variable": "go", "equals": False, "value": False},
            ],
        },
    }
}
STEPPED = [("go", True), ("step", True)]
COUNT = {TRIGGER: {"type": "agent_turn_count", "agent": "A", "count": 2}}
TIMER = {TRIGGER: {"type": "timer_expired", "after": 30, "since": "run_start"}}
TIMER_AGAIN = {
    (*GO, "triggers"): [
        {"type": "timer_expired", "after": "PT30S", "since": "agent:A"},
        {"type": "agent_text", "agent": "A", "match": {"equals": "GO"}, "value": False},
    ],
    (*RULES, 0, "target_agent"): "user",
}
ASKED = {TRIGGER: {"type": "function", "function": "on_go"}}
TURNED = {TRIGGER: {"type": "function", "function": "turn_over"}}
ONCE, TWICE = [("go", True)], [("go", True)] * 2
STORED: Path = (*DEFINITIONS, "deep", "source")
IN_DATABASE = {
    (*DEFINITIONS, "deep"): {
        "type": "string",
        "source": {
            "type": "database",
            "collection": "users",
            "search_by": "user_id",
            "field": "f",
        },
    }
}
IN_FILE = {
    (*DEFINITIONS, "deep"): {
        "type": "string",
        "source": {"type": "file", "path": "word.txt"},
    }
}
IN_NO_DATABASE = {**IN_DATABASE, (*STORED, "collection"): "none"}
GATED = {
    **IN_DATABASE,
    (*DEFINITIONS, "deep", "enum"): ["one"],
    (*DEFINITIONS, "deep", "gate"): True,
    (*RULES, 0, "condition"): '${deep} == "one"',
}
CAPTURED = {
    (*DEFINITIONS, "word"): {
        "type": "string",
        "source": {
            "type": "derived",
            "triggers": [
                {"type": "agent_text", "agent": "A", "match": {"regex": "(g)(o)"}, "capture": 1}
            ],
        },
    }
}

EFFECTS: dict[str, Effect] = {
    # orchestrator
    "Orchestrator.workflow_name": Effect(
        (*SETUP, "workflow_name"), "Other", data("run.started", "workflow"), ["Flow"], ["Other"]
    ),
    "Orchestrator.version": Effect(
        (*SETUP, "version"), "7", data("run.started", "workflow_version"), ["1"], ["7"]
    ),
    "Orchestrator.orchestration_pattern": Effect(
        (*SETUP, "orchestration_pattern"),
        "RoundRobinPattern",
        routes,
        NEVER,
        "A B user A B user A B",
        NO_RULE,
    ),
    "Orchestrator.model": Effect((*SETUP, "model"), "some:model", models("A"), None, "some:model"),
    "Orchestrator.startup_mode": Effect(
        (*SETUP, "startup_mode"), "UserDriven", routes, USUAL, "user A user A B terminate"
    ),
    "Orchestrator.initial_agent": Effect((*SETUP, "initial_agent"), "B", spoke, "A A B", "B"),
    "Orchestrator.initial_message": Effect(
        (*SETUP, "initial_message"),
        "Begin.",
        data("user.text", "text"),
        ["Yes."],
        ["Begin.", "Yes."],
    ),
    "Orchestrator.initial_message_to_user": Effect(
        (*SETUP, "initial_message_to_user"),
        "Hello?",
        data("question.asked", "prompt"),
        ["", ""],
        ["Hello?", ""],
        {(*SETUP, "startup_mode"): "UserDriven"},
    ),
    "Orchestrator.max_turns": Effect(
        (*SETUP, "max_turns"),
        1,
        lambda seen: ["max_turns" in each for each in seen.data("run.finished", "reason")],
        [False],
        [True],
    ),
    "Orchestrator.human_in_the_loop": Effect(
        (*SETUP, "human_in_the_loop"), False, routes, "A user A user A user", "A terminate", NO_RULE
    ),
    "Orchestrator.database_name": Effect(
        (*SETUP, "database_name"), "other", first("deep"), "one", "3", IN_DATABASE
    ),
    "Orchestrator.entry_point": Effect((*SETUP, "entry_point"), True, is_entrance, False, True),
    # handoffs
    "Handoff.source_agent": Effect((*RULES, 0, "source_agent"), "B", routes, USUAL, NEVER),
    "Handoff.target_agent": Effect((*RULES, 0, "target_agent"), "terminate", spoke, "A A B", "A A"),
    "Handoff.handoff_type": Effect(
        (*RULES, 1, "handoff_type"),
        "after_work",
        routes,
        "A user A B user B user",
        "A user A terminate",
        TWO_RULES,
    ),
    "Handoff.condition_type": Effect(
        (*RULES, 0, "condition_type"), "string_llm", offered("A"), [], ["transfer_to_B_1"]
    ),
    "Handoff.condition_scope": Effect(
        (*RULES, 0, "condition_scope"), "pre", routes, USUAL, "A user A user A B terminate"
    ),
    "Handoff.condition": Effect(
        (*RULES, 0, "condition"), "${go} == False", routes, USUAL, "A B terminate"
    ),
    "Handoff.transition_target": Effect(
        (*RULES, 0, "transition_target"), "TerminateTarget", codes, [], ["W028"]
    ),
    # agents
    "Agent.name": Effect(("agents", 0, "name"), "Z", spoke, "A", "Z", LISTED),
    "Agent.system_message": Effect(
        (*A, "system_message"),
        "Be kind.",
        system("A"),
        f'You are A.{HEAD}\n- tier: "beta"',
        f'Be kind.{HEAD}\n- tier: "beta"',
    ),
    "Agent.prompt_sections": Effect(
        (*A, "prompt_sections"),
        SECTIONS[1:],
        system("A"),
        "Role\nBe A.\n\nAsk.",
        "Ask.",
        {**IN_SECTIONS, EXPOSED: {}},
    ),
    "Agent.engine": Effect(
        (*A, "engine"),
        {"type": "functions", "file": "one.py", "function": "f"},
        said,
        ["Hello.", " go ", "Done."],
        ["one f"] * 3,
    ),
    "PromptSection.id": Effect((*SECTION, "id"), "aim", codes, [], ["W013"], IN_SECTIONS),
    "PromptSection.heading": Effect(
        (*SECTION, "heading"),
        "Part",
        system("A"),
        "Role\nBe A.\n\nAsk.",
        "Part\nBe A.\n\nAsk.",
        {**IN_SECTIONS, EXPOSED: {}},
    ),
    "PromptSection.content": Effect(
        (*SECTION, "content"),
        "Be you.",
        system("A"),
        "Role\nBe A.\n\nAsk.",
        "Role\nBe you.\n\nAsk.",
        {**IN_SECTIONS, EXPOSED: {}},
    ),
    # variables
    "VariableDefinition.name": Effect(
        (*DEFINITIONS, 0, "name"),
        "level",
        first("tier"),
        1,
        None,
        {
            **LISTED,
            ("context_variables",): {
                "definitions": [{"name": "tier", "source": {"type": "static", "value": 1}}]
            },
        },
    ),
    "VariableDefinition.type": Effect(
        (*DEFINITIONS, "flag", "type"),
        "string",
        first("flag"),
        True,
        "1",
        {(*DEFINITIONS, "flag", "source", "default"): None},
    ),
    "VariableDefinition.description": Effect(
        (*DEFINITIONS, "tier", "description"),
        "Edition",
        lambda seen: "Edition" in seen.explained["tier"],
        False,
        True,
        explained=("tier",),
    ),
    "VariableDefinition.enum": Effect(
        (*DEFINITIONS, "tier", "enum"), ["alpha"], codes, [], ["W024"]
    ),
    "VariableDefinition.source": Effect(
        (*DEFINITIONS, "tier", "source"),
        {"type": "environment", "env_var": "FLAG"},
        first("tier"),
        "beta",
        "1",
    ),
    "VariableDefinition.required": Effect(
        (*DEFINITIONS, "deep", "required"),
        True,
        lambda seen: ["'deep'" in each for each in seen.missing],
        [],
        [True],
        IN_NO_DATABASE,
    ),
    "VariableDefinition.secret": Effect(
        (*DEFINITIONS, "flag", "secret"),
        True,
        first("flag"),
        "1",
        "⟨secret:flag⟩",
        {
            (*DEFINITIONS, "flag"): {
                "type": "string",
                "source": {"type": "environment", "env_var": "FLAG"},
            }
        },
    ),
    "VariableDefinition.gate": Effect(
        (*DEFINITIONS, "deep", "gate"), False, codes, [], ["W023"], GATED
    ),
    "VariableDefinition.max_chars": Effect(
        (*DEFINITIONS, "tier", "max_chars"),
        2,
        system("A"),
        f'You are A.{HEAD}\n- tier: "beta"',
        f'You are A.{HEAD}\n- tier: "be…"',
    ),
    "DatabaseSource.type": Effect(
        (*STORED, "type"), "environment", codes, [], ["W011", "W010", "W010", "W010"], IN_DATABASE
    ),
    "DatabaseSource.database_name": Effect(
        (*STORED, "database_name"), "other", first("deep"), "one", "3", IN_DATABASE
    ),
    "DatabaseSource.collection": Effect(
        (*STORED, "collection"), "none", first("deep"), "one", None, IN_DATABASE
    ),
    "DatabaseSource.search_by": Effect(
        (*STORED, "search_by"), "chat_id", first("deep"), "one", None, IN_DATABASE
    ),
    "DatabaseSource.filter": Effect(
        (*STORED, "filter"), {"g.h": "three"}, first("deep"), "one", None, IN_DATABASE
    ),
    "DatabaseSource.field": Effect(
        (*STORED, "field"), "g.h", first("deep"), "one", "two", IN_DATABASE
    ),
    "DatabaseSource.default": Effect(
        (*STORED, "default"), "zero", first("deep"), None, "zero", IN_NO_DATABASE
    ),
    "FileSource.type": Effect((*STORED, "type"), "static", codes, [], ["W011", "W010"], IN_FILE),
    "FileSource.path": Effect(
        (*STORED, "path"), "other.txt", first("deep"), '"one"', "two", IN_FILE
    ),
    "FileSource.format": Effect(
        (*STORED, "format"), "json", first("deep"), '"one"', "one", IN_FILE
    ),
    "Static.type": Effect((*DEFINITIONS, "tier", "source", "type"), "derived", codes, [], ["W010"]),
    "Static.value": Effect(
        (*DEFINITIONS, "tier", "source", "value"), "gold", first("tier"), "beta", "gold"
    ),
    "FromEnvironment.type": Effect(
        (*DEFINITIONS, "flag", "source", "type"), "derived", codes, [], ["W010"]
    ),
    "FromEnvironment.env_var": Effect(
        (*DEFINITIONS, "flag", "source", "env_var"), "OTHER", first("flag"), True, False
    ),
    "FromEnvironment.default": Effect(
        (*DEFINITIONS, "flag", "source", "default"),
        True,
        first("flag"),
        False,
        True,
        {(*DEFINITIONS, "flag", "source", "env_var"): "OTHER"},
    ),
    "Derived.type": Effect((*GO, "type"), "static", codes, [], ["W014"]),
    "Derived.default": Effect((*GO, "default"), True, routes, USUAL, "A B terminate"),
    "Derived.triggers": Effect((*GO, "triggers"), [], routes, USUAL, NEVER),
    # triggers
    "AgentTextTrigger.type": Effect(
        (*TRIGGER, "type"), "ui_response", codes, [], ["W011", "W011", "W010", "W010"]
    ),
    "AgentTextTrigger.agent": Effect((*TRIGGER, "agent"), "B", changes, CHANGED, []),
    "AgentTextTrigger.match": Effect(
        (*TRIGGER, "match"), {"equals": "Hello."}, routes, USUAL, "A B terminate"
    ),
    "AgentTextTrigger.value": Effect((*TRIGGER, "value"), None, changes, CHANGED, [("go", None)]),
    "AgentTextTrigger.trim": Effect((*TRIGGER, "trim"), False, changes, CHANGED, []),
    "AgentTextTrigger.ignore_case": Effect((*TRIGGER, "ignore_case"), False, changes, CHANGED, []),
    "AgentTextTrigger.exact": Effect((*TRIGGER, "exact"), True, changes, CHANGED, []),
    "AgentTextTrigger.once": Effect(
        (*TRIGGER, "once"),
        True,
        changes,
        [("go", True), ("go", False), ("go", True)],
        [("go", True), ("go", False)],
        SAID_TWICE,
    ),
    **{
        f"AgentTextTrigger.{key}": Effect(
            (*TRIGGER, key),
            True,
            data("agent.text", "hidden"),
            [False, False, False],
            [False, True, False],
        )
        for key in ("hide", "ui_hidden")
    },
    "AgentTextTrigger.capture": Effect(
        (*DEFINITIONS, "word", "source", "triggers", 0, "capture"),
        2,
        changes,
        [("go", True), ("word", "g")],
        [("go", True), ("word", "o")],
        CAPTURED,
    ),
    "AgentTurnCount.type": Effect(
        (*TRIGGER, "type"), "function", codes, [], ["W011", "W010", "W010"], COUNT
    ),
    "AgentTurnCount.agent": Effect((*TRIGGER, "agent"), "B", changes, CHANGED, [], COUNT),
    "AgentTurnCount.count": Effect((*TRIGGER, "count"), 1, routes, USUAL, "A B terminate", COUNT),
    "AgentTurnCount.value": Effect(
        (*TRIGGER, "value"), None, changes, CHANGED, [("go", None)], COUNT
    ),
    "ContextChange.type": Effect(
        (*STEP, "type"), "function", codes, [], ["W011", "W010", "W010"], STEPS
    ),
    "ContextChange.variable": Effect((*STEP, "variable"), "flag", changes, STEPPED, CHANGED, STEPS),
    "ContextChange.equals": Effect((*STEP, "equals"), None, changes, STEPPED, CHANGED, STEPS),
    "ContextChange.value": Effect(
        (*STEP, "value"), None, changes, STEPPED, [("go", True), ("step", None)], STEPS
    ),
    "ContextChange.once": Effect(
        (*STEP, "once"),
        True,
        changes,
        [*STEPPED, ("go", False), ("step", False), *STEPPED],
        [*STEPPED, ("go", False), ("step", False), ("go", True)],
        {**SAID_TWICE, **STEPS},
    ),
    "TimerTrigger.type": Effect(
        (*TRIGGER, "type"), "function", codes, [], ["W011", "W010", "W010"], TIMER
    ),
    "TimerTrigger.after": Effect(
        (*TRIGGER, "after"), "PT1M30S", routes, USUAL, "A user A user A B terminate", TIMER
    ),
    "TimerTrigger.since": Effect((*TRIGGER, "since"), "agent:B", changes, CHANGED, [], TIMER),
    "TimerTrigger.value": Effect(
        (*TRIGGER, "value"), None, changes, CHANGED, [("go", None)], TIMER
    ),
    "TimerTrigger.once": Effect(
        (*TRIGGER, "once"),
        True,
        changes,
        [("go", True), ("go", False), ("go", True)],
        [("go", True), ("go", False)],
        TIMER_AGAIN,
    ),
    "Function.type": Effect(
        (*TRIGGER, "type"), "context_changed", codes, [], ["W011", "W011", "W010"], ASKED
    ),
    "Function.function": Effect(
        (*TRIGGER, "function"),
        "turn_over",
        changes,
        CHANGED,
        [("go", True), ("go", False)],
        ASKED,
    ),
    "Function.once": Effect(
        (*TRIGGER, "once"), True, changes, [("go", True), ("go", False)], CHANGED, TURNED
    ),
    "Match.equals": Effect((*MATCH, "equals"), "Hello.", routes, USUAL, "A B terminate"),
    "Match.contains": Effect((*MATCH, "contains"), "x", changes, CHANGED, []),
    "Match.regex": Effect((*MATCH, "regex"), "^x", changes, CHANGED, []),
    # exposure
    "Exposure.name": Effect(
        (*EXPOSED, 0, "name"),
        "B",
        system("A"),
        f'You are A.{HEAD}\n- tier: "beta"',
        "You are A.",
        {EXPOSED: [{"name": "A", "variables": ["tier"]}]},
    ),
    "Exposure.variables": Effect(
        (*EXPOSED, "A", "variables"),
        ["user_id", "go"],
        system("A"),
        f'You are A.{HEAD}\n- tier: "beta"',
        f'You are A.{HEAD}\n- user_id: "u1"\n- go: false',
    ),
    "Exposure.template": Effect(
        (*EXPOSED, "A", "template"),
        "You are on {tier}.",
        system("A"),
        f'You are A.{HEAD}\n- tier: "beta"',
        'You are A.\n\nYou are on "beta".',
    ),
    "Exposure.header": Effect(
        (*EXPOSED, "A", "header"),
        "Known:",
        system("A"),
        f'You are A.{HEAD}\n- tier: "beta"',
        'You are A.\n\nKnown:\n- tier: "beta"',
    ),
    "Exposure.placement": Effect(
        (*EXPOSED, "A", "placement"),
        "prepend",
        system("A"),
        f'You are A.{HEAD}\n- tier: "beta"',
        f'{HEAD.strip()}\n- tier: "beta"\n\nYou are A.',
    ),
    "Exposure.null_label": Effect(
        (*EXPOSED, "A", "null_label"),
        "(none)",
        system("A"),
        f"You are A.{HEAD}\n- tier: null",
        f"You are A.{HEAD}\n- tier: (none)",
        {(*DEFINITIONS, "tier", "source", "value"): None},
    ),
}
