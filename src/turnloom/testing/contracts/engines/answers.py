"""Contracts of engines: answers, streams, outputs, usage and stop reasons."""

from collections.abc import Mapping
from typing import Any

import anyio

from turnloom.agents.spec import Answer, Usage
from turnloom.testing.contracts.engines.stage import (
    FORMED,
    PLAIN,
    RETRIES,
    TALKING,
    EngineSuite,
    FinishedRun,
    workflow_folder,
)
from turnloom.testing.contracts.facts import PATIENCE
from turnloom.testing.loopback import (
    EmptyReply,
    LingeringReply,
    LoopbackModel,
    ModelRequest,
    SlowReply,
    UnfinishedReply,
)
from turnloom.testing.loopback.script import Line

SUM = {"total": 5, "remark": "easy"}

# Timeout in seconds for tests in which an answer may never end.
SOON = 2.0


class AnswersContract(EngineSuite):
    """Requests and answers."""

    async def test_a_text(self) -> None:
        """The text of the model is recorded unchanged, with its usage."""
        text = "It is five.\n\n  (2 + 3 = 5: “fünf”, 五, \U0001f600)"
        async with LoopbackModel([Answer(text, Usage(21, 7))]) as model:
            done = await self.converse(model)
        assert done.end.kind == "run.finished"
        assert done.texts == [text]
        (answered,) = done.facts("model.answered")
        assert answered.usage == Usage(21, 7)

    async def test_the_parts_of_its_usage(self) -> None:
        """Cached input and reasoning are recorded as parts of the input and of the output."""
        used = Usage(4901, 120, cached_tokens=3900, reasoning_tokens=80)
        async with LoopbackModel([Answer("Five.", used)]) as model:
            done = await self.converse(model)
        (answered,) = done.facts("model.answered")
        assert answered.usage == used

    async def test_the_request(self) -> None:
        """The model gets the instructions and messages, and no tools."""
        async with LoopbackModel(["Five."]) as model:
            await self.converse(model)
        (request,) = model.requests
        assert "You add numbers." in request.text
        assert "Add two and three." in request.text
        assert not request.tools

    async def test_earlier_messages(self) -> None:
        """In a later turn, the model gets the earlier messages of both sides, in order."""
        async with LoopbackModel(["Five.", "Nine."]) as model, self.app(model) as app:
            async with workflow_folder(TALKING) as folder:
                run = await app.start(folder)
                with anyio.fail_after(PATIENCE):
                    async for event in run.events():
                        if event.kind == "question.asked" and len(model.requests) == 1:
                            await run.answer(None, "Now add four.")
                        elif event.kind == "question.asked":
                            await run.cancel()
        sent = model.requests[1].text
        places = [sent.index(text) for text in ("Add two", "Five.", "Now add four.")]
        assert places == sorted(places)

    async def test_pieces(self) -> None:
        """An answer is streamed in several deltas, which add up to its text."""
        text = "One and two and three\nand so on."
        async with LoopbackModel([SlowReply(text, 0.01)]) as model:
            done = await self.converse(model)
        assert done.texts == [text]
        assert done.heard == (text if self.streams else "")
        assert not self.streams or len(done.pieces) > 1

    async def test_a_piece_of_any_length(self) -> None:
        """An answer may arrive in one chunk of any length."""
        text = 70_000 * "x"
        async with LoopbackModel([text] * 2) as model:
            done = await self.converse(model)
        assert done.end.kind == "run.finished", done.end.data
        assert done.texts == [text]

    async def test_a_connection_that_stays_open(self) -> None:
        """A finished answer is accepted, even if the connection stays open."""
        async with LoopbackModel([LingeringReply("It is five.")]) as model:
            done = await self.converse(model, silence=SOON)
        assert done.end.kind == "run.finished", done.end.data
        assert done.texts == ["It is five."]

    async def test_an_empty_answer(self) -> None:
        """An empty answer finishes the turn without a text."""
        async with LoopbackModel([Answer("")]) as model:
            done = await self.converse(model)
        assert done.end.kind == "run.finished"
        assert done.texts == []

    async def test_an_output(self) -> None:
        """The model gets the output schema, and its output is recorded."""
        async with LoopbackModel([Answer(output=SUM)]) as model:
            done = await self.converse(model, FORMED)
        assert done.end.kind == "run.finished"
        (given,) = done.facts("agent.output")
        assert given.output == SUM
        assert "total" in str(model.requests[0].body)
        assert done.texts == []

    async def test_an_output_that_is_wrong(self) -> None:
        """The model gets the problem with an invalid output, and tries again."""
        wrong = Answer(output={"total": "many"})
        async with LoopbackModel([wrong, Answer(output=SUM)]) as model:
            done = await self.converse(model, FORMED)
        assert done.end.kind == "run.finished"
        assert [fact.output for fact in done.facts("agent.output")] == [SUM]
        (refused,) = done.facts("output.refused")
        assert refused.problem.splitlines()[0] in _plain(model.requests[1])

    async def test_runs_at_once(self) -> None:
        """Concurrent runs get their own answers."""

        def echo(request: ModelRequest) -> SlowReply:
            number = request.text.partition("number ")[2].partition("!")[0]
            return SlowReply(f"It is {number}.", 0.01)

        async with LoopbackModel(echo) as model, self.app(model) as app:
            runs: list[Any] = []
            for number in range(8):
                opening = f"initial_message: Say number {number}!\n"
                async with workflow_folder(TALKING | {"orchestrator.yaml": opening}) as folder:
                    runs.append(await app.start(folder))
            with anyio.fail_after(PATIENCE):
                for number, run in enumerate(runs):
                    await run.finished()
                    texts = [
                        e.data.text
                        for e in await app.history.events(run.id)
                        if e.kind == "agent.text"
                    ]
                    assert texts == [f"It is {number}."]


