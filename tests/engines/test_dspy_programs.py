"""Programs of DSPy that take turns, against a model on loopback."""

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import dspy
import pytest
from dspy.clients.base_lm import GLOBAL_HISTORY
from pydantic import BaseModel, Field

from tests.support.folders import write_folder
from tests.support.raising import raising
from tests.support.tasks import NUMBERS, task
from turnloom import FilterConfig, Loom, artifact_type, use_ui_tool
from turnloom.adapters.dspy import DSPyProgramEngine, Patience
from turnloom.agents.spec import Answer, Exchange, OutputSchema, ToolSchema, Usage
from turnloom.errors import ContextTooLarge, EngineError, UsageError
from turnloom.testing import (
    EmptyReply,
    HttpRefusal,
    LoopbackModel,
    ModelRequest,
    StalledReply,
    UnfinishedReply,
)
from turnloom.testing.contracts.facts import PATIENCE, until

FILES = {
    "orchestrator.yaml": "{initial_message: I am Ann., initial_agent: Desk}",
    "agents.yaml": "Desk: {system_message: Greet people.}",
}
WRITING = {
    "orchestrator.yaml": "{initial_message: My roof leaks., initial_agent: Desk}",
    "agents.yaml": "{Desk: {system_message: Sort.}, Duty: {engine: scripted}}",
    "script.yaml": "agents: {Duty: [On my way.]}",
    "context_variables.yaml": """
        definitions: {topic: {type: string, source: {type: derived, default: none}}}
        """,
    "handoffs.yaml": """
        handoff_rules:
          - {source_agent: Desk, handoff_type: condition, condition: "${topic} == 'roof'",
             condition_type: expression, target_agent: Duty}
          - {source_agent: Duty, handoff_type: after_work, target_agent: terminate}
        """,
}


def fields(**given: Any) -> str:
    """An answer as DSPy asks for it."""
    return "".join(f"[[ ## {key} ## ]]\n{value}\n\n" for key, value in given.items())


def step(tool: str, arguments: str = "{}") -> str:
    """A step of ReAct."""
    return fields(next_thought="Hm.", next_tool_name=tool, next_tool_args=arguments)


DONE = (step("finish"), fields(reasoning="So it is.", answer="It is noted."))


async def facts(app: Loom, run: str, kind: str, app_id: str = "local") -> list[Any]:
    events = await app.history.events(run, app_id=app_id)
    return [event.data for event in events if event.kind == kind]


async def test_a_text_and_all_that_stood_around_it(tmp_path: Path) -> None:
    said = Answer(fields(reasoning="Be kind.", answer="Good morning,\nAnn."), Usage(21, 7))
    async with LoopbackModel([said]) as model:
        engine = DSPyProgramEngine(dspy.ChainOfThought, "any", base_url=model.url)
        async with Loom(store="memory", engine=engine) as app:
            run = await app.start(write_folder(tmp_path, FILES))
            heard: list[str] = []
            with run.listening(lambda piece: heard.append(piece.text)):
                assert (await run.finished()).kind == "run.finished"
            (text,) = await facts(app, run.id, "agent.text")
            (answered,) = await facts(app, run.id, "model.answered")
            (recorded,) = await facts(app, run.id, "effect.done")
    assert text.text == "Good morning,\nAnn."
    assert not heard
    assert (answered.usage, answered.model) == (Usage(21, 7), "any")
    assert recorded.result["text"] == said.text
    (request,) = model.requests
    known = {"Greet people.", "workflow: I am Ann.", ""}
    added = {line for text in answered.added for line in text.splitlines()}
    sent = [line for each in request.messages for line in each["content"].splitlines()]
    assert {line for line in sent if line.strip() not in known} == added - {""}
    assert "workflow: I am Ann." in sent


class Part(BaseModel):
    name: str
    parts: list["Part"] = []


FORM = OutputSchema(
    "Report",
    {
        "$defs": Part.model_json_schema()["$defs"],
        "type": "object",
        "properties": {
            "total": {"type": "integer", "minimum": 0},
            "mood": {"enum": ["good", "bad"]},
            "first name": {"type": "string", "description": "As on the badge."},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            "codes": {"type": "array", "items": {"type": "string", "pattern": "^[A-Z]$"}},
            "part": {"$ref": "#/$defs/Part"},
            "copy": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
            "note": {"type": "string"},
        },
        "required": ["total", "mood", "first name", "tags", "codes", "part", "copy"],
    },
)


