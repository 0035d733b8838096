"""What each field does that is declared about tools, hooks, outputs and scripts of them."""

from typing import Any

from tests.parity.effects import (
    DEFINITIONS,
    RULES,
    SETUP,
    A,
    Effect,
    Path,
    changes,
    codes,
    data,
    models,
    offered,
    routes,
    said,
)
from tests.parity.runs import Seen

TOOLS: Path = ("tools", "tools")
TOOL: Path = (*TOOLS, 0)
HOOKS: Path = ("tools", "lifecycle_tools")
HOOK: Path = (*HOOKS, 0)
LINE: Path = ("script", "agents", "A", 0)
CALL: Path = (*LINE, "calls", 0)


def workflow(tool: dict[str, Any], *lines: Any) -> dict[Path, Any]:
    """A has a tool, and says these lines before the word that hands over to B."""
    return {
        ("tools",): {"tools": [{"agent": "A", "file": "work.py", **tool}]},
        ("script",): {"agents": {"A": [*lines, "GO"]}},
    }


def calling(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "arguments": arguments}]}


ADD = workflow({"function": "add"}, calling("add", a=1))
SUM, DIFFERENCE = [{"sum": 2, "tags": ["x"]}], [{"sum": 0}]
SLOW = workflow({"function": "slow"}, calling("slow"))
ASKING = workflow({"function": "confirm", "tool_type": "UI_Tool", "ui": {}}, calling("confirm"))
FORM = {
    "models": {"M": {"type": "model", "fields": {"a": {"type": "int"}}}},
    "registry": {"A": "M"},
}
OUTPUT = {
    **workflow({"function": "add"}, {"output": {"a": 4}}),
    ("structured_outputs",): FORM,
    RULES: [{"source_agent": "A", "target_agent": "terminate", "handoff_type": "after_work"}],
}
GIVEN = {**OUTPUT, ("structured_outputs",): {**FORM, "registry": {}}}
WORDS = {**OUTPUT, ("script",): {"agents": {"A": ["In words.", {"output": {"a": 4}}]}}}


def hooked(trigger: str, **hook: Any) -> dict[Path, Any]:
    """A workflow with one hook."""
    entry = {"trigger": trigger, "agent": None, "file": "work.py", "function": "note", **hook}
    return {("tools",): {"lifecycle_tools": [entry]}}


NOTED = hooked("before_agent")
TWO_HOOKS = {
    ("tools",): {
        "lifecycle_tools": [
            {"trigger": "before_chat", "agent": None, "file": "work.py", "function": "note"},
            {"trigger": "before_chat", "agent": None, "file": "work.py", "function": "stumble"},
        ]
    }
}


def hooks(seen: Seen) -> list[tuple[str, str | None]]:
    """The hooks that were called, and with whose turn."""
    return list(
        zip(
            seen.data("lifecycle.tool_call", "trigger"),
            seen.data("lifecycle.tool_call", "agent"),
            strict=True,
        )
    )


def results(seen: Seen) -> list[Any]:
    return seen.data("tool.returned", "result")


def described(seen: Seen) -> list[str]:
    return [tool.description for tool in seen.tools("A")]


def asked(name: str) -> Any:
    return data("question.asked", name)


def hidden(seen: Seen) -> list[bool]:
    return seen.data("agent.text", "hidden")


def reasons(seen: Seen) -> list[str]:
    return seen.data("run.failed", "message")


ANSWERED: Path = (*DEFINITIONS, "sure", "source", "triggers", 0)
UI = {
    **ASKING,
    (*DEFINITIONS, "sure"): {
        "type": "boolean",
        "source": {
            "type": "derived",
            "triggers": [
                {
                    "type": "ui_response",
                    "tool": "confirm",
                    "response_key": "yes.sure",
                    "apply": "auto",
                }
            ],
        },
    },
}
TOOL_TRIGGER: Path = (*DEFINITIONS, "total", "source", "triggers", 0)


