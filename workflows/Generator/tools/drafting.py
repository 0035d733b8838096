"""The draft of a generated workflow, checked after each part that an agent adds.

Missing parts are filled in from the plan, so that each agent gets its own mistakes only, and gets
them at once.
"""

import ast
import json
import keyword
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from anyio import to_thread

from turnloom import Context, use_ui_tool
from turnloom.adapters.files import dump
from turnloom.variables.spec import Derived, FromEnvironment, UiResponse, VariableDefinition
from turnloom.wiring import Folders

# The parts of a draft in the order of their writing, and the key around each in its file.
PARTS = {
    "context_variables": "context_variables",
    "tools": "tools",
    "handoffs": "handoff_rules",
    "agents": "agents",
    "script": None,
}
# Files whose warnings are told too, by part: before there are handoffs, too much is missing.
WARNED = {"handoffs": ("handoffs", "agents"), "agents": ("agents",), "script": ("script",)}

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
CODE = "stubs.py"
TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "object": "dict[str, Any]",
    "array": "list[Any]",
}
# Names that the code of tools uses itself, or that stand for the context.
TAKEN = ("Any", "use_ui_tool", "context_variables", "ctx")

# Seconds that a rehearsal may take, and how many problems are told at once.
PATIENCE = 60.0
MAX_PROBLEMS = 10

Draft = dict[str, Any]


async def action_plan(plan: dict[str, Any], context_variables: Context) -> Any:
    """Show the plan to the person, who accepts it or says what to change."""
    await to_thread.run_sync(_check, {"plan": plan}, "plan", context_variables["production"])
    prompt = f"{_plan_text(plan)}\n\nDo you accept this plan?"
    answer = await use_ui_tool("action_plan", {"prompt": prompt, "plan": plan})
    context_variables["action_plan"] = plan
    context_variables["plan_acceptance"] = answer["plan_acceptance"]
    context_variables["adjustments"] = answer.get("adjustments") or ""
    for part in PARTS:  # what was written for another plan does not go with this one
        context_variables[f"drafted_{part}"] = None
    return answer


def keep_context_variables(document: Any, context_variables: Context) -> str:
    """Keep the context variables, if the draft passes its check with them."""
    return _keep("context_variables", document, context_variables)


def keep_tools(document: Any, context_variables: Context) -> str:
    """Keep what the tools take and give, if the draft passes its check with it."""
    return _keep("tools", document, context_variables)


def keep_handoffs(document: Any, context_variables: Context) -> str:
    """Keep the handoffs, if the draft passes its check with them."""
    return _keep("handoffs", document, context_variables)


def keep_agents(document: Any, context_variables: Context) -> str:
    """Keep the agents, if the draft passes its check with them."""
    return _keep("agents", document, context_variables)


async def keep_script(document: Any, context_variables: Context) -> str:
    """Keep the script, if the workflow runs with it from its start to its end."""
    draft = _draft(context_variables) | {"script": document}
    await to_thread.run_sync(_check, draft, "script", context_variables["production"])
    files = _files(draft)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary, draft["plan"]["workflow_name"])
        await to_thread.run_sync(_write, files, folder)
        await _rehearse(folder)
    context_variables["drafted_script"] = document
    context_variables["drafted_files"] = files
    return "The workflow ran to its end."


def _draft(context: Context) -> Draft:
    parts = {part: context.get(f"drafted_{part}") for part in PARTS}
    return {"plan": context["action_plan"], **parts}


def _keep(part: str, document: Any, context: Context) -> str:
    key = PARTS[part]
    has_key = isinstance(document, dict) and key in document
    kept = document if has_key else {key: document}
    _check(_draft(context) | {part: kept}, part, context["production"])
    context[f"drafted_{part}"] = kept
    return f"The {part} are kept."