async def test_a_signature_from_the_types_of_an_output() -> None:
    part = {"name": "lid", "parts": [{"name": "screw", "parts": []}]}
    plain = {"total": 5, "mood": "good", "first_name": "Ann"}
    line = fields(**plain, tags='["a"]', codes='["X"]', part=part, field_copy="null")
    async with LoopbackModel([line]) as model:
        engine = DSPyProgramEngine(dspy.Predict, "any", base_url=model.url)
        answer = await engine(task(("user", "Report."), output=FORM))
    assert answer.output == {
        "total": 5,
        "mood": "good",
        "first name": "Ann",
        "tags": ["a"],
        "codes": ["X"],
        "part": part,
        "copy": None,
    }
    (told, _) = [each["content"] for each in model.requests[0].messages]
    assert '`total` (int): {"minimum":0}' in told
    assert "`mood` (Literal['good', 'bad'])" in told
    assert "`first_name` (str): As on the badge." in told
    assert '`tags` (list[str]): {"maxItems":3}' in told
    assert "`codes` (codes)" in told and '"pattern": "^[A-Z]$"' in told
    assert "`part` (Part)" in told and '"required": ["name"]' in told
    assert "`note` (Union[str, NoneType])" in told


@pytest.mark.parametrize(
    ("output", "line", "given"),
    [
        (NUMBERS, fields(response="[1, 2]"), [1, 2]),
        (OutputSchema("By-Name", {"type": "object"}), fields(by_name='{"a": 1}'), {"a": 1}),
    ],
)
async def test_an_output_without_keys_is_one_field(
    output: OutputSchema, line: str, given: Any
) -> None:
    async with LoopbackModel([line]) as model:
        engine = DSPyProgramEngine(dspy.Predict, "any", base_url=model.url)
        assert (await engine(task(("user", "Count."), output=output))).output == given


async def test_an_answer_that_dspy_cannot_read_is_asked_for_as_data() -> None:
    lines = [Answer("Hello!", Usage(1, 2)), Answer('{"answer": "Hello."}', Usage(3, 4))]
    async with LoopbackModel(lines) as model:
        engine = DSPyProgramEngine(dspy.Predict, "any", base_url=model.url)
        answer = await engine(task(("user", "Hi.")))
    assert (answer.text, answer.usage) == ("Hello.", Usage(4, 6))
    async with LoopbackModel(["Hello!", "Hello?"]) as model:
        engine = DSPyProgramEngine(dspy.Predict, "any", base_url=model.url)
        with raising(EngineError, "'Ann'", "Hello?"):
            await engine(task(("user", "Hi.")))


@artifact_type
class Letter(BaseModel):
    text: str


@artifact_type
class UrgentComplaint(BaseModel):
    about: str
    level: int = Field(le=5)


async def test_artifacts_are_inputs_by_their_types_and_outputs_are_published() -> None:
    lines = [fields(about="the lift", level=level) for level in (9, 3)]
    async with LoopbackModel(lines) as model:
        engine = DSPyProgramEngine(dspy.Predict, "any", base_url=model.url)
        async with Loom(store="memory") as app:
            board = app.board("mail")
            desk = board.agent("desk").description("Sorts.").consumes(Letter)
            desk.publishes(UrgentComplaint).with_engines(engine)
            letter = await board.publish(Letter(text="The lift is stuck."))
            await board.run_until_idle()
            found, _ = await board.query_artifacts(FilterConfig(types={"UrgentComplaint"}))
            _, answered = await facts(app, str(letter.run), "model.answered")
    assert [each.payload for each in found] == [{"about": "the lift", "level": 3}]
    first, second = [each.messages[-1]["content"] for each in model.requests]
    assert first.startswith('[[ ## letter ## ]]\n{"text": "The lift is stuck."}\n\nRespond')
    assert 'desk: {"about":"the lift","level":9}\nworkflow: That is not what was' in second
    assert "workflow: That is not what was asked for." in "\n".join(answered.added)
    assert "The lift is stuck" not in "".join(answered.added)


def sorting(ctx: Any) -> dspy.Module:
    """A program with a tool that writes a variable."""

    def note(topic: str) -> str:
        ctx["topic"] = topic
        return f"Noted: {topic}."

    return dspy.ReAct("conversation -> answer", tools=[note])


