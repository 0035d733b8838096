"""Stores that lack a port: what needs it is refused with its name, and the rest works."""

from pathlib import Path
from typing import Any

import pytest

from tests.docs.markdown import ROOT
from tests.doors.forms import FORMS, Note, Order, answer, stored
from turnloom import AgentStep, Flow, Loom, Selection, StepContext, UsageError
from turnloom.adapters.memory import MemoryStore
from turnloom.ports import codec

CLERKS = str(ROOT / "docs" / "snippets" / "Clerks")
OPTIONAL = ("artifacts", "beliefs", "results")


class Bare:
    """A store that keeps runs, and besides only what it is told to."""

    def __init__(self, *has: str) -> None:
        store = MemoryStore(codec())
        for name in ("log", "inbox", "claims", "snapshots", "plans", *has):
            setattr(self, name, getattr(store, name))

    async def aclose(self) -> None:
        """Nothing is open."""


def without(port: str) -> Bare:
    return Bare(*(name for name in OPTIONAL if name != port))


@pytest.mark.parametrize("form", ["conversation", "flow"])
async def test_runs_need_no_more_than_what_keeps_them(form: str, tmp_path: Path) -> None:
    async with Loom(store=Bare(), engine=answer) as app:
        run = await FORMS[form](app, tmp_path)
        assert (await stored(app, run))[-1].kind == "run.finished"


@pytest.mark.parametrize("port", ["beliefs", "results"])
async def test_a_board_needs_artifacts_alone(port: str, tmp_path: Path) -> None:
    async with Loom(store=without(port), engine=answer) as app:
        await FORMS["reaction"](app, tmp_path)
    async with Loom(store=without("artifacts"), engine=answer) as app:
        with pytest.raises(UsageError, match="`artifacts`"):
            app.board()
    elsewhere = MemoryStore(codec(), board=False).artifacts
    async with Loom(store=Bare(), artifacts=elsewhere, engine=answer) as app:
        await FORMS["reaction"](app, tmp_path)


def work(state: Note, ctx: StepContext) -> dict[str, str]:
    return {"text": "Done."}


async def test_a_cached_step_needs_results() -> None:
    cached = Flow("cached", Note).start_with(work, cache=True)
    for store in (Bare("results"), "memory"):
        async with Loom(store=store) as app:
            assert (await app.run(cached, Note())).state.text == "Done."
    async with Loom(store=without("results")) as app:
        for begin in (app.start, app.run):
            with pytest.raises(UsageError, match="`results`"):
                await begin(cached, Note())
        assert not await app.runs()


async def test_runs_are_verified_by_a_verifier() -> None:
    async with Loom(store=Bare("verifier")) as app:
        assert not [each async for each in app.history.verify()]
    async with Loom(store=Bare()) as app:
        with pytest.raises(UsageError, match="`verifier`"):
            [each async for each in app.history.verify()]


async def test_a_selection_needs_beliefs() -> None:
    async with Loom(store=without("beliefs"), engine=answer) as app:
        with pytest.raises(UsageError, match="`beliefs`"):
            await app.start(CLERKS)
        board: Any = app.board(guards={"selection": {"candidates": ["clerk", "cook"]}})
        for name in ("clerk", "cook"):
            board.agent(name).consumes(Order)
        with pytest.raises(UsageError, match="`beliefs`"):
            await board.publish(Order())
        assert not await app.runs()


async def test_a_selection_of_a_step_needs_beliefs() -> None:
    class Pick(AgentStep[Note]):
        engines = {"a": answer, "b": answer}

        def user_prompt(self, state: Note) -> str:
            return "Write."

        def apply(self, state: Note, said: str, context: Any) -> dict[str, str]:
            return {"text": said}

    flow = Flow("picking", Note).start_with(Pick, select=Selection(candidates=["a", "b"]))
    async with Loom(store=Bare("beliefs")) as app:
        assert (await app.run(flow, Note())).state.text == "Done."
    async with Loom(store=without("beliefs")) as app:
        with pytest.raises(UsageError, match="`beliefs`"):
            await app.run(flow, Note())