def _check(draft: Draft, part: str, production: bool) -> None:
    """Check a draft with a new part.

    Raises:
        ValueError: the problems, one per line, for the author of the part.
    """
    problems = [*_misnamed(draft["plan"]), *_unlike(draft)]
    if not problems:
        with TemporaryDirectory() as temporary:
            folder = _write(_files(draft), Path(temporary, draft["plan"]["workflow_name"]))
            problems = _examined(folder, draft["plan"], part, production)
    if problems:
        raise ValueError("\n".join(problems[:MAX_PROBLEMS]))


def _examined(folder: Path, plan: Draft, part: str, production: bool) -> list[str]:
    loaded, found = Folders(production=production).examine(str(folder))
    problems = [
        f"{Path(each.file).stem}: {each.message} {each.remedy}"
        for each in found
        if each.severity == "error" or Path(each.file).stem in WARNED.get(part, ())
    ]
    definitions = loaded.workflow.variables.definitions if loaded else {}
    for definition in definitions.values():
        problems += _unfit(definition, plan, production)
    return problems


def _unfit(definition: VariableDefinition, plan: Draft, production: bool) -> Iterator[str]:
    """Problems of a variable in a generated workflow."""
    name, source = definition.name, definition.source
    if production and isinstance(source, FromEnvironment):
        yield (
            f"context_variables: {name!r} is read from the environment, and this is production, "
            "where no environment variable has a value. Make it static or derived, or drop it."
        )
    asked = {tool["name"]: [each["key"] for each in tool["asks"]] for tool in plan["tools"]}
    for trigger in source.triggers if isinstance(source, Derived) else ():
        if not isinstance(trigger, UiResponse):
            continue
        if trigger.apply != "auto":
            yield f"context_variables: {name!r} needs `apply: auto` in its ui_response trigger."
        if trigger.response_key not in asked[trigger.tool]:
            keys = ", ".join(asked[trigger.tool]) or "nothing"
            yield (
                f"context_variables: {name!r} reads {trigger.response_key!r} of {trigger.tool!r}, "
                f"which asks for {keys}."
            )


def _misnamed(plan: Draft) -> Iterator[str]:
    """Invalid names of a plan: of the folder, of agents and tools."""
    name = plan["workflow_name"]
    if not NAME.fullmatch(name):
        yield (
            f"workflow_name is {name!r}. Use at most 64 letters, digits and `_`, a letter first."
        )
    if not plan["agents"]:
        yield "A workflow needs an agent. Add one to `agents`."
    for what in ("agents", "tools"):
        for name in _twice(each["name"] for each in plan[what]):
            yield f"Two {what} are called {name!r}. Rename one of them."
    yield from _not_code((tool["name"] for tool in plan["tools"]), "A tool")


def _twice(names: Iterable[str]) -> list[str]:
    """The names that occur more than once."""
    return [name for name, times in Counter(names).items() if times > 1]


def _not_code(names: Iterator[str], what: str) -> Iterator[str]:
    for name in names:
        if not NAME.fullmatch(name) or keyword.iskeyword(name) or name in TAKEN:
            yield f"{what} cannot be called {name!r}. Use letters, digits and `_`, a letter first."


def _unlike(draft: Draft) -> Iterator[str]:
    """Drafted tools that differ from the plan, or cannot be functions."""
    if not draft.get("tools"):
        return
    planned = [tool["name"] for tool in draft["plan"]["tools"]]
    drafted = draft["tools"]["tools"]
    if sorted(planned) != sorted(tool["name"] for tool in drafted):
        yield f"Describe each tool of the plan once, and no other: {', '.join(planned) or 'none'}."
    names = (each["name"] for tool in drafted for each in tool["parameters"])
    yield from _not_code(names, "A parameter")


def _plan_text(plan: Draft) -> str:
    """The plan as people read it."""
    lines = [f"{plan['workflow_name']}: {plan['purpose']}", "", "Agents"]
    lines += [f"- {agent['name']}: {agent['role']}" for agent in plan["agents"]]
    lines += ["", "Tools"] if plan["tools"] else []
    lines += [f"- {tool['name']} of {tool['agent']}: {tool['purpose']}" for tool in plan["tools"]]
    steps = [f"{number}. {step}" for number, step in enumerate(plan["steps"], 1)]
    return "\n".join([*lines, "", "Steps", *steps])