async def test_what_its_own_tools_write_is_on_record_and_decides_what_comes_next(
    tmp_path: Path,
) -> None:
    async with LoopbackModel([step("note", '{"topic": "roof"}'), *DONE]) as model:
        engine = DSPyProgramEngine(sorting, "any", base_url=model.url)
        async with Loom(store="memory", engine=engine) as app:
            run = await app.start(write_folder(tmp_path, WRITING))
            assert (await run.finished()).kind == "run.finished"
            (changed,) = await facts(app, run.id, "context.changed")
            texts = [each.text for each in await facts(app, run.id, "agent.text")]
            (answered, _) = await facts(app, run.id, "model.answered")
    assert (changed.name, changed.value, changed.writer) == ("topic", "roof", "agent:Desk")
    assert texts == ["It is noted.", "On my way."]
    assert "Noted: roof." in "".join(answered.added)
    assert all("Sort." in request.messages[0]["content"] for request in model.requests)


async def test_a_tool_of_its_own_that_fails_is_told_to_the_model(tmp_path: Path) -> None:
    async with LoopbackModel([step("note", '{"topic": 5, "more": 1}'), *DONE]) as model:
        engine = DSPyProgramEngine(sorting, "any", base_url=model.url)
        async with Loom(store="memory", engine=engine) as app:
            run = await app.start(write_folder(tmp_path, WRITING))
            assert (await run.finished()).kind == "run.finished"
            assert not await facts(app, run.id, "context.changed")
    assert "Execution error in note" in model.requests[1].text


def asking() -> dspy.Module:
    """A program with a tool that asks people."""

    async def approve(item: str) -> str:
        return str(await use_ui_tool("approve", {"prompt": f"{item}?"}))

    return dspy.ReAct("conversation -> answer", tools=[approve])


async def test_it_asks_people_and_goes_on_in_another_process(tmp_path: Path) -> None:
    folder, store = write_folder(tmp_path, FILES), str(tmp_path / "turnloom.db")
    async with LoopbackModel([step("approve", '{"item": "tea"}'), *DONE]) as model:
        engine = DSPyProgramEngine(asking, "any", base_url=model.url)
        async with Loom(store=store, engine=engine) as app:
            run = await app.start(folder)
            async for event in run.events():
                if event.kind == "run.paused":
                    break
        assert len(model.requests) == 1
        async with Loom(store=store, engine=engine) as app:
            run = await app.resume(run.id)
            question = await run.question()
            assert question is not None and question.prompt == "tea?"
            await run.answer(question.id, "with milk")
            assert (await run.finished()).kind == "run.finished"
            (answered,) = await facts(app, run.id, "model.answered")
    assert len(model.requests) == 3  # what the model said before is not asked for again
    assert "with milk" in model.requests[1].text
    assert "with milk" in "".join(answered.added)


async def test_a_run_that_was_stopped_asks_only_for_what_is_not_on_record(tmp_path: Path) -> None:
    folder, store = write_folder(tmp_path, WRITING), str(tmp_path / "turnloom.db")
    first, last = step("note", '{"topic": "roof"}'), DONE[1]
    async with LoopbackModel([Answer(first, Usage(1, 1)), StalledReply(), DONE[0], last]) as model:
        engine = DSPyProgramEngine(sorting, "any", base_url=model.url)
        async with Loom(store=store, engine=engine) as app:
            run = await app.start(folder)
            await until(lambda: len(model.requests) == 2)
        await until(lambda: model.abandoned == 1)
        async with Loom(store=store, engine=engine) as app:
            run = await app.resume(run.id)
            assert (await run.finished()).kind == "run.finished"
            (changed,) = await facts(app, run.id, "context.changed")
            (answered, _) = await facts(app, run.id, "model.answered")
    assert changed.value == "roof"
    assert len(model.requests) == 4
    assert model.requests[1].body == model.requests[2].body
    assert answered.usage == Usage(1, 1)


class Plain(dspy.Module):
    """A program that cannot be awaited."""

    def __init__(self) -> None:
        super().__init__()
        self.draft = dspy.Predict("question -> draft")
        self.polish = dspy.Predict("draft, system -> text")

    def forward(self, question: str, system: str, style: str = "plain") -> Any:
        draft = self.draft(question=question).draft
        return self.polish(draft=f"{draft} ({style})", system=system)


