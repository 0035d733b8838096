"""`turnloom show`: schemas of the files of a workflow, settings that keep their secrets."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Call
from tests.support.folders import write_folder
from turnloom.cli.stored import masked
from turnloom.conversation.logic.schemas import FILES, schema_of


@pytest.mark.parametrize("name", FILES)
def test_a_schema_is_printed_as_a_file_for_editors(turnloom: Call, name: str) -> None:
    assert json.loads(turnloom("show", "schema", name).out) == schema_of(name)


def test_settings_are_shown_with_where_they_came_from(turnloom: Call, tmp_path: Path) -> None:
    said = 'store = "mine.db"\nslots = 5\n[tenants."it\\"s"]\nretention = "30d"\n'
    (tmp_path / "turnloom.toml").write_text(said, "utf-8")
    secret = "postgresql://ada:s3cr3t/@word@db:5432/x?sslpassword=s3cr3t"
    done = turnloom("show", "config", "--store", "other.db", TURNLOOM_DOCUMENTS=secret)
    assert done.out.splitlines() == [
        'store = "other.db"  # argument',
        'listen_url = ""  # default',
        'artifacts = ""  # default',
        "slots = 5  # turnloom.toml",
        "tenant_slots = 0  # default",
        'documents = "postgresql://ada:***@db:5432/x?sslpassword=***"  # environment',
        "documents_timeout = 5.0  # default",
        "strict = true  # default",
        'vectors = "sqlite:.turnloom/vectors.db"  # default',
        'beliefs = ""  # default',
        'model = ""  # default',
        'engine = "pydantic_ai"  # default',
        'scheduler = "inline"  # default',
        "observer_queue = 10000  # default",
        "observer_drain = 5.0  # default",
        "lease = 30.0  # default",
        "sweep = 60.0  # default",
        "window = 0  # default",
        'durability = "effect"  # default',
        'synchronous = "normal"  # default',
        'retention = ""  # default',
        "keep_failed = false  # default",
        r'tenants = {"it\"s" = {"retention" = "30d"}}  # turnloom.toml',
    ]
    (tmp_path / "turnloom.toml").write_text(done.out, "utf-8")
    assert 'artifacts = ""  # turnloom.toml' in turnloom("show", "config").out.splitlines()
    (tmp_path / "turnloom.toml").write_text("slot = 5", "utf-8")
    assert "'slots'" in turnloom("show", "config", code=2).err


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("mongodb://a:b@h1,h2:27017/x", "mongodb://a:***@h1,h2:27017/x"),
        ("mongodb+srv://:b@h/?retryWrites=true", "mongodb+srv://:***@h/?retryWrites=true"),
        ("postgresql://ada@db:5432/x", "postgresql://ada@db:5432/x"),
        (
            "postgresql://db:5432/x?user=a&Password=b&c=d",
            "postgresql://db:5432/x?user=a&Password=***&c=d",
        ),
        ("sqlite:.turnloom/documents", "sqlite:.turnloom/documents"),
        (5, 5),
    ],
)
def test_what_opens_a_door_is_masked(given: Any, shown: Any) -> None:
    assert masked(given) == shown


def test_wrong_use_is_refused(turnloom: Call) -> None:
    assert "context_variables, orchestrator" in turnloom("show", "schema", code=2).err
    wrong = turnloom("show", "schema", "agent", code=2).err
    assert "'agent'" in wrong and "'agents'" in wrong
    turnloom("show", "config", "script", code=2)
    assert "store" in turnloom("show", "schema", "script", "--store", "x", code=2).err


def test_the_declarations_that_a_run_is_pinned_to(turnloom: Call, tmp_path: Path) -> None:
    folder = tmp_path / "Echo"
    folder.mkdir()
    (folder / "agents.yaml").write_text("Echo: {system_message: Say it again.}\n", "utf-8")
    (folder / "script.yaml").write_text("agents: {Echo: [hello]}\n", "utf-8")
    turnloom("run", str(folder), "--store", "runs.db")
    (folder / "agents.yaml").write_text("Echo: {system_message: Say nothing.}\n", "utf-8")
    shown = turnloom("show", "plan", "last", "--store", "runs.db").out
    assert "# agents.yaml\nEcho: {system_message: Say it again.}\n" in shown
    assert "# script.yaml" in shown
    assert shown.endswith("# context\nEcho\n  nothing\n")
    raw = json.loads(turnloom("show", "plan", "last", "--json", "--store", "runs.db").out)
    assert raw["agents.yaml"] == "Echo: {system_message: Say it again.}\n"


AGENTS = """\
Desk:
  context:
    sources:
    - literal: Answer from the passages alone.
      priority: 9
    - retrieval: {collection: handbook, query: "{topic}", top_k: 2, filters: {app: {state: app_id}}}
    - {provider: wins, fallback: nothing, title: Wins}
    - history: {last: 10}
    budget: {max_tokens: 40}
    format: {citation: " [{source_id}]", order: stable}
