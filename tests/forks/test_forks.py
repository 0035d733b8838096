"""Forks of conversations: what they share, what they change, and what they may do."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import write_folder
from tests.support.world import Refitted, at_rest
from turnloom import (
    Answer,
    DefinitionError,
    Event,
    Loom,
    Run,
    Task,
    ToolCall,
    UnknownRun,
    UsageError,
)
from turnloom.adapters.sqlite import SqliteStore
from turnloom.runtime.logic import codec
from turnloom.testing import Killed

DESK = {
    "orchestrator.yaml": "{initial_agent: Clerk, human_in_the_loop: true}",
    "agents.yaml": "agents: {Clerk: {system_message: Serve.}}",
    "handoffs.yaml": """
        handoff_rules:
          - {source_agent: Clerk, target_agent: terminate, handoff_type: condition,
             condition: "${sold} == True"}
          - {source_agent: Clerk, target_agent: user, handoff_type: after_work}
          - {source_agent: user, target_agent: Clerk, handoff_type: after_work}
        """,
    "context_variables.yaml": """
        definitions:
          tone: {type: string, enum: [warm, cool], source: {type: static, value: warm}}
          key: {type: string, secret: true, source: {type: environment, env_var: DESK_KEY}}
          sold: {type: boolean, source: {type: derived, default: false, triggers: []}}
        agents: {Clerk: {variables: [tone]}}
        """,
    "tools.yaml": "tools: [{agent: Clerk, file: desk.py, function: sell}]",
    "desk.py": """
        from tests.forks.test_forks import sold

        def sell(what: str, context_variables) -> str:
            sold[what] += 1
            context_variables.set("sold", True)
            return f"{what} is sold"
        """,
}

# What was sold.
sold: Counter[str] = Counter()


async def clerk(task: Task) -> Answer:
    """Asks what to sell, and sells it."""
    if task.turn == 1:
        return Answer("What?")
    if not task.exchanges:
        return Answer(calls=(ToolCall("sell", {"what": task.transcript[-1].text}),))
    (result,) = task.exchanges[-1].results
    return Answer(f"{result.error or result.value}.")


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    sold.clear()
    monkeypatch.setenv("DESK_KEY", "s3cr3t")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(write_folder(tmp_path, DESK))


@pytest.fixture(params=["memory", "desk.db"])
async def loom(request: Any, tmp_path: Path) -> AsyncIterator[Loom]:
    where = request.param if request.param == "memory" else str(tmp_path / request.param)
    async with Loom(store=where, engine=clerk) as app:
        yield app


@pytest.fixture
async def run(loom: Loom, folder: Path) -> Run:
    """A run in which tea was sold."""
    run = await loom.start(folder)
    await at_rest(run)
    await run.answer(None, "tea")
    assert (await run.finished()).kind == "run.finished"
    assert sold == {"tea": 1}
    return run


async def position(loom: Loom, run: Run, kind: str) -> int:
    """The position of the first event of a kind."""
    events = await loom.history.events(run.id)
    return next(event.seq for event in events if event.kind == kind)


async def texts(loom: Loom, run: Run) -> Sequence[str]:
    events = await loom.history.events(run.id)
    return [event.data.text for event in events if event.kind == "agent.text"]


async def asked(fork: Run, at: int = 0) -> Event:
    """The event with which a fork waits."""
    rest = await at_rest(fork, at)
    assert rest.kind == "run.paused"
    return rest


async def test_a_fork_shares_the_past_and_takes_another_answer(loom: Loom, run: Run) -> None:
    at = await position(loom, run, "run.paused")
    before = await loom.history.events(run.id)
    fork = await run.fork(at, answer="silk", tools="live")
    assert (await fork.finished()).kind == "run.finished"
    assert sold == {"tea": 1, "silk": 1}
    assert await texts(loom, fork) == ["What?", "silk is sold."]
    assert await loom.history.events(run.id) == before
    events = await loom.history.events(fork.id)
    assert events[:at] == before[:at]
    assert (events[at].kind, events[at].data.of, events[at].data.at) == ("run.forked", run.id, at)
    assert (await loom.explain.variable(fork.id, "chat_id")).value == fork.id
    begun = {each.run: each.started for each in await loom.runs()}
    assert begun == {run.id: before[0].at, fork.id: events[at].at}
    assert [each.run for each in await loom.runs(since=events[at].at)] == [fork.id]


async def test_equal_calls_have_the_recorded_result(loom: Loom, run: Run) -> None:
    fork = await run.fork(await position(loom, run, "run.paused"), answer="tea")
    assert (await fork.finished()).kind == "run.finished"
    assert sold == {"tea": 1}
    assert await texts(loom, fork) == await texts(loom, run)
    assert (await loom.explain.variable(fork.id, "sold")).value is True


@pytest.mark.parametrize(
    ("answer", "said", "count"),
    [
        ("allow", "silk is sold.", 1),
        ({"decision": "replace", "result": "silk is lent"}, "silk is lent.", 0),
    ],
)
async def test_another_call_is_put_to_the_user(
    loom: Loom, run: Run, answer: Any, said: str, count: int
) -> None:
    at = await position(loom, run, "run.paused")
    fork = await run.fork(at, answer="silk", values={"sold": True})
    await asked(fork, at)
    (question,) = await fork.questions()
    assert (question.tool, question.to) == ("effect", "local")
    assert question.payload["arguments"] == {"what": "silk"}
    with pytest.raises(UsageError):
        await fork.answer(question.id, "maybe")
    await fork.answer(question.id, answer)
    assert (await fork.finished()).kind == "run.finished"
    assert (await texts(loom, fork))[-1] == said
    assert sold["silk"] == count
    assert (await loom.history.replay(fork.id)).divergence is None


async def test_a_refused_call_fails(loom: Loom, run: Run) -> None:
    at = await position(loom, run, "run.paused")
    fork = await run.fork(at, answer="silk", values={"sold": True})
    await asked(fork, at)
    await fork.answer(None, "refuse")
    await fork.finished()
    other = await run.fork(at, answer="silk", values={"sold": True}, tools="recorded")
    await other.finished()
    assert sold == {"tea": 1}
    for each in (fork, other):
        events = await loom.history.events(each.id)
        (failed,) = [event.data for event in events if event.kind == "tool.failed"]
        assert failed.error == "EffectRefused"
    again = await fork.fork(await position(loom, fork, "tool.called"))  # it is not on record
    await asked(again, at)
    await again.answer(None, "allow")
    await again.finished()
    assert sold == {"tea": 1, "silk": 1}


async def test_values_are_set_and_seen(loom: Loom, run: Run) -> None:
    fork = await run.fork(2, values={"tone": "cool"})
    await asked(fork, 2)
    turn = await loom.explain.turn(fork.id, 1)
    assert "cool" in str(turn)
    assert (await loom.explain.variable(fork.id, "tone")).value == "cool"
    assert (await loom.explain.variable(run.id, "tone")).value == "warm"


WRONG: tuple[dict[str, Any], ...] = (
    {"values": {"tone": "loud"}},
    {"values": {"tone": 5}},
    {"values": {"mood": "good"}},
    {"values": {"key": "x"}},
    {"values": {"chat_id": "x"}},
    {"answer": {"no": "text"}},
    {"answer": "tea", "by": "eve"},
    {"tools": "maybe"},
)


async def test_what_does_not_fit_is_refused_and_nothing_begins(loom: Loom, run: Run) -> None:
    at = await position(loom, run, "run.paused")
    for changes in WRONG:
        with pytest.raises(UsageError):
            await run.fork(at, **changes)
    with pytest.raises(DefinitionError):
        await run.fork(at, folder="nowhere")
    assert len(await loom.runs()) == 1


async def test_a_run_is_not_forked_at_its_end_or_beyond(loom: Loom, run: Run) -> None:
    last = (await loom.history.events(run.id))[-1].seq
    for at in (last, last + 1, 0):
        with pytest.raises(UsageError):
            await run.fork(at)
    with pytest.raises(UsageError):
        await run.fork(2, answer="tea")  # no question is open there
    with pytest.raises(UnknownRun):
        await loom.handle("none").fork(1)
    assert len(await loom.runs()) == 1


async def test_forks_of_forks_and_their_retries(loom: Loom, run: Run) -> None:
    at = await position(loom, run, "run.paused")
    fork = await run.fork(at, answer="tea")
    await fork.finished()
    second = await fork.fork(await position(loom, fork, "model.answered"), tools="recorded")
    await asked(second, at)
    await second.answer(None, "tea")
    assert (await second.finished()).kind == "run.finished"
    await fork.retry(2, tools="recorded")
    assert (await fork.finished()).kind == "run.finished"
    third = await fork.fork(at + 3, tools="recorded")
    assert (await third.finished()).kind == "run.finished"
    assert sold == {"tea": 1}
    assert "forked" in str(await loom.explain.timeline(third.id))


async def test_a_fork_goes_on_with_a_changed_folder(loom: Loom, run: Run, tmp_path: Path) -> None:
    changed = DESK | {"agents.yaml": "agents: {Clerk: {system_message: Sell.}}"}
    folder = write_folder(tmp_path, changed, "Changed")
    fork = await run.fork(await position(loom, run, "run.paused"), answer="tea", folder=folder)
    assert (await fork.finished()).kind == "run.finished"
    assert "Sell." in str(await loom.explain.turn(fork.id, 2))
    events = await loom.history.events(fork.id)
    (forked,) = [event.data for event in events if event.kind == "run.forked"]
    assert forked.changed == ("agents.yaml",)
    assert (await loom.history.replay(fork.id)).divergence is None
    definition = await loom.history.definition(fork.id)
    assert "Sell." in definition.files["agents.yaml"]


async def test_another_process_drives_a_fork(folder: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "desk.db")
    async with Loom(store=store, engine=clerk) as loom:
        run = await loom.start(folder)
        at = (await at_rest(run)).seq
        await run.answer(None, "tea")
        await run.finished()
        fork = await run.fork(at)
        await asked(fork, at)
        silk = await run.fork(at, answer="silk")
        await asked(silk, at)
    async with Loom(store=store, engine=clerk) as loom:
        for id, answer in ((fork.id, "tea"), (silk.id, "allow")):
            again = await loom.resume(id)
            await again.answer(None, answer)
            assert (await again.finished()).kind == "run.finished"
    assert sold == {"tea": 1, "silk": 1}


class Dying:
    """A log whose process ends around a branch."""

    def __init__(self, log: Any, *, before: bool) -> None:
        self._log = log
        self._before = before

    async def branch(self, *args: Any) -> Any:
        if not self._before:
            await self._log.branch(*args)
        raise Killed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


@pytest.mark.parametrize("before", [True, False])
async def test_a_kill_leaves_the_whole_fork_or_none(
    folder: Path, tmp_path: Path, before: bool
) -> None:
    store = SqliteStore(tmp_path / "desk.db", codec())
    async with Loom(store=store, engine=clerk) as loom:
        run = await loom.start(folder)
        at = (await at_rest(run)).seq
    async with Loom(
        store=Refitted(store, log=Dying(store.log, before=before)), engine=clerk
    ) as loom:
        with pytest.raises(Killed):
            await loom.handle(run.id).fork(at, answer="tea", values={"tone": "cool"}, tools="live")
    async with Loom(store=store, engine=clerk) as loom:
        forks = [each.run for each in await loom.runs() if each.run != run.id]
        assert len(forks) == (not before)
        for fork in forks:
            assert (await (await loom.resume(fork)).finished()).kind == "run.finished"
            assert (await loom.explain.variable(fork, "tone")).value == "cool"
    await store.aclose()
