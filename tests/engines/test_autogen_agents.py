"""Turns that are taken by agents of AG2's classic line."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from autogen import ConversableAgent, LLMConfig, UpdateSystemMessage
from autogen.agentchat.group import AgentTarget, ContextVariables, ReplyResult

from tests.support.folders import write_folder
from tests.support.raising import raising
from tests.support.tasks import NUMBERS, task
from turnloom import Answer, Engine, Loom, Run, ToolCall, use_ui_tool
from turnloom.adapters.autogen import ConversableAgentEngine, Patience
from turnloom.agents.spec import Question, Usage
from turnloom.errors import EngineError, UsageError
from turnloom.testing import HttpRefusal, LoopbackModel, ModelRequest, StalledReply, UnfinishedReply
from turnloom.testing.contracts.engines import RETRIES, EndingContract
from turnloom.testing.contracts.facts import PATIENCE, until

FILES = {
    "orchestrator.yaml": "{initial_agent: Desk, initial_message: I am Ann.}",
    "agents.yaml": "Desk: {system_message: Serve.}\nDuty: {system_message: Act.}",
    "context_variables.yaml": """
        definitions:
          app: {type: string, source: {type: static, value: parcels}}
          urgency: {type: integer, source: {type: derived, default: 0}}
          seen: {type: array, source: {type: derived, default: []}}
        agents: {Duty: {variables: [urgency, seen]}}
        """,
    "handoffs.yaml": """
        handoff_rules:
          - source_agent: Desk
            target_agent: Duty
            handoff_type: condition
            condition: ${urgency} == 3
          - {source_agent: Desk, target_agent: terminate, handoff_type: after_work}
          - {source_agent: Duty, target_agent: terminate, handoff_type: after_work}
        """,
}
TOOLS = {
    "tools.yaml": "tools: [{agent: Desk, file: t.py, function: weigh}]",
    "t.py": "def weigh(name: str) -> int:\n    return len(name)",
}
Make = Callable[[], ConversableAgent]


def maker(model: LoopbackModel, *functions: Callable[..., Any], **more: Any) -> Make:
    """Makes an agent that asks a model and has these tools."""
    config = {"api_type": "openai", "model": "any", "api_key": "key", "base_url": model.url}

    def make() -> ConversableAgent:
        given = {"system_message": "Be kind.", "human_input_mode": "NEVER", **more}
        return ConversableAgent(
            "Own", llm_config=LLMConfig(config), functions=[*functions], **given
        )

    return make


def called(tool: str, **arguments: Any) -> Answer:
    return Answer(calls=(ToolCall(tool, arguments),), usage=Usage(10, 2))


def rate(by: int, context_variables: ContextVariables) -> str:
    """Say how urgent it is."""
    context_variables["urgency"] = context_variables["urgency"] + by
    context_variables["seen"].append(by)
    return f"rated {by} for {context_variables['app']}"


@pytest.fixture(autouse=True)
def trusting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is trusted here, as each client that is made reads all certificates there are."""
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))


async def asked_by(run: Run) -> Question:
    """What a run asks, once it does."""
    with anyio.fail_after(PATIENCE):
        async for event in run.events():
            if event.kind == "run.paused" and (question := await run.question()) is not None:
                return question
    raise AssertionError("it ended and asked nothing")


async def finished(app: Loom, run: Run) -> list[Any]:
    await run.finished()
    return [event.data for event in await app.history.events(run.id, app_id=run.app_id)]


def of(kind: str, facts: list[Any]) -> list[Any]:
    return [fact for fact in facts if fact.kind == kind]


async def told(folder: Path, lines: Any, make: Callable[[LoopbackModel], Make], **more: str) -> Any:
    """What a run's log holds, and what the model was asked."""
    async with LoopbackModel(lines) as model:
        engine = ConversableAgentEngine(make(model))
        async with Loom(store="memory", engine=engine) as app:
            run = await app.start(write_folder(folder, {**FILES, **more}))
            with anyio.fail_after(PATIENCE):
                facts = await finished(app, run)
    return facts, model.requests


