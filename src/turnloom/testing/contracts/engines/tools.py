"""Contracts of engines: tools, and the texts that a model gets."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import anyio

from turnloom.agents.spec import Answer, Engine, Exchange, Task, ToolCall
from turnloom.kernel.values import Json, as_array, as_data, as_object
from turnloom.testing.contracts.engines.stage import (
    EQUIPPED,
    FORMED,
    PLAIN,
    EngineSuite,
    FinishedRun,
    workflow_folder,
)
from turnloom.testing.contracts.facts import PATIENCE
from turnloom.testing.loopback import LoopbackModel, ModelRequest, UnfinishedReply
from turnloom.testing.loopback.script import Line

ADDED = ToolCall("add", {"a": 2, "b": 3})


def calling(*calls: ToolCall, text: str = "") -> Answer:
    """An answer that calls tools."""
    return Answer(text, calls=calls)


class CallingContract(EngineSuite):
    """Tool calls are made by the run, never by the engine."""

    async def test_a_tool(self) -> None:
        """A tool is offered with its schema and called, and the model gets its result."""
        async with LoopbackModel([calling(ADDED), "It is 5."]) as model:
            done = await self.converse(model, EQUIPPED)
        assert done.end.kind == "run.finished"
        assert done.texts == ["It is 5."]
        assert model.requests[0].tools == ["add", "fail", "meet", "wait"]
        offered = str(model.requests[0].body["tools"][0])
        assert "Add two numbers." in offered and "integer" in offered
        assert [fact.result for fact in done.facts("tool.returned")] == [5]
        assert model.requests[-1].results == ["5"]

    async def test_a_text_with_a_call(self) -> None:
        """A text that comes with a tool call is recorded."""
        async with LoopbackModel([calling(ADDED, text="Let me see."), "It is 5."]) as model:
            done = await self.converse(model, EQUIPPED)
        assert done.texts == ["Let me see.", "It is 5."]

    async def test_tools_at_once(self) -> None:
        """Several calls of one answer run concurrently, and each result belongs to its call."""
        calls = [ToolCall("meet", {"guests": 2}), ToolCall("meet", {"guests": 2}), ADDED]
        async with LoopbackModel([calling(*calls), "We met."]) as model:
            done = await self.converse(model, EQUIPPED)
        assert done.texts == ["We met."]
        assert len(done.facts("tool.returned")) == 3
        met, again, five = model.requests[-1].results
        assert "met 2" in met and "met 2" in again and five == "5"

    async def test_rounds_of_calls(self) -> None:
        """Each round of calls is a further request with the earlier results."""
        more = ToolCall("add", {"a": 5, "b": 4})
        async with LoopbackModel([calling(ADDED), calling(more), "It is 9."]) as model:
            done = await self.converse(model, EQUIPPED)
        assert done.texts == ["It is 9."]
        assert model.requests[-1].results == ["5", "9"]
        assert done.kinds.count("model.called") == 3

    async def test_a_tool_that_fails(self) -> None:
        """The model gets the error of a tool, and the run continues."""
        failing = ToolCall("fail", {"reason": "no such luck"})
        done, error = await self._after_failed_call(failing)
        assert done.texts == ["Too bad."]
        assert "no such luck" in error
        assert len(done.facts("tool.failed")) == 1

    async def test_a_tool_that_takes_too_long(self) -> None:
        """The model gets the timeout of a tool as an error, and the run continues."""
        done, error = await self._after_failed_call(ToolCall("wait"))
        assert done.texts == ["Too bad."]
        assert "0.2" in error or "Timeout" in error

    async def test_arguments_that_do_not_fit(self) -> None:
        """The model gets an error that names the invalid argument."""
        done, error = await self._after_failed_call(ToolCall("add", {"a": 2, "c": 3}))
        assert done.texts == ["Too bad."]
        assert "`b`" in error

    async def test_a_tool_that_is_not_there(self) -> None:
        """The model gets an error that names the unknown tool."""
        done, error = await self._after_failed_call(ToolCall("subtract", {"a": 2}))
        assert done.texts == ["Too bad."]
        assert "subtract" in error

    async def test_a_tool_that_has_no_possible_name(self) -> None:
        """An invalid tool name is an unknown tool, and the next request has a valid name for it."""
        done, error = await self._after_failed_call(ToolCall("functions.subtract?", {"a": 2}))
        assert done.texts == ["Too bad."]
        assert "subtract" in error

    async def test_calls_that_their_provider_does_not_tell_apart(self) -> None:
        """Calls with the same id get their own results."""
        calls = [ToolCall("add", {"a": a, "b": 0}, "same") for a in (1, 2)]
        async with LoopbackModel([calling(*calls), "It is 1 or 2."]) as model:
            done = await self.converse(model, EQUIPPED)
        assert done.texts == ["It is 1 or 2."]
        assert model.requests[-1].results == ["1", "2"]

    async def test_tools_and_an_output(self) -> None:
        """A tool can be called before an output is returned."""
        output = {"total": 5, "remark": "added"}
        async with LoopbackModel([calling(ADDED), Answer(output=output)]) as model:
            done = await self.converse(model, EQUIPPED | FORMED)
        assert done.end.kind == "run.finished"
        assert [fact.output for fact in done.facts("agent.output")] == [output]

    async def test_why_an_answer_with_calls_ended(self) -> None:
        """The stop reason of an answer with calls is recorded."""
        async with LoopbackModel([calling(ADDED), "It is 5."]) as model:
            done = await self.converse(model, EQUIPPED)
        assert [fact.stop for fact in done.facts("model.answered")] == ["tool", "end"]

    async def test_calls_of_an_answer_without_an_end(self) -> None:
        """Calls of an answer without a finish reason are not made: the request is retried."""
        for is_closed in (True, False):
            async with LoopbackModel(
                [UnfinishedReply(calling(ADDED), is_closed), "It is 5."]
            ) as model:
                done = await self.converse(model, EQUIPPED)
            assert done.texts == ["It is 5."]
            assert "tool.called" not in done.kinds
            assert len(model.requests) == 2

    async def test_a_tool_of_any_name(self) -> None:
        """A tool with a name that providers reject is offered under a valid name."""
        named = {"tools.yaml": "tools: [{agent: Adder, file: sums.py, function: add, name: 2 + 3}]"}

        def call(request: ModelRequest) -> Answer:
            if len(model.requests) > 1:
                return Answer("It is 5.")
            (name,) = request.tools
            return calling(ToolCall(name, ADDED.arguments))

        async with LoopbackModel(call) as model:
            done = await self.converse(model, EQUIPPED | named)
        assert done.texts == ["It is 5."]
        assert [fact.tool for fact in done.facts("tool.returned")] == ["2 + 3"]
        assert model.requests[-1].results == ["5"]

    async def _after_failed_call(self, call: ToolCall) -> tuple[FinishedRun, str]:
        """A run in which a tool call fails, and the error that the model gets."""
        async with LoopbackModel([calling(call), "Too bad."]) as model:
            done = await self.converse(model, EQUIPPED)
        (error,) = model.requests[-1].results
        return done, error


ALONE = {"agents.yaml": PLAIN["agents.yaml"]}
PAIR = PLAIN | {
    "orchestrator.yaml": "initial_message: Add two and three.\ninitial_agent: Adder\n",
    "agents.yaml": "Adder: {system_message: You add.}\nChecker: {system_message: You check.}\n",
    "handoffs.yaml": """handoff_rules:
  - {source_agent: Adder, handoff_type: after_work, target_agent: Checker}
  - {source_agent: Checker, handoff_type: after_work, target_agent: terminate}
