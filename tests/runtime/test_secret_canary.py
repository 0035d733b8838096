"""A secret goes where its exposure says and nowhere else, whatever text anybody writes."""

import base64
import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from tests.support import stage
from tests.support.folders import write_folder
from tests.support.logged import logged
from tests.support.tables import content_of
from turnloom import (
    AgentStep,
    Answer,
    ContextSlice,
    Flow,
    FlowFailed,
    Loom,
    Message,
    Selection,
    StepContext,
    Task,
    from_provider,
    from_retrieval,
    from_state,
    from_variables,
)
from turnloom.agents.spec import ToolCall
from turnloom.assembly.spec import RagCollection, RetrievalResult
from turnloom.board.spec import artifact_type
from turnloom.log.spec import Event
from turnloom.runtime.logic import codec
from turnloom.testing import InMemorySearch

# Agents named Shown are shown the key; nobody is shown the vault.
KEY, VAULT = 'canary-"K"-0123456789', "canary-V/ü-9876543210"
MARKS = tuple(f"⟨secret:{name}⟩" for name in ("key", "vault"))


def secret(variable: str) -> dict[str, Any]:
    source = {"type": "environment", "env_var": variable}
    return {"type": "string", "secret": True, "source": source}


VARIABLES: dict[str, Any] = {
    "definitions": {
        "key": secret("CANARY_KEY"),
        "vault": secret("CANARY_VAULT"),
        "told": {"type": "string", "source": {"type": "environment", "env_var": "CANARY_TOLD"}},
        "heard": {
            "type": "string",
            "source": {
                "type": "derived",
                "triggers": [
                    {
                        "type": "agent_text",
                        "agent": "Shown",
                        "match": {"regex": "(?s)(.*)"},
                        "capture": 1,
                    }
                ],
            },
        },
        "noted": {"type": "array", "source": {"type": "derived", "triggers": []}},
    },
    "agents": {
        "Shown": {"variables": ["key", "told", "heard", "noted", "user_id"]},
        "Other": {"variables": ["told", "heard", "noted", "user_id"]},
    },
}


def forged(mark: str) -> list[str]:
    """What somebody might write who wants a mark to be opened."""
    half = len(mark) // 2
    return [
        mark,
        f'"{mark}"',
        json.dumps(mark),
        json.dumps({mark: [mark]}, ensure_ascii=False),
        mark.replace("secret:", f"secret:{mark}"),
        mark.replace(":", "："),
        mark.replace(":", " :"),
        mark.upper(),
        mark[:half],
        mark[half:],
        "⟨secret",
        ":key⟩",
        f"{mark}…",
    ]


def said(value: str) -> list[str]:
    """A secret as errors and headers carry it."""
    data = value.encode()
    return [
        value,
        repr(value),
        json.dumps(value),
        quote(value),
        data.hex(),
        base64.b64encode(b"user:" + data).decode(),
    ]


forgeries = st.lists(
    st.sampled_from([text for mark in MARKS for text in forged(mark)]), min_size=1, max_size=3
).map("".join)
betrayals = st.lists(
    st.sampled_from([*forged(MARKS[1]), *said(VAULT), *said(KEY)]), min_size=1, max_size=3
).map(" ".join)
seldom = settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(autouse=True)
def secrets_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_KEY", KEY)
    monkeypatch.setenv("CANARY_VAULT", VAULT)


@pytest.fixture(autouse=True)
def nothing_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    yield
    assert leaks(logged(caplog)) == []


def leaks(text: str, *values: str) -> list[str]:
    """The forms of secrets that stand in a text."""
    return [form for value in values or (KEY, VAULT) for form in said(value) if form in text]


