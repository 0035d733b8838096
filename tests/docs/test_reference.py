"""Reference pages say what the code has: no more, no less."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from tests.docs.markdown import DOCS, ROOT, code, rows, section
from tests.support.folders import write_folder
from tests.support.warm import Warm
from turnloom import Loom, errors
from turnloom.agents.logic.outputs.language import OPTIONAL, TYPES
from turnloom.agents.spec import (
    Agent,
    Answer,
    BudgetChoice,
    ComponentChoice,
    ContextChoice,
    DeclaredServer,
    EngineChoice,
    FormatChoice,
    HistoryChoice,
    PromptSection,
    RetrievalChoice,
    Script,
    ScriptedCall,
    ScriptedFunction,
    ScriptLine,
    SourceChoice,
    Task,
    Tool,
    Ui,
)
from turnloom.board.spec.artifacts import KINDS
from turnloom.cli.entry import COMMANDS
from turnloom.conversation.logic.schemas import FILES
from turnloom.conversation.spec import Handoff, Orchestrator, UiConfig
from turnloom.guards.spec import (
    Category,
    Guards,
    LoopDetection,
    Price,
    RunBudget,
    Selection,
    Strategies,
    Weights,
)
from turnloom.hooks.spec import LifecycleTool, MessageHook
from turnloom.log.spec import Event
from turnloom.runtime.logic import FACTS
from turnloom.variables.logic.conditions import parse_condition
from turnloom.variables.logic.triggers import TRIGGER_LOADERS
from turnloom.variables.logic.types import coerce
from turnloom.variables.spec import (
    AgentTextTrigger,
    AgentTurnCount,
    ContextChange,
    DatabaseSource,
    Derived,
    Exposure,
    FileSource,
    FromEnvironment,
    Function,
    Match,
    Static,
    TimerTrigger,
    ToolResponse,
    Trigger,
    Type,
    UiResponse,
    UserTextTrigger,
    VariableDefinition,
)

WRITE = DOCS / "write-a-workflow.md"


def first_codes(text: str) -> list[str]:
    """The first word set as code in each row."""
    return [words[0] for row in rows(text) if (words := code(row[0]))]


# ------------------------------------------------------------------ diagnostics


def emitted() -> set[str]:
    sources = (ROOT / "src").rglob("*.py")
    return {
        found for path in sources for found in re.findall(r'"(W\d{3})"', path.read_text("utf-8"))
    }


def test_every_code_is_listed_once_and_exists() -> None:
    listed = [row[0] for row in rows((DOCS / "diagnostics.md").read_text("utf-8"))]
    codes = [word.strip("`") for word in listed if re.fullmatch(r"`W\d{3}`", word)]
    assert codes == sorted(emitted())


def test_pages_name_only_codes_that_exist() -> None:
    for page in DOCS.glob("*.md"):
        assert set(re.findall(r"\bW\d{3}\b", page.read_text("utf-8"))) <= emitted()


def test_errors_have_the_codes_that_are_listed() -> None:
    for name, listed, _ in rows(section(DOCS / "diagnostics.md", "## Errors in Python")):
        assert getattr(errors, code(name)[0]).code == code(listed)[0]


# ------------------------------------------------------------------ command line


def ask(warm: Warm, *words: str, code: int = 0, folder: Path = ROOT, **env: str) -> str:
    """What the command line says, in lines of any length."""
    done = warm.run(words, folder, {"NO_COLOR": "1", "COLUMNS": "300", **env})
    assert done.code == code, done
    return done.out


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_every_option_is_listed_and_exists(name: str, warm: Warm) -> None:
    said = section(DOCS / "command-line.md", f"## turnloom {name}".rstrip())
    listed = {found.split(" ")[0] for found in first_codes(said)}
    shown = ask(warm, *name.split(), "--help")
    assert listed == set(re.findall(r"^│ \*? *(--[a-z-]+)", shown, re.M))


def test_every_command_has_its_section_and_says_its_arguments(warm: Warm) -> None:
    text = (DOCS / "command-line.md").read_text("utf-8")
    assert set(re.findall(r"^## turnloom ([a-z ]+)$", text, re.MULTILINE)) == set(COMMANDS)
    for name in COMMANDS:
        (usage,) = re.findall(r"^ Usage: (.*?) *$", ask(warm, *name.split(), "--help"), re.M)
        said = section(DOCS / "command-line.md", f"## turnloom {name}").lstrip()
        call = re.sub(r" \[OPTIONS\]|[][{}]", "", usage).replace("." * 6, "...")
        assert said.startswith(f"`{call}`:")


# ------------------------------------------------------------------ the log


def test_every_kind_of_event_is_listed_with_its_fields() -> None:
    found = [row for row in rows((DOCS / "log.md").read_text("utf-8")) if len(row) == 3]
    listed = {code(kind)[0]: tuple(code(fields)) for kind, fields, _ in found}
    assert listed == {fact.kind: fact.__struct_fields__ for fact in FACTS}


def test_the_envelope_is_listed() -> None:
    assert (
        tuple(first_codes(section(DOCS / "log.md", "## The envelope"))) == Event.__struct_fields__
    )


# ------------------------------------------------------------------ the board


def test_every_kind_of_visibility_is_listed() -> None:
    listed = first_codes(section(DOCS / "board.md", "## Visibility"))
    assert [each.partition("(")[0] for each in listed] == [kind.__name__ for kind in KINDS]


# ------------------------------------------------------------------ keys and values


def tables(heading: str) -> list[list[str]]:
    """The keys of each table under a heading."""
    parts = re.split(r"^\| key \|.*$", section(WRITE, heading), flags=re.MULTILINE)[1:]
    return [first_codes(part.split("\n\n")[0]) for part in parts]


KEYS: dict[str, list[type[BaseModel]]] = {
    "### orchestrator": [
        Orchestrator,
        Guards,
        RunBudget,
        Price,
        LoopDetection,
        Weights,
        Strategies,
        Selection,
        Category,
    ],
    "### agents": [
        Agent,
        PromptSection,
        EngineChoice,
        ComponentChoice,
        ContextChoice,
        SourceChoice,
        RetrievalChoice,
        HistoryChoice,
        BudgetChoice,
        FormatChoice,
    ],
    "### context_variables": [
        VariableDefinition,
        Static,
        FromEnvironment,
        DatabaseSource,
        FileSource,
        Derived,
        AgentTextTrigger,
        UserTextTrigger,
        Match,
        UiResponse,
        AgentTurnCount,
        ToolResponse,
        TimerTrigger,
        ContextChange,
        Function,
        Exposure,
    ],
    "### handoffs": [Handoff],
    "### tools": [Tool, Ui, LifecycleTool, DeclaredServer],
    "### hooks": [MessageHook],
    "### ui_config": [UiConfig],
    "### script": [Script, ScriptLine, ScriptedCall, ScriptedFunction],
}


@pytest.mark.parametrize("heading", KEYS)
def test_every_key_is_listed_and_accepted(heading: str) -> None:
    assert tables(heading) == [
        [field.alias or name for name, field in model.model_fields.items()]
        for model in KEYS[heading]
    ]


def test_every_kind_of_trigger_is_listed_and_explained() -> None:
    listed = {*KEYS["### context_variables"]}
    assert {kind.model for kind in TRIGGER_LOADERS.values()} == {
        each for each in listed if issubclass(each, Trigger)
    }
    told = section(DOCS / "context-variables.md", "## Derived variables")
    assert {*TRIGGER_LOADERS} <= {*re.findall(r"type: (\w+)", told)}


def test_every_file_has_its_keys() -> None:
    text = WRITE.read_text("utf-8")
    assert {heading for heading in FILES if f"\n### {heading}\n" in text} == set(FILES)
    assert set(FILES) <= set(code(section(DOCS / "command-line.md", "## turnloom show")))


def test_every_type_of_an_output_is_listed() -> None:
    listed = [row[0] for row in rows(section(DOCS / "tools.md", "## Outputs"))]
    assert {word for cell in listed for word in code(cell)} == {*TYPES, OPTIONAL}


def test_every_type_is_named() -> None:
    said = section(WRITE, "### context_variables")
    assert set(get_args(Type)) <= set(
        code(next(row for row in rows(said) if row[0] == "`type`")[2])
    )


def texts(cell: str) -> list[str]:
    """The texts of a cell, the empty one included."""
    return [*code(cell), *([""] if cell.endswith("empty") else [])]


def test_the_environment_is_read_as_the_page_says() -> None:
    found = rows(section(DOCS / "context-variables.md", "## How the environment is read"))
    assert len(found) > 10
    for type, said, value, noted in found:
        source = FromEnvironment(type="environment", env_var="V")
        definition = VariableDefinition.model_validate(
            {"name": "v", "type": code(type)[0], "source": source}
        )
        for text in texts(said):
            coerced = coerce(definition, text)
            assert coerced.failed == (value == "the default"), (type, text)
            assert coerced.failed or coerced.value == json.loads(code(value)[0]), (type, text)
            assert bool(coerced.note) == bool(noted) and noted in coerced.note, (type, text)


def test_conditions_are_allowed_as_the_page_says() -> None:
    for row in rows(section(DOCS / "handoffs.md", "## Conditions")):
        (condition,), allowed = code(row[0]), row[1]
        try:
            parse_condition(condition)
            assert allowed == "yes", condition
        except ValueError:
            assert allowed == "no", condition


def test_the_fields_of_a_task_are_listed() -> None:
    fields = first_codes(section(DOCS / "engines.md", "## The task"))
    assert fields == [*Task.__struct_fields__, "prompt"]
    assert first_codes(section(DOCS / "engines.md", "## The answer")) == [*Answer.__struct_fields__]


def test_settings_are_listed_with_their_defaults(warm: Warm, tmp_path: Path) -> None:
    found = rows(section(DOCS / "runs.md", "## Settings"))
    shown = ask(warm, "show", "config", folder=tmp_path)
    settings = re.findall(r"^(\w+) = (.*)  # default$", shown, re.M)
    assert len(settings) == len(shown.splitlines())
    assert [(code(row[2])[0], "".join(code(row[3]))) for row in found] == [
        (name, value.strip('"')) for name, value in settings
    ]
    assert [code(row[1])[0] for row in found] == [
        f"TURNLOOM_{name.upper()}" for name, _ in settings
    ]
    assert [code(row[0])[0] for row in found] == [name for name, _ in settings]


def test_the_database_stores_are_listed_by_their_urls(warm: Warm, tmp_path: Path) -> None:
    """One that cannot be reached is another matter than one of a kind that there is not."""
    found = rows(section(DOCS / "context-variables.md", "## Databases"))
    urls = [url for row in found for url in code(row[0])]
    assert len(urls) == 4
    words = ("index", str(DOCS / "snippets" / "Support"), "--documents")
    for url in urls:
        if "…" not in url:
            here = re.sub(r"HOST:\d+", "127.0.0.1:1", url)
            ask(warm, *words, here, code=1, folder=tmp_path, TURNLOOM_DOCUMENTS_TIMEOUT="0.1")
    ask(warm, *words, "ftp://127.0.0.1:1", code=2, folder=tmp_path)


KNOWN = """
    definitions:
      team: {type: string, source: {type: static, value: hardware}}
      role: {type: string, source: {type: derived}}
    """


async def test_exposures_are_shown_as_the_page_says(tmp_path: Path) -> None:
    told = section(DOCS / "context-variables.md", "## Exposure")
    found = [row for row in rows(told) if re.match(r"`(variables|template):", row[0])]
    assert len(found) == 7
    shown: list[str] = []

    def answer(task: Task) -> str:
        shown.append(task.prompt)
        return "Hello."

    async with Loom(store="memory", engine=answer) as app:
        for number, (said, _) in enumerate(found):
            files = {
                "agents.yaml": "A: {system_message: Hi.}",
                "context_variables.yaml": f"{KNOWN}agents: {{A: {{{code(said)[0]}}}}}",
            }
            run = await app.start(write_folder(tmp_path, files, f"Row{number}"))
            await run.finished()
    for (said, prompt), text in zip(found, shown, strict=True):
        lines = re.findall(r"`([^`]*)`|(an empty line)", prompt)
        assert text == "\n".join(line for line, _ in lines), said


def test_pages_name_no_place_of_a_machine() -> None:
    for page in (ROOT / "README.md", *DOCS.glob("*.md")):
        assert not re.search(r"(?<![\w.])/(home|root|work|Users)/", Path(page).read_text("utf-8"))