Closer: {context: [wins, {filter: {limit: 1}, timeout_s: 5}]}
Greeter: {}
"""
PROVIDERS = """\
from turnloom import ContextSlice

async def wins(request):
    return ContextSlice([])
"""
FILTERED = "turnloom.FilteredContextProvider"
SHOWN = f"""\
Desk
  1. from_literal('Answer from the passages alone.', priority=9)
  2. from_retrieval(handbook, query='{{topic}}', top_k=2, \
filters={{'app': from_state('app_id')}})
  3. from_provider(wins, fallback=turnloom.nothing, timeout=60, title='Wins')
  4. from_history(last=10)
  budget: 40 tokens
  format: citation=' [{{source_id}}]', order='stable'
Closer
  from_provider(wins, timeout=60)
  from_provider({FILTERED}(limit=1), timeout=5)
Greeter
  nothing
"""


def test_what_gives_the_agents_of_a_folder_context(turnloom: Call, tmp_path: Path) -> None:
    variables = "definitions: {topic: {type: string, source: {type: static, value: tea}}}"
    files = {
        "agents.yaml": AGENTS,
        "providers.py": PROVIDERS,
        "context_variables.yaml": variables,
    }
    folder = write_folder(tmp_path, files)
    assert turnloom("show", "plan", folder).out == SHOWN
    raw = json.loads(turnloom("show", "plan", folder, "--json").out)
    assert raw["agents.yaml"] == AGENTS
    assert "store" in turnloom("show", "plan", folder, "--store", "x", code=2).err
    assert "--json" in turnloom("show", "config", "--json", code=2).err
    (tmp_path / "Flow" / "agents.yaml").write_text("A: {context: winz}", "utf-8")
    assert "W048" in turnloom("show", "plan", folder, code=2).err


FLOWS = """\
from turnloom import Flow, Path
from pydantic import BaseModel, ConfigDict


class State(BaseModel):
    model_config = ConfigDict(frozen=True)
    done: bool = False


def work(state, ctx): return {"done": True}
def stop(state, ctx): return None


first = one = Flow("one", State).start_with(work).finally_(stop)
two = Flow("two", State).start_with(work).fork(stop, Path(), join=stop)
"""


ASKING = """\
import asyncio
from pydantic import BaseModel, ConfigDict
from turnloom import AgentStep, Budget, Flow, Loom, from_literal, from_state
from turnloom.testing import ScriptedEngine


class State(BaseModel):
    model_config = ConfigDict(frozen=True)
    question: str = "Why?"


class Answer(AgentStep[State]):
    engine = ScriptedEngine({"Answer": ["Because."]})
    def instructions(self): return "Answer."
    def user_prompt(self, state): return state.question
    def apply(self, state, answer, context): return None


SOURCES = [from_state("question", title="Asked"), from_literal("Be brief.")]
asking = Flow("asking", State).start_with(Answer, context=SOURCES, budget=Budget(40))


async def main():
    async with Loom(store="runs.db") as app:
        await app.run(asking, State())


asyncio.run(main())
"""
ASKED = """\
Answer
  1. from_state('question', title='Asked')
  2. from_literal('Be brief.')
  budget: 40 tokens