class Witness:
    """Everything that came out of runs: tasks, deltas, what code was given; and their logs."""

    def __init__(self, text: str, reply: str | None = None) -> None:
        self.text = text
        self.reply = text if reply is None else reply
        self.tasks: list[Task] = []
        self.given: list[Any] = []
        self.events: list[Event] = []

    def check(self, *, forged: bool) -> None:
        """Secrets stand where their exposure says; marks in the log are ours."""
        for event in self.events:
            written = codec().encode(event).decode()
            assert not leaks(written) and not leaks(repr(event)), event.kind
            if forged:
                assert not (marks := _marks_of_others(event)), (event.kind, marks)
        for task in self.tasks:
            beside = repr([[*task.transcript], task.exchanges, task.inputs, task.context])
            assert not leaks(task.system + beside, VAULT), task.agent
            if task.agent != "Shown":
                assert not leaks(task.system + beside), task.agent
            elif forged:
                assert not leaks(beside), task.agent
                assert task.system.count(json.dumps(KEY)) == 1
        if forged:
            assert not leaks(repr(self.given))


def _marks_of_others(event: Event) -> list[str]:
    """The places in the data of an event where a mark stands that no secret was masked by."""
    data: dict[str, Any] = json.loads(codec().encode(event))["data"]
    if event.kind == "context.loaded":
        data = {each["name"]: each for each in data["values"]}
        del data["key"], data["vault"]
    # Whose run it is, and who answers: names are not text, and nothing opens them.
    data = {key: each for key, each in data.items() if key not in ("user", "by", "to")}
    if event.kind == "frame.assembled":
        own = "context_variables.key"
        data["segments"] = [s for s in data.get("segments", ()) if s["origin"] != own]
    return [text for text in _texts(data) if "⟨secret:" in text]


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        yield from (text for pair in data.items() for each in pair for text in _texts(each))
    elif isinstance(data, list):
        yield from (text for each in data for text in _texts(each))


# A conversation: engines, tools, hooks, message hooks, providers, people, names, errors.

FOLDER: dict[str, str] = {
    "orchestrator.yaml": """
        initial_agent: Shown
        startup_mode: UserDriven
        human_in_the_loop: true
        max_turns: 4
        """,
    "agents.yaml": """
        Shown: {system_message: Use it.}
        Other:
          system_message: You may not.
          tools: [echo]
          context: {sources: [{provider: notes}]}
        """,
    "context_variables.json": json.dumps(VARIABLES),
    "handoffs.yaml": """
        - {source_agent: Shown, target_agent: Other, handoff_type: after_work}
        - {source_agent: Other, target_agent: Shown, handoff_type: after_work}
        """,
    "tools.yaml": """
        tools:
        - {agent: Shown, file: code.py, function: echo}
        lifecycle_tools:
        - {trigger: before_chat, agent: null, file: code.py, function: prepare}
        - {trigger: before_agent, agent: Other, file: code.py, function: fail}
        """,
    "hooks.yaml": """
        hooks:
        - {hook_type: process_message_before_send, hook_agent: Other, filename: code.py,
           function: outgoing}
        - {hook_type: process_all_messages_before_reply, hook_agent: Shown, filename: code.py,
           function: reading}
        """,
    "code.py": """
        from tests.support import stage

        async def echo(text, context_variables):
            stage.kept["given"].append(text)
            done = await context_variables.once("effect", lambda: stage.kept["text"])
            context_variables["noted"] = [done, text]
            context_variables["undeclared"] = {done: text}
            return {done: [text]}

        def prepare(context_variables):
            context_variables["noted"] = [stage.kept["text"]]
            return stage.kept["text"]

        def fail(context_variables):
            raise RuntimeError(stage.kept["text"])

        def outgoing(sender, message, recipient, silent):
            return message + stage.kept["text"]

        def reading(messages):
            return [*messages, {"content": stage.kept["text"], "name": "user"}]
        """,
    "providers.py": """
        from tests.support import stage
        from turnloom import ContextSlice

        async def notes(request):
            text = stage.kept["text"]
            return ContextSlice([{"note": text, text: [text]}], {"about": text})
        """,
}


