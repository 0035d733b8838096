"""What every engine shows a model: what its task holds, and what it says that it added."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import anyio

from turnloom.agents.spec import Answer, Engine, Exchange, Task, ToolCall
from turnloom.kernel.values import Json, as_array, as_data, as_object
from turnloom.testing.contracts.engines.calling import ADDED, calling
from turnloom.testing.contracts.engines.stage import EQUIPPED, FORMED, PLAIN, EngineSuite, written
from turnloom.testing.contracts.facts import PATIENCE
from turnloom.testing.loopback import LoopbackModel, ModelRequest
from turnloom.testing.loopback.script import Line

ALONE = {"agents.yaml": PLAIN["agents.yaml"]}
PAIR = PLAIN | {
    "orchestrator.yaml": "initial_message: Add two and three.\ninitial_agent: Adder\n",
    "agents.yaml": "Adder: {system_message: You add.}\nChecker: {system_message: You check.}\n",
    "handoffs.yaml": """handoff_rules:
  - {source_agent: Adder, handoff_type: after_work, target_agent: Checker}
  - {source_agent: Checker, handoff_type: after_work, target_agent: terminate}
""",
}

# What a protocol says by itself: who speaks, what belongs together, of which kind a part is.
PROTOCOL = frozenset(("role", "type", "id", "call_id", "tool_call_id", "status"))


class Shown(NamedTuple):
    """What an engine was given and gave, and what went to its model for it."""

    task: Task
    answer: Answer
    request: ModelRequest


class ShowingContract(EngineSuite):
    """No text reaches a model that is neither the task's nor said to be added."""

    async def test_nothing_is_added(self) -> None:
        """Instructions and messages go out as they are, others' words with their names."""
        (first, second) = await self._shown(["Five.", "Right."], PAIR)
        assert "Adder: Five." in [*_texts(second.request)]
        assert not (first.answer.added or second.answer.added)

    async def test_nobody_has_spoken(self) -> None:
        """What a model is told in the place of a first message is said to be added."""
        await self._shown(["Five."], ALONE)

    async def test_calls_and_what_they_gave(self) -> None:
        """Calls and results go out as they are on record, also where a tool failed."""
        failing = ToolCall("fail", {"reason": "no\nsuch „luck“"})
        lines = [calling(ADDED, failing, text="Let me see."), "It is 5."]
        (_, second) = await self._shown(lines, EQUIPPED)
        assert not second.answer.added

    async def test_a_form_and_what_was_wrong(self) -> None:
        """What stands around the problem of an answer is said to be added."""
        wrong, right = Answer(output={"total": "many"}), Answer(output={"total": 5, "remark": ""})
        await self._shown([wrong, wrong, right], EQUIPPED | FORMED)

    async def test_the_model_that_answered(self) -> None:
        """The model is on record as its provider names it, else as it was asked for."""
        async with LoopbackModel([calling(ADDED), Answer("5.", model="dated-1")]) as model:
            done = await self.converse(model, EQUIPPED)
        first, second = done.facts("model.answered")
        assert first.model == model.requests[0].body["model"]
        assert second.model == "dated-1"

    async def _shown(self, lines: Sequence[Line], files: Mapping[str, str]) -> list[Shown]:
        """What was shown in the calls of a run, once every text of it is accounted for."""
        calls: list[tuple[Task, Answer]] = []

        def kept(engine: Engine) -> Engine:
            async def ask(task: Task) -> Answer:
                answer = await engine(task)
                calls.append((task, answer))
                return answer

            return ask

        async with LoopbackModel(lines) as model, self.app(model, around=kept) as app:
            async with written(files) as folder:
                run = await app.start(folder)
                with anyio.fail_after(PATIENCE):
                    assert (await run.finished()).kind == "run.finished"
            added = [
                e.data.added for e in await app.history.events(run.id) if e.kind == "model.answered"
            ]
        assert added == [answer.added for _, answer in calls]
        shown = [Shown(*call, asked) for call, asked in zip(calls, model.requests, strict=True)]
        for each in shown:
            _account(each)
        return shown


def _account(shown: Shown) -> None:
    """See that every text is the task's or added, and that what is added is there."""
    pieces = {*_pieces(shown.task), *shown.answer.added} - {""}
    # Blank lines between words of the same side are the library's, and say nothing.
    spelled = "|".join(re.escape(each) for each in sorted(pieces, key=len, reverse=True))
    known, texts = re.compile(rf"(?:{spelled}|\s)*"), [*_texts(shown.request)]
    strange = [text for text in texts if not known.fullmatch(text)]
    assert not strange, f"neither of the task nor said to be added: {strange}"
    missing = [each for each in shown.answer.added if not any(each in text for text in texts)]
    assert not missing, f"said to be added, and not shown: {missing}"


def _pieces(task: Task) -> Iterator[str]:
    """The texts that a task holds: of its frame, and of what was exchanged since."""
    yield task.system
    for message in task.transcript:
        yield message.text
        yield f"{message.author}: {message.text}"
    for tool in task.tools:
        yield from (tool.name, tool.description, *_words(tool.parameters))
    if task.output is not None:
        yield from (task.output.name, *_words(task.output.schema))
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
    """What a model is shown of a request: instructions, messages, and words of tools and forms."""
    yield from _said([request.body.get("instructions") or "", request.messages])
    for tool in request.body.get("tools") or ():
        yield from (tool.get("function", tool)["name"], *_words(tool))
    form: Any = request.body.get("text") or request.body.get("response_format")
    yield from _words(form)


def _said(value: Json, key: str = "") -> Iterator[str]:
    """Every text of what was said; arguments as data in our spelling."""
    if isinstance(value, str) and key not in PROTOCOL:
        yield as_data(json.loads(value)) if key == "arguments" else value
    for name, inner in _inside(value):
        yield from _said(inner, name)


def _words(value: Json, key: str = "") -> Iterator[str]:
    """What a schema says in words."""
    if isinstance(value, str) and key in ("description", "title"):
        yield value
    for name, inner in _inside(value):
        yield from _words(inner, name)


def _inside(value: Json) -> Iterable[tuple[str, Json]]:
    return (as_object(value) or {}).items() or [("", each) for each in as_array(value) or ()]
