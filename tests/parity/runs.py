"""Small workflows that are really run, and what there is to see of them afterwards."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.support.programs import Program, make_world
from turnloom import Answer, RagCollection, RetrievalResult, Task, ToolCall
from turnloom.agents.spec import Script, ScriptLine, ToolSchema
from turnloom.errors import DefinitionError, Diagnostic, MissingContext
from turnloom.log.spec import Event
from turnloom.testing import FakeDocuments, InMemorySearch, ScriptedEngine
from turnloom.testing.contracts.artifacts.samples import series

# What the test's own engine says for agents that choose none.
LINES = {
    "A": ["Hello.", " go ", "STOP", "GO", "More."],
    "B": ["Done.", "Done again."],
    "Z": ["I am Z."],
}
ENVIRONMENT = {"FLAG": "1"}
ANSWERS = 3  # the last one of which is not waited for
MINUTE = timedelta(minutes=1)  # passes with each answer

BASE: dict[str, Any] = {
    "orchestrator": {"initial_agent": "A", "human_in_the_loop": True},
    "agents": {
        "agents": {"A": {"system_message": "You are A."}, "B": {"system_message": "You are B."}}
    },
    "context_variables": {
        "definitions": {
            "go": {
                "type": "boolean",
                "source": {
                    "type": "derived",
                    "default": False,
                    "triggers": [{"type": "agent_text", "agent": "A", "match": {"equals": "GO"}}],
                },
            },
            "tier": {"type": "string", "source": {"type": "static", "value": "beta"}},
            "flag": {
                "type": "boolean",
                "source": {"type": "environment", "env_var": "FLAG", "default": False},
            },
        },
        "agents": {"A": {"variables": ["tier"]}},
    },
    "handoffs": {
        "handoff_rules": [
            {
                "source_agent": "A",
                "target_agent": "B",
                "handoff_type": "condition",
                "condition": "${go} == True",
            },
            {"source_agent": "A", "target_agent": "user", "handoff_type": "after_work"},
            {"source_agent": "user", "target_agent": "A", "handoff_type": "after_work"},
            {"source_agent": "B", "target_agent": "terminate", "handoff_type": "after_work"},
        ]
    },
}
DERIVATIONS = """
from turnloom.variables.spec import UNCHANGED, derivation

@derivation
def on_go(event, values):
    said = event.kind == "agent.text" and event.data.text.strip() == "go"
    return True if said else UNCHANGED

@derivation
def turn_over(event, values):
    return not values["go"] if event.kind == "agent.text" else UNCHANGED
"""
WORK = """
import time
import msgspec
from turnloom import use_ui_tool

def add(a: int, b: int = 1):
    \"\"\"Add two numbers.\"\"\"
    if a < 0:
        raise ValueError("below zero")
    return {"sum": a + b, "tags": ["x"]}

def subtract(a: int, b: int = 1):
    return {"sum": a - b}

async def confirm(context_variables):
    return await use_ui_tool("confirm", {"title": "Sure?"})

def slow():
    time.sleep(0.5)

def note(context_variables):
    context_variables["noted"] = True

def stumble():
    raise RuntimeError("no")

def shout(sender, message, recipient, silent):
    return message.upper()

def whisper(sender, message, recipient, silent):
    return message.lower()

def any_case(*given):
    return given[1].upper() if len(given) == 4 else given[0].lower()

class Saying:
    def __init__(self, change):
        self._change = change

    async def around_call(self, task, call_next):
        answer = await call_next(task)
        return msgspec.structs.replace(answer, text=self._change(answer.text))

def loud():
    return Saying(str.upper)

def soft():
    return Saying(str.lower)
"""
OTHER = """
class Echo:
    async def around_call(self, task, call_next):
        answer = await call_next(task)
        return type(answer)(answer.text + answer.text)

def loud():
    return Echo()

def add(a: int, b: int = 1):
    return {"other": a}

def shout(sender, message, recipient, silent):
    return message + "!"
"""
PROVIDERS = """
import asyncio
from turnloom import ContextSlice, RagCollection

class Manual(RagCollection):
    name = "manual"

class Attic(RagCollection):
    name = "attic"

def in_short(messages):
    return f"{len(messages)} before."

async def told(request):
    return ContextSlice([{"told": dict(request.config)}])

async def fails(request):
    raise LookupError("lost")

async def slow(request):
    await asyncio.sleep(0.1)
    return ContextSlice([])
"""
GUARDS = """
def by_tier(values):
    return values["tier"]

def by_user(values):
    return values["user_id"]

def half(answer):
    return 0.5