class Parrot:
    """An engine that says a text in every way that it can, in pieces, and at last fails with it."""

    def __init__(self, witness: Witness, *, streams: bool) -> None:
        self._witness = witness
        self._streams = streams

    async def __call__(self, task: Task) -> Answer:
        witness, text = self._witness, self._witness.text
        witness.tasks.append(task)
        if self._streams:
            for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
                task.say(piece)
        if not task.exchanges:
            return Answer(text, calls=(ToolCall("echo", {"text": text}), ToolCall(f"no {text}")))
        if task.turn == 4:
            raise RuntimeError(text)
        return Answer(text)


async def converse(folder: str, witness: Witness, store: str, *, streams: bool) -> None:
    stage.clear()
    stage.kept.update(text=witness.text, given=witness.given)
    async with Loom(store=store, engine=Parrot(witness, streams=streams)) as app:
        user = witness.text if streams else "u1"  # secrets are not looked for in names
        run = await app.start(folder, user_id=user)
        with run.listening(lambda delta: witness.given.append(delta.text)):
            async for event in run.events():
                witness.events.append(event)
                if event.kind == "run.paused":
                    await run.answer(None, witness.reply, user_id=user)
        witness.given.append(str(await app.explain.timeline(run.id)))
        witness.given.append(str(await app.explain.turn(run.id, 1)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_folder(tmp_path_factory.mktemp("canary"), FOLDER)


@seldom
@given(forgeries)
async def test_forged_marks_open_nothing_in_conversations(
    folder: str, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CANARY_TOLD", text)
    await converse(folder, witness := Witness(text), "memory", streams=True)
    witness.check(forged=True)


@seldom
@given(betrayals)
async def test_what_conversations_say_of_secrets_is_masked(
    folder: str, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CANARY_TOLD", text)
    await converse(folder, witness := Witness(text), "memory", streams=False)
    witness.check(forged=False)


async def test_nothing_is_left_in_a_store(
    folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = " ".join((*MARKS, *said(VAULT), *said(KEY)))
    monkeypatch.setenv("CANARY_TOLD", text)
    # What a person types passes through the inbox as typed.
    witness = Witness(text, reply="".join(MARKS))
    await converse(folder, witness, str(tmp_path / "runs.db"), streams=False)
    witness.check(forged=False)
    kept = content_of(tmp_path).decode("utf-8", "replace")
    assert kept and not leaks(kept)


# A board: artifacts with their tags, providers, sources, passages, and what agents make of them.


@artifact_type(name="canary.Order")
class Order(BaseModel):
    """What comes from outside."""

    item: str
    more: dict[str, list[str]] = {}


@artifact_type(name="canary.Parcel")
class Parcel(BaseModel):
    """What an agent makes of it."""

    item: str


class Manual(RagCollection):
    """Passages."""

    name = "manual"


async def react(witness: Witness) -> None:
    text = witness.text

    async def engine(task: Task) -> Any:
        witness.tasks.append(task)
        return Parcel(item=text) if task.agent == "Shown" else None

    async def notes(request: Any) -> ContextSlice:
        witness.given.append([each.payload for each in request.inputs])
        return ContextSlice([{"note": text, text: [text]}], {"about": text})

    def item(order: Any) -> str:
        witness.given.append(order)
        return f"{order.item}{text}"

    search = InMemorySearch()
    search.seed(RetrievalResult(text, 0.9, text, metadata={text: text}))
    async with Loom(store="memory") as app:
        app.register_collection(Manual, search)
        board = app.board(variables=VARIABLES)
        sources = (
            from_state(item),
            from_retrieval(Manual, "x"),
            from_provider(notes),
            from_variables("heard", "told"),
        )
        shown = board.agent("Shown").consumes(Order).publishes(Parcel)
        shown.with_sources(*sources).with_engines(engine)
        board.agent("Other").consumes(Parcel).with_engines(engine)
        made = await board.publish(Order(item=text, more={text: [text]}), tags={text})
        await board.run_until_idle(timeout=60)
        witness.given.append(made.payload)
        for run in await app.runs():
            witness.events += [event async for event in app.handle(run.run).events()]


@seldom
@given(forgeries)
async def test_forged_marks_open_nothing_on_boards(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CANARY_TOLD", text)
    await react(witness := Witness(text))
    assert [task.agent for task in witness.tasks] == ["Shown", "Other"]
    witness.check(forged=True)


@seldom
@given(betrayals)
async def test_what_boards_hold_of_secrets_is_masked(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CANARY_TOLD", text)
    await react(witness := Witness(text))
    witness.check(forged=False)


# A flow: its state, what steps change and reduce, what agents are asked and answer, errors.


def joined(before: str, more: str) -> str:
    return before + more


class Work(BaseModel):
    """A state, with a field that code reduces."""

    model_config = ConfigDict(frozen=True)

    text: str = ""
    notes: Annotated[str, joined] = ""
    more: dict[str, list[str]] = {}


class Asks(AgentStep[Work]):
    """An agent that is asked about the state, and whose answer is what it changes."""

    def __init__(self, witness: Witness, name: str) -> None:
        self.witness = witness
        self.name = name
        self.engine = self.say

    async def say(self, task: Task) -> Answer:
        self.witness.tasks.append(task)
        return Answer(self.witness.text)

    def user_prompt(self, state: Work) -> str:
        self.witness.given.append(state)
        return f"{state.text}{self.witness.text}"

    def apply(self, state: Work, answer: str, context: Any) -> dict[str, Any]:
        self.witness.given.append(answer)
        return {"text": answer, "notes": answer}


class Tells(Asks):
    """One that says itself all that its agent is told."""

    def build_messages(self, state: Work, context: Any) -> Sequence[Message]:
        return [Message(0, "user", self.user_prompt(state))]


async def flow_of(witness: Witness) -> None:
    text = witness.text

    async def change(state: Work, ctx: StepContext) -> dict[str, Any]:
        witness.given.append(state)
        ctx["noted"] = [text]
        return {"notes": text, "more": {text: [text]}}

    async def fail(state: Work) -> None:
        witness.given.append(state)
        raise RuntimeError(text)

    def category(state: Work) -> str:
        raise RuntimeError(f"{state.text} is no category")

    # The halves of a mark come from two steps, and the reducer puts them together.
    async def begin(state: Work) -> dict[str, Any]:
        return {"notes": "⟨sec"}

    async def end(state: Work) -> dict[str, Any]:
        return {"notes": "ret:vault⟩"}

    flow = Flow("work", Work, variables=VARIABLES).start_with(change).then(begin).then(end)
    flow = flow.then(Asks(witness, "Shown"), name="Shown", context=[from_state("text")])
    flow = flow.then(Tells(witness, "Other"), name="Other")
    picked, select = Asks(witness, "Picked"), Selection(candidates=("a", "b"), category=category)
    picked.engine, picked.engines = None, {"a": picked.say, "b": picked.say}
    flow = flow.then(picked, name="Picked", select=select).finally_(fail)
    async with Loom(store="memory") as app:
        try:
            await app.run(flow, Work(text=text, more={text: [text]}))
        except FlowFailed as error:
            witness.given.append(str(error))
        for run in await app.runs():
            witness.events += [event async for event in app.handle(run.run).events()]


@seldom
@given(forgeries)
async def test_forged_marks_open_nothing_in_flows(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CANARY_TOLD", text)
    await flow_of(witness := Witness(text))
    assert [task.agent for task in witness.tasks] == ["Shown", "Other", "Picked"]
    witness.check(forged=True)


@seldom
@given(betrayals)
async def test_what_flows_hold_of_secrets_is_masked(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CANARY_TOLD", text)
    await flow_of(witness := Witness(text))
    witness.check(forged=False)