async def test_an_agent_says_something_in_pieces(tmp_path: Path) -> None:
    async with LoopbackModel([Answer("Good day.", Usage(5, 2))]) as model:
        engine = ConversableAgentEngine(maker(model))
        heard: list[str | None] = []
        answer = await engine(task(("user", "Hi."), say=heard.append))
    assert answer == Answer("Good day.", Usage(5, 2), model="any", added=("Be kind.",), stop="end")
    assert [*filter(None, heard)] == ["Good ", "day."]
    (request,) = model.requests
    assert [(each["role"], each["content"]) for each in request.messages] == [
        ("system", "Be kind.\n\nBe Ann."),
        ("user", "Hi."),
    ]


async def test_what_its_tools_write_is_on_record_before_it_is_decided_who_is_next(
    tmp_path: Path,
) -> None:
    lines = [called("rate", by=3), Answer("Urgent.", Usage(20, 3)), "On my way."]
    facts, requests = await told(tmp_path, lines, lambda model: maker(model, rate))
    assert [(text.agent, text.text) for text in of("agent.text", facts)] == [
        ("Desk", "Urgent."),
        ("Duty", "On my way."),
    ]
    assert [(each.name, each.value, each.writer) for each in of("context.changed", facts)] == [
        ("urgency", 3, "agent:Desk"),
        ("seen", [3], "agent:Desk"),
    ]
    answered = of("model.answered", facts)[0]
    assert answered.usage == Usage(30, 5)
    (done,) = answered.before
    assert [call.arguments for call in done.calls] == [{"by": 3}]
    assert [result.value for result in done.results] == ["rated 3 for parcels"]
    assert answered.added[0] == "Be kind." and answered.added[-1] == "rated 3 for parcels"
    assert "urgency: 3" in requests[2].text and requests[1].results == ["rated 3 for parcels"]


class TestEnding(EndingContract):
    @asynccontextmanager
    async def fresh(
        self, model: LoopbackModel, *, silence: float = PATIENCE
    ) -> AsyncIterator[Engine]:
        patience = Patience(silence, RETRIES, pause=0.05, longest_pause=2)
        async with aclosing(ConversableAgentEngine(maker(model), patience=patience)) as engine:
            yield engine


async def test_its_tools_are_not_called_by_an_answer_without_an_end(tmp_path: Path) -> None:
    for is_closed in (True, False):
        cut = UnfinishedReply(called("rate", by=3), is_closed)
        facts, asked = await told(tmp_path, [cut, "Good day."], lambda model: maker(model, rate))
        assert len(asked) == 2
        assert of("context.changed", facts) == []
        assert [each.text for each in of("agent.text", facts)] == ["Good day."]


async def test_a_model_cannot_give_its_tools_their_context(tmp_path: Path) -> None:
    def look_up(context_variables: ContextVariables, **more: Any) -> str:
        """Look up who asks."""
        return f"for {context_variables['app']}, {more}"

    lines = [called("look_up", context_variables={"data": {"app": "gold"}}, more={}), "So."]
    _, asked = await told(tmp_path, lines, lambda model: maker(model, look_up))
    (result,) = asked[1].results
    assert "gold" not in result


async def test_what_a_reply_result_holds_is_written(tmp_path: Path) -> None:
    def rate(context_variables: ContextVariables) -> ReplyResult:
        context_variables.set("urgency", 1)
        return ReplyResult(message="rated", context_variables=ContextVariables(data={"seen": [7]}))

    def again(context_variables: ContextVariables) -> ReplyResult:
        context_variables.data["urgency"] = 2
        return ReplyResult(message="again", context_variables=context_variables)

    lines = [called("rate"), called("again"), "Done."]
    facts, requests = await told(tmp_path, lines, lambda model: maker(model, rate, again))
    changed = {each.name: each.value for each in of("context.changed", facts)}
    assert changed == {"urgency": 2, "seen": [7]}
    assert requests[-1].results == ["rated", "again"]


async def test_the_tools_of_the_run_are_called_by_the_run(tmp_path: Path) -> None:
    """Side by side, and what tools of the agent's own gave before is not forgotten."""
    both = Answer("Well.", calls=tuple(ToolCall("weigh", {"name": each}) for each in ("Jo", "Ann")))
    mixed = Answer(calls=(ToolCall("rate", {"by": 1}), ToolCall("weigh", {"name": "Bobby"})))
    lines = [called("rate", by=2), both, mixed, "Done.", "On my way."]
    facts, requests = await told(tmp_path, lines, lambda model: maker(model, rate), **TOOLS)
    assert sorted(each.result for each in of("tool.returned", facts)) == [2, 3, 5]
    assert [len(each.before) for each in of("model.answered", facts)[:3]] == [1, 1, 0]
    assert requests[3].tools == ["rate", "weigh"]
    rated = ["rated 2 for parcels", "2", "3", "rated 1 for parcels", "5"]
    assert requests[3].results == rated
    roles = [each["role"] for each in requests[3].messages]
    assert roles == [
        *("system", "user", "assistant", "tool", "assistant", "tool", "tool"),
        *("assistant", "tool", "assistant", "tool"),
    ]