"""
CODE = {
    "derivations.py": DERIVATIONS,
    "guards.py": GUARDS,
    "providers.py": PROVIDERS,
    "one.py": "def f(task):\n    return 'one f'\ndef g(task):\n    return 'one g'\n",
    "two.py": "def f(task):\n    return 'two f'\n",
    "work.py": WORK,
    "other.py": OTHER,
    "word.txt": '"one"',
    "other.txt": "two",
}


DOCUMENTS = {
    None: {"user_id": "u1", "f": "one", "g": {"h": "two"}},
    "other": {"user_id": "u1", "f": "3"},
}


@dataclass(frozen=True)
class Seen:
    """All there is to see of a run, or of the attempt to start one."""

    problems: Sequence[Diagnostic] = ()
    events: Sequence[Event] = ()
    tasks: Sequence[Task] = ()
    user_script: tuple[str, ...] = ()
    explained: Mapping[str, str] = field(default_factory=dict[str, str])
    missing: tuple[str, ...] = ()

    def data(self, kind: str, name: str) -> list[Any]:
        """One field of every event of a kind."""
        return [getattr(event.data, name) for event in self.events if event.kind == kind]

    @property
    def codes(self) -> list[str]:
        """What the check refuses."""
        return [problem.code for problem in self.problems if problem.severity == "error"]

    @property
    def spoke(self) -> str:
        """The agents that took turns, in order."""
        return " ".join(self.data("turn.started", "agent"))

    @property
    def routes(self) -> str:
        """Where the work went, in order."""
        return " ".join(self.data("route.decided", "target"))

    @property
    def said(self) -> list[str]:
        """What agents said."""
        return self.data("agent.text", "text")

    @property
    def changes(self) -> list[tuple[str, Any]]:
        """What variables became."""
        names, values = self.data("context.changed", "name"), self.data("context.changed", "value")
        return list(zip(names, values, strict=True))

    def first(self, name: str) -> Any:
        """The first value of a variable; nothing if there is none of that name."""
        ((*loaded,),) = self.data("context.loaded", "values")
        return next((each.value for each in loaded if each.name == name), None)

    def tools(self, agent: str) -> Sequence[ToolSchema]:
        """The tools that an agent was offered at first."""
        return next(task.tools for task in self.tasks if task.agent == agent)

    def system(self, agent: str) -> str:
        """What an agent's first system text was."""
        return next(task.system for task in self.tasks if task.agent == agent)


def write(where: Path, documents: Mapping[str, Any]) -> str:
    """A folder with these documents, and with code that they may name."""
    folder = where / "Flow"
    folder.mkdir(parents=True)
    for name, value in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(value, indent=1), "utf-8")
    for name, text in CODE.items():
        (folder / name).write_text(text, "utf-8")
    return str(folder)


async def problems(where: Path, documents: Mapping[str, Any]) -> Sequence[Diagnostic]:
    """Why the workflow that documents declare cannot be started."""
    async with Program(make_world()) as program:
        try:
            await program.start(write(where, documents))
        except DefinitionError as refused:
            return refused.diagnostics
    return ()


async def see(where: Path, documents: Mapping[str, Any], *explained: str) -> Seen:
    """A run of the workflow that documents declare; the user says yes a few times. Some variables
    are explained."""
    script = Script.model_validate(documents.get("script", {}))
    engine = ScriptedEngine({**LINES, **{a: lines_of(said) for a, said in script.agents.items()}})
    held = documents_of_the_user()
    world = make_world(engine, env=ENVIRONMENT, documents=held, collections=shelves())
    await world.store.artifacts.put("local", series(2))
    async with Program(world) as program:
        try:
            run = await program.start(write(where, documents))
        except DefinitionError as refused:
            return Seen(refused.diagnostics)
        except MissingContext as refused:
            return Seen(missing=refused.problems)
        await program.drive(run)
        for _ in range(ANSWERS - 1):
            last = (await program.app.history.events(run))[-1]
            if last.kind != "run.paused":
                break
            world.clock.advance(MINUTE)
            by_tool = "/tool." in last.data.waiting_for
            await program.answer(run, {"yes": {"sure": True}} if by_tool else "Yes.")
        app = program.app
        told = {name: str(await app.explain.variable(run, name)) for name in explained}
        user = (await app.history.definition(run)).user_script
        return Seen((), await app.history.events(run), engine.calls, user, told)


def lines_of(said: Sequence[ScriptLine]) -> list[Answer]:
    """Lines of a script as the test's own engine says them."""
    return [
        Answer(
            line.text,
            calls=tuple(ToolCall(call.tool, call.arguments) for call in line.calls),
            output=line.output,
        )
        for line in said
    ]


class Manual(RagCollection):
    """A collection that a folder names."""

    name = "manual"


class Attic(RagCollection):
    """Another one."""

    name = "attic"


def shelves() -> dict[type, InMemorySearch]:
    """Two collections with the same in them."""
    found: dict[type, InMemorySearch] = {}
    for collection in (Manual, Attic):
        search = found[collection] = InMemorySearch()
        search.seed(RetrievalResult("Tea is packed dry.", 0.9, "tea.md"))
        search.seed(RetrievalResult("Jars are packed upright.", 0.8, "jars.md"))
    return found


def documents_of_the_user() -> FakeDocuments:
    """A collection in two databases."""
    documents = FakeDocuments()
    for database, document in DOCUMENTS.items():
        documents.add("users", document, database=database)
    return documents
