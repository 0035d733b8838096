"""The page of a run says what explanations say, whatever is in the run, and asks for nothing."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.explain.conftest import FLOW, Engine
from tests.explain.shop import Order, Parcel, Payment, engine, shop
from tests.explain.workshop import LINES, REPLIES, TOKEN, WORKSHOP
from tests.golden.recording import SCENES
from tests.support.folders import write_folder
from tests.support.html_documents import read_html
from tests.support.world import World
from turnloom import Loom, UnknownRun
from turnloom.explain.spec.steps import Step
from turnloom.explain.spec.timeline import Timeline
from turnloom.explain.spec.turn import TurnExplained
from turnloom.explain.spec.variable import VariableExplained
from turnloom.kernel.markup import visible

HOSTILE = "</script></style><img src=x onerror=alert(1)>\u202e&amp;\x00'\" --> ]]>"


def of_turn(found: TurnExplained) -> Iterator[str]:
    """What a turn says."""
    yield found.headline
    for each in found.segments:
        yield from (each.origin, each.reason, f"{each.tokens} tokens, {each.share} %")
        yield from (message.text for message in each.messages)
        yield "" if each.messages else each.text
    for each in found.withheld:
        yield from (each.origin, each.reason, each.detail)
    yield from of_steps(found.steps)
    yield from found.exchanged
    if found.onward:
        yield found.onward.reason


def of_steps(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        yield step.says
        yield from of_steps(getattr(step, "within", ()))


def of_variable(found: VariableExplained) -> Iterator[str]:
    yield found.headline
    yield from found.origin
    yield from (each.says for each in found.history)
    yield from (cause.says for each in found.history for cause in each.causes)
    yield from (each.withheld or each.text for each in found.frames)
    yield from (each.verdict for each in found.judged)


def of_route(found: Any) -> Iterator[str]:
    for rule in getattr(found, "rules", ()):
        yield from (rule.wants, rule.sight, rule.verdict)
    yield from getattr(found, "alternatives", ())
    yield from getattr(found, "parts", ())
    yield from (each.description for each in getattr(found, "to", ()))
    yield from (each.otherwise for each in getattr(found, "to", ()) if each.failed)
    yield getattr(found, "reason", "")


def of_timeline(found: Timeline) -> Iterator[str]:
    yield found.headline
    yield from found.about
    yield from (cell.strip() for row in found.rows for cell in row.cells)


ROUTED = {"route.decided", "artifact.published", "artifact.consumed", "branch.taken"} | {
    f"{node}.{ended}" for node in ("fork", "loop") for ended in ("opened", "joined", "ended")
}


async def said(app: Loom, run: str, app_id: str) -> list[str]:
    """Everything that the explanations of a run say."""
    of: Any = {"app_id": app_id}
    timeline = await app.explain.timeline(run, **of)
    state = await app.history.state(run, **of)
    texts = [*of_timeline(timeline), *state.about, *state.notes]
    for _, _, rows in state.sections:
        texts += [cell for row in rows for cell in row]
    for number in range(1, timeline.turns + 1):
        texts += of_turn(await app.explain.turn(run, number, **of))
    for event in await app.history.events(run, **of):
        if event.kind in ROUTED:
            texts += of_route(await app.explain.route(run, event.seq, **of))
    for name in [*(each.name for each in state.variables), *(each.name for each in state.absent)]:
        texts += of_variable(await app.explain.variable(run, name, **of))
    return texts


async def check_page(app: Loom, run: str, app_id: str = "local") -> str:
    """A page that is valid, and says what the explanations say."""
    page = await app.explain.page(run, app_id=app_id)
    found = read_html(page)
    missing = [each for each in await said(app, run, app_id) if visible(each) not in found.text]
    assert not missing
    for event in await app.history.events(run, app_id=app_id):
        assert f"event-{event.seq}" in found.ids
    return page


async def test_a_conversation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNLOOM_TEST_TOKEN", TOKEN)
    left = iter(REPLIES)
    async with Loom(store="memory", engine=Engine(LINES)) as app:
        run = await app.start(write_folder(tmp_path, WORKSHOP), user_id="u1")
        async for event in run.events():
            if event.kind == "run.paused":
                await run.answer(None, next(left))
        page = await check_page(app, run.id)
        assert TOKEN not in page
        assert page == await app.explain.page(run.id)
        with pytest.raises(UnknownRun):
            await app.explain.page("none")
        with pytest.raises(UnknownRun):
            await app.explain.page(run.id, app_id="other")


async def test_a_board() -> None:
    async with shop(engine()) as at:
        at.board.agent("packer").consumes(Order).publishes(Parcel)
        at.board.agent("clerk").consumes(Payment).publishes(Parcel)
        run = await at.board.publish(Order(item="<b>lamp</b>"))
        await at.settle()
        assert run.run is not None
        found = read_html(await check_page(at.app, run.run))
        assert f"artifact-{run.id}" in found.ids


FORMS = ["a_flow_with_nested_forks", "a_flow_undone", "an_answer_decides_a_route"]


@pytest.mark.parametrize("name", FORMS)
async def test_a_scene(name: str, tmp_path: Path) -> None:
    await check_scene(name, tmp_path)


@pytest.mark.doors
@pytest.mark.parametrize("name", sorted(SCENES.keys() - {*FORMS}))
async def test_every_scene(name: str, tmp_path: Path) -> None:
    await check_scene(name, tmp_path)


async def check_scene(name: str, where: Path) -> None:
    """The pages of all runs of a scene."""
    world = World()
    await SCENES[name](world, where)
    async with world.app() as app:
        for tenant in ("acme", "local"):
            for summary in await app.runs(app_id=tenant):
                await check_page(app, summary.run, tenant)


async def test_the_plan_of_a_flow_says_what_came_of_each_step(tmp_path: Path) -> None:
    world = World()
    await SCENES["a_flow_with_nested_forks"](world, tmp_path)
    async with world.app() as app:
        (summary,) = await app.runs(app_id="acme")
        page = await app.explain.page(summary.run, app_id="acme")
    plan = page.partition('id="plan"')[2].partition("</section>")[0]
    classes = {}
    for node in plan.split('class="node ')[1:]:
        name = node.partition("<b>")[2].partition("</b>")[0]
        classes[name] = node.partition('"')[0].split()[-1]
    failed, stopped, untaken = {"worse", "bad"}, {"waits"}, {"never"}
    assert {name for name, end in classes.items() if end == "bad"} == failed
    assert {name for name, end in classes.items() if end == "skipped"} == stopped
    assert {name for name, end in classes.items() if end == "untaken"} == untaken
    assert classes["book"] == classes["mend"] == classes["rescue"] == "good"


async def test_hostile_texts_are_texts(tmp_path: Path) -> None:
    lines = {"Asker": [HOSTILE, "NEXT"], "Planner": [HOSTILE, "DONE"]}
    async with Loom(store="memory", engine=Engine(lines)) as app:
        run = await app.start(write_folder(tmp_path, FLOW), user_id=HOSTILE[:40])
        async for event in run.events():
            if event.kind == "run.paused":
                await run.answer(None, HOSTILE)
        page = await check_page(app, run.id)
    found = read_html(page)
    assert "img" not in found.tags
    assert found.tags.count("script") == found.tags.count("style") == 1
    assert not {"\u202e", "\x00"} & {*page}
    assert visible(HOSTILE) in found.text


async def test_the_policy_admits_the_style_and_the_script_only(tmp_path: Path) -> None:
    async with Loom(store="memory", engine=Engine()) as app:
        run = await app.start(write_folder(tmp_path, FLOW))
        async for event in run.events():
            if event.kind == "run.paused":
                break
        found = read_html(await app.explain.page(run.id))
    sources = dict(each.strip().partition(" ")[::2] for each in found.policy.split(";"))
    assert sources.keys() == {"default-src", "style-src", "script-src", "base-uri", "form-action"}
    assert sources["default-src"] == sources["base-uri"] == sources["form-action"] == "'none'"
    for each in ("style-src", "script-src"):
        assert sources[each].startswith("'sha256-") and " " not in sources[each]


async def test_long_texts_are_written_once(tmp_path: Path) -> None:
    told = "Ask once more. " * 100
    said = [f"Question {n}. {'It is long. ' * 40}" for n in range(1, 40)]
    files = FLOW | {
        "agents.yaml": f"agents: {{Asker: {{system_message: '{told}'}}, Planner: {{}}}}"
    }
    async with Loom(store="memory", engine=Engine({"Asker": said})) as app:
        run = await app.start(write_folder(tmp_path, files))
        turns = 0
        async for event in run.events():
            turns += event.kind == "turn.finished"
            if turns == 20:
                break
            if event.kind == "run.paused":
                await run.answer(None, "Yes.")
        page = await app.explain.page(run.id)
    assert page.count(told.strip()) == 1
    # Where it was said, where it was first part of a history, and in one line of each event.
    assert page.count("Question 1. " + "It is long. " * 39) <= 2