async def test_a_program_that_cannot_be_awaited_is_called_in_a_thread() -> None:
    lines = [Answer(fields(draft="Helo."), Usage(1, 2)), Answer(fields(text="Hello."), Usage(3, 4))]
    async with LoopbackModel(lines) as model:
        engine = DSPyProgramEngine(Plain, "any", base_url=model.url, keep_open=True)
        answer = await engine(task(("user", "Hi."), ("Ann", "Hi?"), ("Bob", "Say hello.")))
        await engine.aclose()
    assert (answer.text, answer.usage) == ("Hello.", Usage(4, 6))
    assert "Say hello." in model.requests[0].text and "Hi." not in model.requests[0].text
    assert "Helo. (plain)" in model.requests[1].text and "Be Ann." in model.requests[1].text
    assert "Helo. (plain)" in "".join(answer.added)


@pytest.mark.parametrize("make", [dspy.ChainOfThought, Plain])
async def test_a_run_that_is_cancelled_lets_go(make: Any, tmp_path: Path) -> None:
    async with LoopbackModel([StalledReply("Good ")]) as model:
        engine = DSPyProgramEngine(make, "any", base_url=model.url, keep_open=True)
        async with Loom(store="memory", engine=engine) as app:
            run = await app.start(write_folder(tmp_path, FILES))
            await until(lambda: bool(model.requests))
            await run.cancel()
            with anyio.fail_after(PATIENCE):
                assert (await run.finished()).kind == "run.cancelled"
            await until(lambda: model.abandoned == 1)
        await engine.aclose()


async def test_nothing_is_asked_for_a_call_that_is_over(tmp_path: Path) -> None:
    met: list[Exception] = []

    class Stubborn(Plain):
        def forward(self, question: str) -> Any:
            for _ in range(2):
                try:
                    self.draft(question=question)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is met again
                    met.append(error)

    async with LoopbackModel([StalledReply()]) as model:
        engine = DSPyProgramEngine(Stubborn, "any", base_url=model.url)
        async with Loom(store="memory", engine=engine) as app:
            run = await app.start(write_folder(tmp_path, FILES))
            await until(lambda: bool(model.requests))
            await run.cancel()
            await until(lambda: len(met) == 2)
    assert len(model.requests) == 1


async def test_a_compiled_program_is_what_it_was(tmp_path: Path) -> None:
    compiled, path = dspy.ChainOfThought("question -> answer"), str(tmp_path / "program.json")
    (predictor,) = compiled.predictors()
    predictor.demos = [{"question": "2 + 2?", "reasoning": "Two pairs.", "answer": "4"}]
    compiled.save(path)

    def load() -> dspy.Module:
        program = dspy.ChainOfThought("question -> answer")
        program.load(path)
        return program

    async with LoopbackModel([fields(reasoning="Easy.", answer="6")]) as model:
        answer = await DSPyProgramEngine(load, "any", base_url=model.url)(task(("user", "3 + 3?")))
    assert answer.text == "6"
    contents = [each["content"] for each in model.requests[0].messages]
    assert contents[0].startswith("Be Ann.\n\nYour input fields are:")
    assert "Two pairs." in contents[2] and "3 + 3?" in contents[-1]
    assert "Two pairs." in "".join(answer.added) and "3 + 3?" not in "".join(answer.added)


async def test_a_program_without_an_input_for_it_is_told_what_was_wrong() -> None:
    wrong = (Exchange("[1]", problem="It is too short."),)
    async with LoopbackModel([fields(response="[1, 2]")]) as model:
        engine = DSPyProgramEngine(
            lambda: dspy.Predict("question -> response: list[int]"), "any", base_url=model.url
        )
        answer = await engine(task(("user", "Count."), output=NUMBERS, exchanges=wrong))
    assert answer.output == [1, 2]
    told = model.requests[0].messages[0]["content"]
    assert told.startswith(
        "Be Ann.\n\nAnn: [1]\n\nworkflow: That is not what was asked for.\nIt is"
    )
    assert "It is too short." not in "\n".join(answer.added).splitlines()


async def test_dspy_keeps_nothing_of_what_was_said() -> None:
    before = len(GLOBAL_HISTORY), len(dspy.settings.trace)
    async with LoopbackModel(lambda _: fields(answer="One.")) as model:
        engine = DSPyProgramEngine(dspy.Predict, "any", base_url=model.url)
        for _ in range(2):
            await engine(task(("user", "The word is swordfish.")))
    assert len(model.requests) == 2
    assert (len(GLOBAL_HISTORY), len(dspy.settings.trace)) == before