def _files(draft: Draft) -> dict[str, str]:
    """The files of the workflow that a draft makes."""
    plan = draft["plan"]
    agents = {each["name"]: {"system_message": each["role"]} for each in plan["agents"]}
    documents = {
        "orchestrator": {
            "initial_agent": plan["agents"][0]["name"],
            "initial_message": plan["purpose"],
            "human_in_the_loop": plan["human_in_the_loop"],
            "max_turns": 50,
        },
        "context_variables": draft.get("context_variables") or {},
        "handoffs": draft.get("handoffs") or {},
        "agents": draft.get("agents") or {"agents": agents},
        "script": draft.get("script") or {"agents": {name: [] for name in agents}},
    }
    tools = _tools(draft)
    documents |= {"tools": {"tools": [_declared(tool) for tool in tools]}} if tools else {}
    files = {f"{part}.yaml": dump(f"{part}.yaml", each) for part, each in documents.items()}
    return files | ({f"tools/{CODE}": _code(tools)} if tools else {})


def _tools(draft: Draft) -> list[Draft]:
    """The tools of the plan, with what was drafted about each."""
    drafted = (draft.get("tools") or {"tools": []})["tools"]
    more = {tool["name"]: tool for tool in drafted}
    bare = {"parameters": [], "sample": None}
    return [{**bare, **tool, **more.get(tool["name"], {})} for tool in draft["plan"]["tools"]]


def _declared(tool: Draft) -> Draft:
    declared = {
        "agent": tool["agent"],
        "file": CODE,
        "function": tool["name"],
        "description": tool["purpose"],
    }
    if not tool["asks"]:
        return declared
    answers = {
        each["key"]: {"enum": each["choices"]} if each["choices"] else {"type": "string"}
        for each in tool["asks"]
    }
    needed = [each["key"] for each in tool["asks"] if each["choices"]]
    response = {"type": "object", "properties": answers, "required": needed}
    return {**declared, "tool_type": "UI_Tool", "ui": {"response": response}}


def _code(tools: Sequence[Draft]) -> str:
    """The functions of the tools; texts of a draft become literals only."""
    source = [
        '"""The tools of the workflow. Replace the samples that they return with your code."""',
        "from typing import Any",
        "from turnloom import use_ui_tool",
        *map(_function, tools),
    ]
    return f"{ast.unparse(ast.parse(chr(10).join(source)))}\n"


def _function(tool: Draft) -> str:
    name, purpose, given = tool["name"], tool["purpose"], tool["parameters"]
    parameters = ", ".join(f"{each['name']}: {TYPES[each['type']]}" for each in given)
    head = f"def {name}({parameters}) -> Any:\n    {purpose!r}\n    return"
    if not tool["asks"]:
        return f"{head} {tool['sample']!r}"
    # The subject of the decision precedes the question.
    parts = "".join(f"str({each['name']}), " for each in given)
    shown = "".join(f", {each['name']!r}: {each['name']}" for each in given)
    prompt = f"'\\n\\n'.join([{parts}{purpose!r}])" if given else repr(purpose)
    return f"async {head} await use_ui_tool({name!r}, {{'prompt': {prompt}{shown}}})"


def _write(files: Mapping[str, str], folder: Path) -> Path:
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


async def _rehearse(folder: Path) -> None:
    """Run a workflow with its script, in a separate process.

    Raises:
        ValueError: the run did not finish.
    """
    command = [sys.executable, "-m", "turnloom", "run", str(folder)]
    options = ["--store", "memory", "--unattended", "--json"]
    with anyio.fail_after(PATIENCE):
        done = await anyio.run_process([*command, *options], input=b"", check=False)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or not events or events[-1]["kind"] != "run.finished":
        raise ValueError(f"The rehearsal did not finish: {done.stderr.decode().strip()}")