def _plain(request: ModelRequest) -> str:
    """The messages of a request, with JSON escapes decoded."""
    return request.text.replace("\\n", "\n").replace('\\"', '"')


TEXT = "It is five."


class EndingContract(EngineSuite):
    """Answers without a finish reason are retried, and their content is never used."""

    async def test_a_text_without_an_end(self) -> None:
        """A text without a finish reason is retried, with and without the last event of the
        stream."""
        for is_closed in (True, False):
            done = await self._retried(UnfinishedReply("It is six and", is_closed), TEXT)
            assert done.texts == [TEXT]
            assert done.heard == (TEXT if self.streams else "")

    async def test_an_output_without_an_end(self) -> None:
        """An output without a finish reason is retried, even if it is valid."""
        wrong = Answer(output={"total": 6, "remark": "hard"})
        for is_closed in (True, False):
            line = UnfinishedReply(wrong, is_closed)
            done = await self._retried(line, Answer(output=SUM), PLAIN | FORMED)
            assert [fact.output for fact in done.facts("agent.output")] == [SUM]

    async def test_a_reply_without_an_answer(self) -> None:
        """A reply without an answer is retried."""
        assert (await self._retried(EmptyReply(), TEXT)).texts == [TEXT]
        done = await self._retried(EmptyReply(), Answer(output=SUM), PLAIN | FORMED)
        assert [fact.output for fact in done.facts("agent.output")] == [SUM]

    async def test_no_answer_ever(self) -> None:
        """The run fails after the last retry, and no text of the answers is recorded."""
        for line in (UnfinishedReply("It is six."), EmptyReply()):
            async with LoopbackModel([line] * 9) as model:
                done = await self.converse(model)
            assert done.end.kind == "run.failed", done.end.data
            assert len(model.requests) == 1 + RETRIES
            assert done.texts == []
            assert done.kinds.count("model.failed") == 1

    async def test_why_an_answer_ended(self) -> None:
        """The stop reason is recorded; a text that was cut off is used as it is."""
        for stop in ("end", "length", "filter"):
            async with LoopbackModel([Answer(TEXT, stop=stop)]) as model:
                done = await self.converse(model)
            assert done.end.kind == "run.finished", done.end.data
            assert done.texts == [TEXT]
            (answered,) = done.facts("model.answered")
            assert answered.stop == stop

    async def test_a_refusal(self) -> None:
        """A refusal is recorded with its stop reason, and is the agent's text."""
        async with LoopbackModel([Answer(refusal=TEXT)]) as model:
            done = await self.converse(model)
        assert done.end.kind == "run.finished", done.end.data
        (answered,) = done.facts("model.answered")
        assert (answered.stop, answered.refusal) == ("refusal", TEXT)
        assert done.texts == [TEXT]

    async def test_an_output_that_is_cut_or_refused(self) -> None:
        """A truncated or refused output is not retried: the run fails."""
        cut, refused = Answer('{"total": 5, "rem', stop="length"), Answer(refusal=TEXT)
        for answer, says in ((cut, "limit"), (refused, TEXT)):
            async with LoopbackModel([answer]) as model:
                done = await self.converse(model, PLAIN | FORMED)
            assert done.end.kind == "run.failed"
            assert len(model.requests) == 1
            assert says in done.end.data.message

    async def _retried(
        self, wrong: Line, right: Line, files: Mapping[str, str] = PLAIN
    ) -> FinishedRun:
        """A run in which the first reply is retried, and the second one succeeds."""
        async with LoopbackModel([wrong, right]) as model:
            done = await self.converse(model, files)
        assert done.end.kind == "run.finished", done.end.data
        assert len(model.requests) == 2
        assert done.kinds.count("model.answered") == 1
        return done
