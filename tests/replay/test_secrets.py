"""A run is replayed alike whatever its secrets are now, or without them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from tests.explain.workshop import LINES, REPLIES, TOKEN, WORKSHOP
from tests.runtime import test_secrets as secrets
from tests.support.folders import write_folder
from tests.support.world import World, conversing, replying
from turnloom import AgentStep, Answer, AssembledContext, Board, Flow, Loom, Task, artifact_type
from turnloom.testing import FakeDocuments, FakeEnvironment

# The environment in which a run is replayed: as it was, with another secret, and without.
NOW = {"the same": TOKEN, "another": "another-one", "short": "xyz", "in it": "Tell", "none": None}


async def replays(world: World, declare: Any = None) -> Mapping[str, Any]:
    """The first difference of all runs of a world, by the secret that is there now."""
    found: dict[str, Any] = {}
    for name, value in NOW.items():
        given = {} if value is None else dict.fromkeys(("TOKEN", "TURNLOOM_TEST_TOKEN"), value)
        environment, documents = FakeEnvironment(given), FakeDocuments()
        async with world.open(environment=environment, documents=documents) as app:
            if declare is not None:
                declare(app)
            for tenant in ("local", "acme"):
                for run in await app.runs(app_id=tenant):
                    replay = await app.history.replay(run.run, app_id=tenant)
                    found[name] = found.get(name) or replay.divergence
    return found


UNCHANGED = dict.fromkeys(NOW)


def world_of(engine: Any = None, **more: Any) -> World:
    environment = FakeEnvironment({"TOKEN": TOKEN, "TURNLOOM_TEST_TOKEN": TOKEN})
    return World(engine=engine, environment=environment, **more)


async def test_secrets_in_tools_and_questions(tmp_path: Path) -> None:
    said = {agent: iter(lines) for agent, lines in LINES.items()}

    async def answer(task: Task) -> Any:
        line = next(said.get(task.agent, iter(())), "Nothing.")
        return Answer(line) if isinstance(line, str) else line

    world = world_of(answer)
    folder = write_folder(tmp_path, WORKSHOP)
    assert await world.live(conversing(folder, replying(*REPLIES)))
    assert await replays(world) == UNCHANGED


async def test_secrets_in_prompts_answers_and_derived_values(tmp_path: Path) -> None:
    world = world_of(secrets.Echo(), documents=secrets.documents())
    world.environment = FakeEnvironment({"TOKEN": secrets.TOKEN})
    assert await world.live(conversing(write_folder(tmp_path, secrets.FILES)))
    assert await replays(world) == UNCHANGED


def variables(agent: str) -> dict[str, Any]:
    """A secret that an agent is shown."""
    source = {"type": "environment", "env_var": "TOKEN"}
    return {
        "definitions": {"token": {"type": "string", "secret": True, "source": source}},
        "agents": {agent: {"variables": ["token"]}},
    }


class Letter(BaseModel):
    """A state that comes to hold a secret."""

    model_config = ConfigDict(frozen=True)

    text: str = ""
    copied: str = ""


class Say(AgentStep[Letter]):
    """Tells what it was shown."""

    async def engine(self, task: Task) -> Answer:
        return Answer(f"It is {TOKEN}. {task.system}")

    def user_prompt(self, state: Letter) -> str:
        return f"Tell me. {state.text}"

    def apply(self, state: Letter, answer: str, context: AssembledContext) -> dict[str, Any]:
        return {"text": answer}


async def leak(state: Letter) -> dict[str, Any]:
    """A step whose result has the secret."""
    return {"copied": f"{TOKEN} {state.text}"}


async def trip(state: Letter) -> None:
    """A step whose error has the secret."""
    raise ValueError(f"{TOKEN} is wrong")


def letters() -> Flow[Letter]:
    """A flow in which a secret gets everywhere."""
    flow = Flow("letters", Letter, variables=variables("Say")).start_with(leak).then(Say())
    flow.await_approval("boss", context=lambda state: f"Send {state.text}?", name="ok")
    return flow.finally_(trip)


async def test_secrets_in_a_flow() -> None:
    world = world_of()

    async def script(app: Loom) -> None:
        run = await app.start(letters(), Letter())
        (question,) = (await run.outcome()).questions
        await run.answer(question.id, "approve", user_id="boss")
        assert (await run.outcome()).status == "failed"

    assert await world.live(script)
    assert await replays(world, lambda app: app.register_flow(letters())) == UNCHANGED


@artifact_type(name="secret.Note")
class Note(BaseModel):
    text: str


@artifact_type(name="secret.Reply")
class Reply(BaseModel):
    text: str


async def reply(task: Task) -> Reply:
    return Reply(text=f"{TOKEN} {task.prompt}")


def desk(app: Loom) -> Board:
    board = app.board("desk", variables=variables("clerk"))
    board.agent("clerk").consumes(Note).publishes(Reply).with_engines(reply)
    board.agent("reader").consumes(Reply, where=lambda each: bool(each.text)).publishes(
        Note
    ).with_engines(fail)
    return board


async def fail(task: Task) -> Note:
    raise ValueError(f"{TOKEN} again")


async def test_secrets_on_a_board() -> None:
    world = world_of()

    async def script(app: Loom) -> None:
        board = desk(app)
        await board.publish(Note(text=f"a {TOKEN}"))
        await board.run_until_idle(raise_errors=False)

    assert await world.live(script)
    assert await replays(world, desk) == UNCHANGED