def triggered(*lines: Any, **trigger: Any) -> dict[Path, Any]:
    """A variable that the tool of A sets."""
    source = {
        "type": "derived",
        "triggers": [{"type": "tool_response", "tool": "add", **trigger}],
    }
    return {
        **workflow({"function": "add"}, *lines),
        TOOLS: [{"agent": "A", "file": "work.py", "function": f} for f in ("add", "subtract")],
        (*DEFINITIONS, "total"): {"type": "integer", "source": source},
    }


ONE, BELOW = calling("add", a=1), calling("add", a=-1)
TOTAL, SEVEN = [("total", 2), ("go", True)], [("total", 7), ("go", True)]
WENT = [("go", True)]
AT_PATH = {"path": "sum", "equals": 2, "value": 7}

MESSAGE_HOOK: Path = ("hooks", "hooks", 0)
LOUD = {
    ("hooks",): {
        "hooks": [
            {
                "hook_type": "process_message_before_send",
                "hook_agent": "A",
                "filename": "work.py",
                "function": "shout",
            }
        ]
    },
    ("script",): {"agents": {"A": ["Go"]}},
}

TOOL_EFFECTS: dict[str, Effect] = {
    # message hooks
    "MessageHook.hook_type": Effect(
        (*MESSAGE_HOOK, "hook_type"),
        "process_last_received_message",
        data("message_hook.returned", "result"),
        ["GO"],
        ["begin."],
        {
            **LOUD,
            (*SETUP, "initial_message"): "BEGIN.",
            (*MESSAGE_HOOK, "function"): "any_case",
        },
    ),
    "MessageHook.hook_agent": Effect(
        (*MESSAGE_HOOK, "hook_agent"), "B", said, ["GO", "Done."], ["Go", "DONE."], LOUD
    ),
    "MessageHook.filename": Effect(
        (*MESSAGE_HOOK, "filename"),
        "other.py",
        said,
        ["GO"],
        ["Go!"],
        {**LOUD, RULES: [], (*SETUP, "human_in_the_loop"): False},
    ),
    "MessageHook.function": Effect(
        (*MESSAGE_HOOK, "function"), "whisper", said, ["GO", "Done."], ["go", "Done."], LOUD
    ),
    # tools
    "Tool.agent": Effect((*TOOL, "agent"), "B", results, SUM, [], ADD),
    "Tool.file": Effect((*TOOL, "file"), "other.py", results, SUM, [{"other": 1}], ADD),
    "Tool.function": Effect(
        (*TOOL, "function"), "subtract", results, SUM, DIFFERENCE, {**ADD, (*TOOL, "name"): "add"}
    ),
    "Tool.name": Effect((*TOOL, "name"), "plus", offered("A"), ["add"], ["plus"], ADD),
    "Tool.description": Effect(
        (*TOOL, "description"), "Sum up.", described, ["Add two numbers."], ["Sum up."], ADD
    ),
    "Tool.auto_invoke": Effect(
        (*TOOL, "auto_invoke"), True, results, [], [{"sum": 5, "tags": ["x"]}], OUTPUT
    ),
    "Tool.ui": Effect(
        (*TOOL, "ui"), {"component": "Card"}, asked("component"), [""], ["Card"], ASKING
    ),
    "Tool.timeout_s": Effect(
        (*TOOL, "timeout_s"), 0.01, data("tool.failed", "error"), [], ["TimeoutError"], SLOW
    ),
    "Ui.component": Effect(
        (*TOOL, "ui", "component"), "Card", asked("component"), [""], ["Card"], ASKING
    ),
    "Ui.mode": Effect(
        (*TOOL, "ui", "mode"), "artifact", asked("display"), ["inline"], ["artifact"], ASKING
    ),
    "Ui.response": Effect(
        (*TOOL, "ui", "response"),
        {"type": "object"},
        asked("schema"),
        [None],
        [{"type": "object"}],
        ASKING,
    ),
    # agents
    "Agent.model": Effect((*A, "model"), "some:model", models("A"), None, "some:model"),
    "Agent.tools": Effect(
        (*A, "tools"), ["context_digest"], offered("A"), ["add"], ["add", "context_digest"], ADD
    ),
    "Agent.max_tool_rounds": Effect(
        (*A, "max_tool_rounds"),
        1,
        lambda seen: ["TooManyRounds" in each for each in reasons(seen)],
        [],
        [True],
        workflow({"function": "add"}, calling("add", a=1), calling("add", a=1)),
    ),
    "Agent.auto_tool_mode": Effect(
        (*A, "auto_tool_mode"), True, results, [], [{"sum": 5, "tags": ["x"]}], OUTPUT
    ),
    "Agent.structured_outputs": Effect(
        (*A, "structured_outputs"),
        "M",
        data("agent.output", "model"),
        [],
        ["M"],
        {**GIVEN, ("script",): {"agents": {"A": ['{"a": 4}']}}},
    ),
    "Agent.structured_outputs_required": Effect(
        (*A, "structured_outputs_required"), False, said, [], ["In words."], WORDS
    ),
    "Agent.max_consecutive_auto_reply": Effect(
        (*A, "max_consecutive_auto_reply"),
        2,
        routes,
        "A A A A terminate",
        "A A terminate",
        {
            SETUP: {"max_turns": 4},
            RULES: [{"source_agent": "A", "target_agent": "A", "handoff_type": "after_work"}],
        },
    ),
    # what the user sees
    "UiConfig.visual_agents": Effect(
        ("ui_config", "visual_agents"),
        ["B"],
        hidden,
        [False, False, False],
        [True, True, False],
        {("ui_config",): {"visual_agents": ["A", "B", "user"]}},
    ),
    "Orchestrator.visual_agents": Effect(
        ("orchestrator", "visual_agents"),
        ["B"],
        hidden,
        [False, False, False],
        [True, True, False],
    ),
    # scripts
    "ScriptLine.text": Effect(
        (*LINE, "text"),
        "Go on.",
        said,
        ["Stay.", "GO", "Done."],
        ["Go on.", "GO", "Done."],
        {("script",): {"agents": {"A": [{"text": "Stay."}, "GO"]}}},
    ),
    "ScriptLine.calls": Effect((*LINE, "calls"), [], results, SUM, [], ADD),
    "ScriptLine.output": Effect(
        (*LINE, "output"), {"a": 5}, data("agent.output", "output"), [{"a": 4}], [{"a": 5}], OUTPUT
    ),
    "ScriptedCall.tool": Effect(
        (*CALL, "tool"), "ad", data("tool.failed", "error"), [], ["UnknownTool"], ADD
    ),
    "ScriptedCall.arguments": Effect(
        (*CALL, "arguments"), {"a": 4}, results, SUM, [{"sum": 5, "tags": ["x"]}], ADD
    ),
    # hooks
    "LifecycleTool.trigger": Effect(
        (*HOOK, "trigger"),
        "before_chat",
        hooks,
        [("before_agent", "A"), ("before_agent", "A"), ("before_agent", "B")],
        [("before_chat", None)],
        NOTED,
    ),
    "LifecycleTool.agent": Effect(
        (*HOOK, "agent"),
        "B",
        hooks,
        [("before_agent", "A"), ("before_agent", "A"), ("before_agent", "B")],
        [("before_agent", "B")],
        NOTED,
    ),
    "LifecycleTool.file": Effect((*HOOK, "file"), "other.py", codes, [], ["W043"], NOTED),
    "LifecycleTool.function": Effect(
        (*HOOK, "function"),
        "stumble",
        data("lifecycle.tool_error", "error"),
        [],
        ["RuntimeError"],
        hooked("before_chat"),
    ),
    "LifecycleTool.name": Effect(
        (*HOOK, "name"),
        "first",
        data("lifecycle.tool_call", "hook"),
        ["note"],
        ["first"],
        hooked("before_chat"),
    ),
    "LifecycleTool.description": Effect(
        (*HOOK, "description"),
        "Takes a note.",
        data("lifecycle.tool_call", "description"),
        [""],
        ["Takes a note."],
        hooked("before_chat"),
    ),
    "LifecycleTool.when": Effect(
        (*HOOK, "when"),
        "go is true",
        data("lifecycle.tool_result", "status"),
        ["success"],
        ["skipped"],
        hooked("before_chat"),
    ),
    "LifecycleTool.after": Effect(
        (*HOOK, "after"),
        ["stumble"],
        data("lifecycle.tool_result", "status"),
        ["success"],
        ["skipped"],
        TWO_HOOKS,
    ),
    "LifecycleTool.timeout_s": Effect(
        (*HOOK, "timeout_s"),
        0.01,
        data("lifecycle.tool_error", "error"),
        [],
        ["TimeoutError"],
        hooked("before_chat", function="slow"),
    ),
    "LifecycleTool.retries": Effect(
        (*HOOK, "retries"),
        1,
        data("lifecycle.tool_error", "attempts"),
        [1],
        [2],
        hooked("before_chat", function="stumble"),
    ),
    "LifecycleTool.on": Effect(
        (*HOOK, "on"), "failure", hooks, [("after_chat", None)], [], hooked("after_chat")
    ),
    # what tools set
    "UiResponse.type": Effect(
        (*ANSWERED, "type"), "tool_response", codes, [], ["W010", "W010"], UI
    ),
    "UiResponse.tool": Effect((*ANSWERED, "tool"), "confirmed", codes, [], ["W045"], UI),
    "UiResponse.response_key": Effect(
        (*ANSWERED, "response_key"), "yes.no", changes, [("sure", True), *WENT], WENT, UI
    ),
    "UiResponse.apply": Effect(
        (*ANSWERED, "apply"), "tool", data("context.missed", "name"), [], ["sure"], UI
    ),
    "UiResponse.once": Effect(
        (*ANSWERED, "once"),
        True,
        changes,
        [("sure", True), ("sure", None), ("sure", True), *WENT],
        [("sure", True), ("sure", None), *WENT],
        {
            **UI,
            **workflow(
                {"function": "confirm", "tool_type": "UI_Tool", "ui": {}},
                calling("confirm"),
                {"text": "STOP", **calling("confirm")},
            ),
            (*DEFINITIONS, "sure", "source", "triggers"): [
                {
                    "type": "ui_response",
                    "tool": "confirm",
                    "response_key": "yes.sure",
                    "apply": "auto",
                },
                {
                    "type": "agent_text",
                    "agent": "A",
                    "match": {"equals": "STOP"},
                    "value": None,
                },
            ],
        },
    ),
    "ToolResponse.type": Effect(
        (*TOOL_TRIGGER, "type"), "ui_response", codes, [], ["W011", "W010"], triggered(ONE, value=7)
    ),
    "ToolResponse.tool": Effect(
        (*TOOL_TRIGGER, "tool"), "subtract", changes, SEVEN, WENT, triggered(ONE, value=7)
    ),
    "ToolResponse.status": Effect(
        (*TOOL_TRIGGER, "status"), "error", changes, WENT, SEVEN, triggered(BELOW, value=7)
    ),
    "ToolResponse.path": Effect(
        (*TOOL_TRIGGER, "path"), "tags", changes, SEVEN, WENT, triggered(ONE, **AT_PATH)
    ),
    "ToolResponse.equals": Effect(
        (*TOOL_TRIGGER, "equals"), 3, changes, SEVEN, WENT, triggered(ONE, **AT_PATH)
    ),
    "ToolResponse.contains": Effect(
        (*TOOL_TRIGGER, "contains"),
        "y",
        changes,
        SEVEN,
        WENT,
        triggered(ONE, path="tags", contains="x", value=7),
    ),
    "ToolResponse.from": Effect(
        (*TOOL_TRIGGER, "from"),
        "tags.0",
        changes,
        TOTAL,
        WENT,
        triggered(ONE, **{"from": "sum"}),
    ),
    "ToolResponse.value": Effect(
        (*TOOL_TRIGGER, "value"), 2, changes, SEVEN, TOTAL, triggered(ONE, value=7)
    ),
    "ToolResponse.once": Effect(
        (*TOOL_TRIGGER, "once"),
        True,
        changes,
        [("total", 2), ("total", 5), *WENT],
        TOTAL,
        triggered(ONE, calling("add", a=4), **{"from": "sum"}),
    ),
}