async def test_its_instructions_follow_the_variables(tmp_path: Path) -> None:
    update = [UpdateSystemMessage("Urgency is {urgency}.")]
    lines = [called("rate", by=1), "Done."]
    _, requests = await told(
        tmp_path, lines, lambda model: maker(model, rate, update_agent_state_before_reply=update)
    )
    assert [each.messages[0]["content"] for each in requests] == [
        "Urgency is 0.\n\nServe.",
        "Urgency is 1.\n\nServe.",
    ]


async def test_an_output_of_the_form_asked_for() -> None:
    def count() -> int:
        """Count."""
        return 2

    async with LoopbackModel([called("count"), Answer(output=[1, 2])]) as model:
        engine = ConversableAgentEngine(maker(model, count))
        answer = await engine(task(("user", "Count."), output=NUMBERS))
    assert answer.output == [1, 2]
    assert not model.requests[0].body.get("stream") and "response_format" in model.requests[0].body


async def test_a_tool_of_its_own_that_fails_is_told_to_its_model(tmp_path: Path) -> None:
    def rate(context_variables: ContextVariables) -> str:
        context_variables["app"] = "letters"
        return "never"

    def fail() -> str:
        raise OSError("no scales")

    lines = [called("rate"), called("fail"), "Sorry."]
    facts, requests = await told(tmp_path, lines, lambda model: maker(model, rate, fail))
    first, second = requests[-1].results
    assert first.startswith("Error: ") and "'app'" in first
    assert second == "Error: no scales"
    assert [each.name for each in of("context.refused", facts)] == ["app"]
    assert of("agent.text", facts)[-1].text == "Sorry."


async def test_people_are_asked_by_the_run_and_answer_another_process(tmp_path: Path) -> None:
    async def confirm(context_variables: ContextVariables) -> str:
        """Ask whether it is urgent."""
        answer = await use_ui_tool("confirm", {"prompt": "Urgent?"})
        context_variables["urgency"] = 3
        return str(answer)

    def line(request: ModelRequest) -> Answer | str:
        if "Serve." not in request.text:
            return "On my way."
        return "Urgent." if request.results else called("confirm")

    folder, store = write_folder(tmp_path, FILES), str(tmp_path / "turnloom.db")
    async with LoopbackModel(line) as model:
        make = maker(model, confirm, human_input_mode="ALWAYS")
        asked: list[str] = []
        facts: list[Any] = []
        for answer in ("", "yes", "", "I take over."):
            async with Loom(store=store, engine=ConversableAgentEngine(make)) as app:
                (known, *_) = [*await app.runs()] or [None]
                run = await (app.resume(known.run) if known else app.start(folder))
                question = await asked_by(run)
                asked.append(question.prompt)
                await run.answer(question.id, answer)
                if answer == "I take over.":
                    facts = await finished(app, run)
    assert [each.split(".")[0] for each in asked] == [
        *("Replying as Own", "Urgent?", "Replying as Own", "Replying as Own"),
    ]
    assert [each.text for each in of("agent.text", facts)] == ["Urgent.", "I take over."]
    assert [each.value for each in of("context.changed", facts)] == [3]


async def test_a_plain_function_may_ask_people_too(tmp_path: Path) -> None:
    """What blocks is in a thread, and its input is the run's."""

    def reply(agent: Any, messages: Any, sender: Any, config: Any) -> tuple[bool, str]:
        return True, f"You said {agent.get_human_input('Well? ')}."

    def make() -> ConversableAgent:
        agent = ConversableAgent("Own", human_input_mode="NEVER")
        agent.register_reply([ConversableAgent], reply)
        return agent

    async with Loom(store="memory", engine=ConversableAgentEngine(make)) as app:
        run = await app.start(write_folder(tmp_path, FILES))
        question = await asked_by(run)
        assert (question.tool, question.prompt) == ("human_input", "Well? ")
        await run.answer(question.id, "no")
        facts = await finished(app, run)
    assert [each.text for each in of("agent.text", facts)] == ["You said no."]