""",
}

# Keys whose values belong to the protocol: roles, ids and types.
PROTOCOL = frozenset(("role", "type", "id", "call_id", "tool_call_id", "status"))


class ObservedCall(NamedTuple):
    """A task, its answer, and the request to the model."""

    task: Task
    answer: Answer
    request: ModelRequest


class ShowingContract(EngineSuite):
    """Every text in a request comes from the task or is recorded as `added`."""

    async def test_nothing_is_added(self) -> None:
        """Instructions and messages are sent unchanged; those of other agents carry their names."""
        (first, second) = await self._checked_calls(["Five.", "Right."], PAIR)
        assert "Adder: Five." in [*_texts(second.request)]
        assert not (first.answer.added or second.answer.added)

    async def test_no_message_yet(self) -> None:
        """A text sent in place of a missing first message is recorded as `added`."""
        await self._checked_calls(["Five."], ALONE)

    async def test_calls_and_results(self) -> None:
        """Tool calls and results are sent as recorded, including errors."""
        failing = ToolCall("fail", {"reason": "no\nsuch „luck“"})
        lines = [calling(ADDED, failing, text="Let me see."), "It is 5."]
        (_, second) = await self._checked_calls(lines, EQUIPPED)
        assert not second.answer.added

    async def test_an_invalid_output(self) -> None:
        """The text around the problem of an invalid output is recorded as `added`."""
        wrong, right = Answer(output={"total": "many"}), Answer(output={"total": 5, "remark": ""})
        await self._checked_calls([wrong, wrong, right], EQUIPPED | FORMED)

    async def test_the_model_that_answered(self) -> None:
        """The model is recorded by the name that the provider reports, else by the requested
        name."""
        async with LoopbackModel([calling(ADDED), Answer("5.", model="dated-1")]) as model:
            done = await self.converse(model, EQUIPPED)
        first, second = done.facts("model.answered")
        assert first.model == model.requests[0].body["model"]
        assert second.model == "dated-1"

    async def _checked_calls(
        self, lines: Sequence[Line], files: Mapping[str, str]
    ) -> list[ObservedCall]:
        """The calls of a run, with every text in their requests checked."""
        calls: list[tuple[Task, Answer]] = []

        def observe(engine: Engine) -> Engine:
            async def ask(task: Task) -> Answer:
                answer = await engine(task)
                calls.append((task, answer))
                return answer

            return ask

        async with LoopbackModel(lines) as model, self.app(model, around=observe) as app:
            async with workflow_folder(files) as folder:
                run = await app.start(folder)
                with anyio.fail_after(PATIENCE):
                    assert (await run.finished()).kind == "run.finished"
            added = [
                e.data.added for e in await app.history.events(run.id) if e.kind == "model.answered"
            ]
        assert added == [answer.added for _, answer in calls]
        observed = [
            ObservedCall(*call, request)
            for call, request in zip(calls, model.requests, strict=True)
        ]
        for each in observed:
            _check_texts(each)
        return observed


def _check_texts(call: ObservedCall) -> None:
    """Check that every text comes from the task or from `added`, and that every added text was
    sent."""
    pieces = {*_pieces(call.task), *call.answer.added} - {""}
    # Libraries may add blank lines between texts of the same role.
    spelled = "|".join(re.escape(each) for each in sorted(pieces, key=len, reverse=True))
    known, texts = re.compile(rf"(?:{spelled}|\s)*"), [*_texts(call.request)]
    strange = [text for text in texts if not known.fullmatch(text)]
    assert not strange, f"Texts neither in the task nor in `added`: {strange}"
    missing = [each for each in call.answer.added if not any(each in text for text in texts)]
    assert not missing, f"Texts in `added` that were not sent: {missing}"


def _pieces(task: Task) -> Iterator[str]:
    """The texts of a task: of its frame, and of the exchanges so far."""
    yield task.system
    for message in task.transcript:
        yield message.text
        yield f"{message.author}: {message.text}"
    for tool in task.tools:
        yield from (tool.name, tool.description, *_descriptions(tool.parameters))
    if task.output is not None:
        yield from (task.output.name, *_descriptions(task.output.schema))
    for exchange in task.exchanges:
        yield from _exchanged(exchange)


def _exchanged(exchange: Exchange) -> Iterator[str]:
    yield from (exchange.text, exchange.problem)
    for call in exchange.calls:
        yield from (call.tool, as_data(call.arguments))
    for result in exchange.results:
        value = result.value if isinstance(result.value, str) else as_data(result.value)
        yield result.error or value


def _texts(request: ModelRequest) -> Iterator[str]:
    """The texts of a request: instructions, messages, and descriptions of tools and schemas."""
    yield from _strings([request.body.get("instructions") or "", request.messages])
    for tool in request.body.get("tools") or ():
        yield from (tool.get("function", tool)["name"], *_descriptions(tool))
    form: Any = request.body.get("text") or request.body.get("response_format")
    yield from _descriptions(form)


def _strings(value: Json, key: str = "") -> Iterator[str]:
    """Every string in the messages; arguments in our JSON format."""
    if isinstance(value, str) and key not in PROTOCOL:
        yield as_data(json.loads(value)) if key == "arguments" else value
    for name, inner in _inside(value):
        yield from _strings(inner, name)


def _descriptions(value: Json, key: str = "") -> Iterator[str]:
    """The descriptions and titles in a schema."""
    if isinstance(value, str) and key in ("description", "title"):
        yield value
    for name, inner in _inside(value):
        yield from _descriptions(inner, name)


def _inside(value: Json) -> Iterable[tuple[str, Json]]:
    return (as_object(value) or {}).items() or [("", each) for each in as_array(value) or ()]