"""


def test_what_gives_the_steps_of_a_flow_context(turnloom: Call, tmp_path: Path) -> None:
    (tmp_path / "asking.py").write_text(ASKING, "utf-8")
    (tmp_path / "flows.py").write_text(FLOWS, "utf-8")
    assert turnloom("show", "plan", "asking.py").out == ASKED
    assert turnloom("show", "plan", "asking.py:asking").out == ASKED
    assert turnloom("show", "plan", "last", "--store", "runs.db").out == ASKED
    pinned = turnloom("show", "plan", "last", "--store", "runs.db", "--json").out
    assert json.loads(pinned)["flow"] == "asking"
    assert turnloom("show", "plan", "asking.py", "--json").out == pinned
    assert "store" in turnloom("show", "plan", "asking.py", "--store", "x", code=2).err
    assert "Answer" not in turnloom("show", "plan", "flows.py:one").out
    assert "flows.py:15: W108 " in turnloom("show", "plan", "flows.py:two", code=2).err
    assert turnloom("show", "graph", "asking.py").out.startswith("flowchart TD\n")


def test_a_flow_of_a_file_is_drawn(turnloom: Call, tmp_path: Path) -> None:
    (tmp_path / "flows.py").write_text(FLOWS, "utf-8")
    drawn = turnloom("show", "graph", "flows.py:one").out
    assert drawn.startswith('flowchart TD\n    start(["one"])\n    main_0["work"]\n')
    assert turnloom("show", "graph", "flows.py:first").out == drawn
    assert turnloom("check", "flows.py:first", "flows.py:one").err == ""
    assert "flows.py:15: W108 " in turnloom("check", "flows.py:two", code=2).out
    assert "'firts'" in turnloom("check", "flows.py:firts", code=2).err
    several = turnloom("show", "graph", "flows.py", code=2).err
    assert "one, two" in several and "flows.py:one" in several
    assert "flows.py:15: W108 " in turnloom("show", "graph", "flows.py:two", code=2).err
    assert "turnloom show graph NAME" in turnloom("show", "graph", code=2).err
    assert "'nowhere'" in turnloom("show", "graph", "nowhere", code=2).err


def test_a_conversation_is_drawn_from_its_folder_and_from_its_run(
    turnloom: Call, chat: str
) -> None:
    drawn = turnloom("show", "graph", chat).out
    assert drawn.startswith("flowchart TD\n")
    assert 'agent_0["Poet"]' in drawn and 'agent_1["Critic"]' in drawn
    assert re.search(r'agent_0 -->\|"1#46; .*done.*"\| agent_1', drawn)
    turnloom("run", chat, "--unattended", "--store", "runs.db")
    assert turnloom("show", "graph", "last", "--store", "runs.db").out == drawn


@pytest.mark.parametrize(
    ("setup", "ways"),
    [
        ("human_in_the_loop: true", ["start A", "A user", "B user", "user A", "user B"]),
        ("startup_mode: UserDriven", ["start user", "user A"]),
        ("human_in_the_loop: false", ["start A"]),
    ],
)
def test_the_user_of_a_conversation_is_drawn_where_no_rule_names_one(
    turnloom: Call, tmp_path: Path, setup: str, ways: list[str]
) -> None:
    files = {"orchestrator.yaml": setup, "agents.yaml": "A: {}\nB: {}\n"}
    write_folder(tmp_path, files, "Pair")
    drawn = turnloom("show", "graph", "Pair").out
    drawn = drawn.replace("agent_0", "A").replace("agent_1", "B")
    found = re.findall(r'^    (\w+) -->\|".*"\| (\w+)$', drawn, re.MULTILINE)
    assert [" ".join(each) for each in found] == ways
    assert ('user[/"user"/]' in drawn) == ("user" in " ".join(ways))


def test_a_run_of_a_flow_is_drawn_as_it_was_declared(turnloom: Call, tmp_path: Path) -> None:
    (tmp_path / "flows.py").write_text(FLOWS, "utf-8")
    declared = turnloom("show", "graph", "flows.py:one").out
    turnloom("run", "flows.py:one", "--store", "runs.db")
    assert turnloom("show", "graph", "last", "--store", "runs.db").out == declared


def test_the_state_of_a_run_at_an_event(turnloom: Call, chat: str) -> None:
    turnloom("run", chat)
    whole = json.loads(turnloom("show", "state", "last", "--json").out)
    assert (whole["status"], whole["at"]) == ("finished", whole["events"])
    early = json.loads(turnloom("show", "state", "last", "--at", "3", "--json").out)
    assert (early["at"], early["run"]) == (3, whole["run"])
    said = turnloom("show", "state", "last", COLUMNS="80").out
    assert whole["run"] in said and "done" in said
    assert max(map(len, said.splitlines())) <= 80
    for words in (
        ("state",),
        ("state", "last", "--at", "0"),
        ("state", "last", "--at", "9999"),
        ("state", "last", "--agent", "Poet"),
        ("plan", "last", "--at", "3"),
        ("graph", "last", "--agent", "Poet"),
        ("graph", "last", "--json"),
    ):
        assert turnloom("show", *words, code=2).err