@pytest.mark.repeats
async def test_nothing_of_one_run_comes_to_another(tmp_path: Path) -> None:
    def remember(word: str, context_variables: ContextVariables) -> str:
        """Remember a word."""
        context_variables["seen"].append(word)
        return f"remembered {context_variables['seen']}"

    async def line(request: ModelRequest) -> Answer | str:
        await anyio.lowlevel.checkpoint()
        (canary,) = {each for each in canaries if each in request.text}
        return f"I serve {canary}." if request.results else called("remember", word=canary)

    canaries = [f"canary-{n:02}" for n in range(20)]
    shown = {"agents.yaml": "Desk: {system_message: Serve.}", "handoffs.yaml": "handoff_rules: []"}
    variables = FILES["context_variables.yaml"].replace("Duty:", "Desk:")
    shown["context_variables.yaml"] = variables.replace("[urgency, seen]", "[user_id, seen]")
    folder = write_folder(tmp_path, {**FILES, **shown})
    async with LoopbackModel(line) as model:
        engine = ConversableAgentEngine(maker(model, remember))
        async with Loom(store="memory", engine=engine, slots=20) as app:
            runs = [
                await app.start(folder, app_id=f"tenant-{n % 2}", user_id=canary)
                for n, canary in enumerate(canaries)
            ]
            for run, canary in zip(runs, canaries, strict=True):
                facts = await finished(app, run)
                assert of("agent.text", facts)[-1].text == f"I serve {canary}."
                assert [each.value for each in of("context.changed", facts)] == [[canary]]


async def test_who_gives_up_lets_go_of_the_model() -> None:
    async with LoopbackModel([StalledReply("Wait, wait.")]) as model:
        engine = ConversableAgentEngine(maker(model))
        with anyio.CancelScope() as scope:
            await engine(task(("user", "Hi."), say=lambda words: words and scope.cancel()))
        assert scope.cancelled_caught
        with anyio.fail_after(PATIENCE):
            await until(lambda: model.abandoned == 1)


async def test_a_call_that_was_interrupted_is_made_again_from_its_beginning(tmp_path: Path) -> None:
    folder, store = write_folder(tmp_path, FILES), str(tmp_path / "turnloom.db")
    lines = [called("rate", by=1), StalledReply("Ra"), called("rate", by=1), "Rated."]
    async with LoopbackModel(lines) as model:
        engine = ConversableAgentEngine(maker(model, rate))
        async with Loom(store=store, engine=engine) as app:
            await app.start(folder)
            await until(lambda: len(model.requests) == 2)
        async with Loom(store=store, engine=engine) as app:
            (known,) = await app.runs()
            facts = await finished(app, await app.resume(known.run))
    assert [each.text for each in of("agent.text", facts)] == ["Rated."]
    assert [(each.name, each.value) for each in of("context.changed", facts)] == [
        ("urgency", 1),
        ("seen", [1]),
    ]


async def test_trouble_that_passes_is_tried_again_and_other_trouble_is_told() -> None:
    async with LoopbackModel(
        [HttpRefusal(503), "Here.", HttpRefusal(401, "Who are you?")]
    ) as model:
        patience = Patience(pause=0.001)
        engine = ConversableAgentEngine(maker(model), patience=patience)
        assert (await engine(task(("user", "Hi.")))).text == "Here."
        with raising(EngineError, "'any'", "401", "Who are you?"):
            await engine(task(("user", "Hi.")))


async def test_what_only_a_group_chat_would_do_is_refused() -> None:
    def handed() -> ConversableAgent:
        agent = ConversableAgent("Own")
        agent.handoffs.set_after_work(AgentTarget(agent))
        return agent

    def pass_on() -> ReplyResult:
        """Pass it on."""
        return ReplyResult(message="passed", target=AgentTarget(ConversableAgent("Other")))

    with pytest.raises(UsageError):
        await ConversableAgentEngine(handed)(task())
    with raising(EngineError, "'Ann'", "ZeroDivisionError"):
        await ConversableAgentEngine(lambda: 1 / 0)(task())  # pyright: ignore[reportArgumentType]
    async with LoopbackModel([called("pass_on")]) as model:
        with raising(EngineError, "'Other'"):
            await ConversableAgentEngine(maker(model, pass_on))(task(("user", "Hi.")))
