"""A replay finds the first event that is decided otherwise, in every form."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict

from tests.support.folders import INTERVIEW, write_folder
from tests.support.world import at_rest
from turnloom import Answer, Flow, Loom, Replay, Task, artifact_type
from turnloom.adapters.memory import MemoryStore
from turnloom.assembly.events import FrameAssembled, Span, Withheld
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.logic import codec
from turnloom.runtime.replay.comparing import is_same_fact
from turnloom.testing import ScriptedEngine

Edit = Callable[[Event], Event]
SAID = {"Asker": ["What is it?", "Then: NEXT"], "Planner": ["A draft.", "DONE"]}


def engine() -> ScriptedEngine:
    return ScriptedEngine(SAID)


async def interview(where: Path) -> tuple[MemoryStore, str]:
    """A conversation with variables, routes, a person and a budget."""
    store = MemoryStore(codec())
    guarded = f"{INTERVIEW['orchestrator.yaml']}\n        guards: {{budget: {{steps: 100}}}}\n"
    folder = write_folder(where, {**INTERVIEW, "orchestrator.yaml": guarded})
    async with Loom(store=store, engine=engine()) as app:
        run = await app.start(folder)
        rest = await at_rest(run)
        question = await run.question()
        assert question is not None
        await run.answer(question.id, "A report.")
        await at_rest(run, rest.seq)
    return store, run.id


async def edited(store: MemoryStore, run: str, edit: Edit) -> MemoryStore:
    """A store with the log of a run, each event edited."""
    other, key = MemoryStore(codec()), RunKey("local", run)
    await other.log.append(key, [edit(event) for event in await store.log.read(key)], 0)
    return other


def redeclared(file: str, before: str, after: str) -> Edit:
    """Change a declaration that a run is pinned to."""

    def edit(event: Event) -> Event:
        if event.seq != 1:
            return event
        files = event.data.files
        assert before in files[file], files[file]
        changed = {**files, file: files[file].replace(before, after)}
        return msgspec.structs.replace(
            event, data=msgspec.structs.replace(event.data, files=changed)
        )

    return edit


async def replayed(store: MemoryStore, run: str) -> Replay:
    async with Loom(store=store, engine=engine()) as app:
        return await app.history.replay(run)


async def test_a_conversation_is_decided_again_as_it_was(tmp_path: Path) -> None:
    store, run = await interview(tmp_path)
    replay = await replayed(store, run)
    events = await store.log.read(RunKey("local", run))
    assert replay.divergence is None and replay.same == replay.events == len(events)
    assert (replay.turns, replay.form) == (4, "conversation")
    assert str(replay) == f"✓ {run} Flow: {len(events)} events, 4 turns"


@pytest.mark.parametrize(
    ("file", "before", "after", "kind"),
    [
        ("handoffs.yaml", "${known} == True", "${known} == False", "route.decided"),
        ("context_variables.yaml", "value: planning", "value: thinking", "context.changed"),
        ("context_variables.yaml", "variables: [stage, user_id]", "variables: [stage]", "frame"),
        ("orchestrator.yaml", "steps: 100", "steps: 3", "scarcity"),
    ],
)
async def test_a_changed_declaration_is_found_where_it_decides(
    tmp_path: Path, file: str, before: str, after: str, kind: str
) -> None:
    store, run = await interview(tmp_path)
    other = await edited(store, run, redeclared(file, before, after))
    found = (await replayed(other, run)).divergence
    assert found is not None and found.decided is not None
    assert found.recorded.kind.startswith(kind) or found.decided.kind.startswith(kind)
    assert len(found.fields) > 1 or found.recorded.kind != found.decided.kind


async def test_an_edited_value_is_found_at_its_event(tmp_path: Path) -> None:
    store, run = await interview(tmp_path)

    def edit(event: Event) -> Event:
        if event.kind != "context.changed" or event.data.name != "stage":
            return event
        data = msgspec.structs.replace(event.data, value="forged")
        return msgspec.structs.replace(event, data=data)

    events = await store.log.read(RunKey("local", run))
    seq = next(e.seq for e in events if e.kind == "context.changed" and e.data.name == "stage")
    found = (await replayed(await edited(store, run, edit), run)).divergence
    assert found is not None and found.seq == seq
    assert ("value", '"forged"', '"planning"') in [each.cells for each in found.fields]


async def test_an_event_that_nothing_decides_is_found(tmp_path: Path) -> None:
    store, run = await interview(tmp_path)
    events = await store.log.read(RunKey("local", run))
    answered = next(e for e in events if e.kind == "model.answered")

    def edit(event: Event) -> Event:
        if event.seq != answered.seq:
            return event
        return msgspec.structs.replace(event, id="t9/model.0")

    found = (await replayed(await edited(store, run, edit), run)).divergence
    assert found is not None and (found.seq, found.decided) == (answered.seq, None)


class Count(BaseModel):
    model_config = ConfigDict(frozen=True)
    number: int = 0


@artifact_type
class Order(BaseModel):
    number: int = 0


# What the code of the program decides by; a test changes it as a new release would.
LIMIT = {"least": 1}


def add(state: Count) -> dict[str, Any]:
    return {"number": state.number + 1}


def double(state: Count) -> dict[str, Any]:
    return {"number": state.number * 2}


def halve(state: Count) -> dict[str, Any]:
    return {"number": state.number // 2}


def is_enough(state: Count) -> bool:
    return state.number >= LIMIT["least"]


def is_large(order: Order) -> bool:
    return order.number >= LIMIT["least"]


async def look(task: Task) -> Answer:
    return Answer("Seen.")


async def test_a_flow_whose_condition_changed_is_found_at_its_branch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases: dict[Any, Any] = {True: double, False: halve}
    flow = Flow("counting", Count).start_with(add)
    flow.branch(is_enough, cases)
    async with Loom(store="memory") as app:
        run = (await app.run(flow, Count())).run_id
        assert (await app.history.replay(run)).divergence is None
        monkeypatch.setitem(LIMIT, "least", 5)
        found = (await app.history.replay(run)).divergence
    assert found is not None and found.decided is not None
    assert found.recorded.kind == found.decided.kind == "branch.taken"
    assert ("value", "true", "false") in [each.cells for each in found.fields]


async def test_a_board_whose_subscription_changed_is_found_at_the_offer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Loom(store="memory") as app:
        board = app.board("shop")
        board.agent("clerk").consumes(Order, where=is_large).with_engines(look)
        await board.publish(Order(number=3))
        await board.run_until_idle()
        (summary,) = await app.runs()
        assert (await app.history.replay(summary.run)).divergence is None
        monkeypatch.setitem(LIMIT, "least", 5)
        found = (await app.history.replay(summary.run)).divergence
    assert found is not None and found.decided is not None
    assert found.recorded.kind == found.decided.kind == "artifact.offered"


@pytest.mark.parametrize("field, is_same", [("detail", True), ("reason", False), ("origin", False)])
def test_words_about_what_was_withheld_are_not_compared(field: str, is_same: bool) -> None:
    """Another release may choose others, and the logs of this one still replay."""
    withheld = Withheld("context[0]", "over_budget", "612 characters")
    span = Span(0, 0, 0, 0, digest="")
    frame = FrameAssembled(1, "A", "v", span, 1, counter="c", digest="d", withheld=(withheld,))
    other = msgspec.structs.replace(withheld, **{field: "another"})
    assert is_same_fact(frame, msgspec.structs.replace(frame, withheld=(other,))) is is_same