async def test_runs_of_two_tenants_are_not_mixed(tmp_path: Path) -> None:
    shown = {"context_variables.yaml": "{agents: {Desk: {variables: [app_id]}}}"}
    folder = write_folder(tmp_path, FILES | shown)

    async def echo(request: ModelRequest) -> str:
        await anyio.lowlevel.checkpoint()
        found = [name for name in ("canary-a", "canary-b") if name in request.text]
        return fields(reasoning="I look.", answer=f"I serve {found}.")

    async with LoopbackModel(echo) as model:
        engine = DSPyProgramEngine(dspy.ChainOfThought, "any", base_url=model.url)
        async with Loom(store="memory", engine=engine, slots=20) as app:
            tenants = ["canary-a", "canary-b"] * 10
            runs = [(each, await app.start(folder, app_id=each)) for each in tenants]
            for tenant, run in runs:
                await run.finished()
                (text,) = await facts(app, run.id, "agent.text", tenant)
                assert text.text == f"I serve {[tenant]}."


async def test_trouble_that_passes_and_trouble_that_does_not() -> None:
    patience = Patience(timeout=0.5, retries=1, pause=0.001)
    busy, wrong = HttpRefusal(429, retry_after=0), HttpRefusal(401, "Who are you?")
    async with LoopbackModel(
        [busy, fields(answer="Hi."), wrong, StalledReply(), StalledReply()]
    ) as model:
        make = partial(DSPyProgramEngine, dspy.Predict, "any", base_url=model.url)
        engine = make(patience=patience)
        assert (await engine(task(("user", "Hi.")))).text == "Hi."
        with raising(EngineError, "'any'", "401", "Who are you?"):
            await engine(task(("user", "Hi.")))
        with raising(EngineError, "'any'", "2", "0.5 s"):
            await engine(task(("user", "Hi.")))


async def test_a_request_that_is_too_large() -> None:
    async with LoopbackModel(
        [HttpRefusal(400, "The maximum context length is 8 tokens.")]
    ) as model:
        engine = DSPyProgramEngine(dspy.Predict, "any", base_url=model.url)
        with raising(ContextTooLarge, "'any'", "8 tokens"):
            await engine(task(("user", "Hi.")))


@pytest.mark.parametrize("line", [UnfinishedReply(fields(answer="Go.")), EmptyReply()])
async def test_no_end_no_answer(line: Any) -> None:
    patience = Patience(retries=1, pause=0.001)
    async with LoopbackModel([line, fields(answer="Hi."), line, line]) as model:
        engine = DSPyProgramEngine(dspy.Predict, "any", base_url=model.url, patience=patience)
        assert (await engine(task(("user", "Hi.")))).text == "Hi."
        with raising(EngineError, "'any'", "2"):
            await engine(task(("user", "Hi.")))
    model.assert_complete()


def having(make: Any) -> DSPyProgramEngine:
    return DSPyProgramEngine(make, "any", base_url="http://127.0.0.1:1/v1")


def owning() -> dspy.Module:
    program = dspy.Predict("question -> answer")
    program.set_lm(dspy.LM("openai/gpt-4o", api_key="none"))
    return program


class Vague(dspy.Module):
    """A program that does not say what it takes."""

    async def aforward(self, **inputs: Any) -> Any:
        return inputs


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (lambda: dspy.Predict("query -> answer"), ["'query'", "conversation, question"]),
        (owning, ["'self'", "'Ann'", "set_lm"]),
        (Vague, ["'Ann'", "`forward`"]),
        (lambda: "no program", ["'no program'"]),
    ],
)
async def test_a_program_that_cannot_be_asked_says_why(make: Any, values: list[str]) -> None:
    with raising(UsageError, *values):
        await having(make)(task(("user", "Hi.")))


async def test_tools_of_the_agent_are_refused() -> None:
    with raising(UsageError, "add"):
        await having(dspy.Predict)(task(("user", "Hi."), tools=(ToolSchema("add", "", {}),)))
    with raising(UsageError, "'tools'", "dspy.ReAct"):
        having(dspy.ReAct)
    having(partial(dspy.ReAct, tools=[]))


async def test_what_is_no_prediction_is_refused() -> None:
    class Silent(dspy.Module):
        async def aforward(self, question: str) -> Any:
            return None

    with raising(EngineError, "None", "Prediction"):
        await having(Silent)(task(("user", "Hi.")))
    with pytest.raises(UsageError):
        await DSPyProgramEngine(Silent)(task(("user", "Hi.")))
