"""What every engine makes of an answer that has no end: it is none."""

from collections.abc import Mapping

from turnloom.agents.spec import Answer
from turnloom.testing.contracts.engines.stage import FORMED, PLAIN, RETRIES, Conversed, EngineSuite
from turnloom.testing.loopback import Endless, Hollow, LoopbackModel
from turnloom.testing.loopback.script import Line

TEXT = "It is five."
SUM = {"total": 5, "remark": "easy"}


class EndingContract(EngineSuite):
    """No end, no answer: what was cut off is asked for again, and never acted on."""

    async def test_a_text_without_an_end(self) -> None:
        """It is asked for again, whether or not the stream was closed properly."""
        for is_closed in (True, False):
            done = await self._asked_again(Endless("It is six and", is_closed), TEXT)
            assert done.texts == [TEXT]
            assert done.heard == (TEXT if self.streams else "")

    async def test_an_output_without_an_end(self) -> None:
        """It is asked for again, even though it is whole."""
        wrong = Answer(output={"total": 6, "remark": "hard"})
        for is_closed in (True, False):
            line = Endless(wrong, is_closed)
            done = await self._asked_again(line, Answer(output=SUM), PLAIN | FORMED)
            assert [fact.output for fact in done.facts("agent.output")] == [SUM]

    async def test_a_reply_without_an_answer(self) -> None:
        """It is asked for again."""
        assert (await self._asked_again(Hollow(), TEXT)).texts == [TEXT]
        done = await self._asked_again(Hollow(), Answer(output=SUM), PLAIN | FORMED)
        assert [fact.output for fact in done.facts("agent.output")] == [SUM]

    async def test_no_answer_ever(self) -> None:
        """The run fails in the end, and nothing of the answers is on record as said."""
        for line in (Endless("It is six."), Hollow()):
            async with LoopbackModel([line] * 9) as model:
                done = await self.converse(model)
            assert done.end.kind == "run.failed", done.end.data
            assert len(model.requests) == 1 + RETRIES
            assert done.texts == []
            assert done.kinds.count("model.failed") == 1

    async def test_why_an_answer_ended(self) -> None:
        """It is on record, and one that was cut at its limit is taken as it is, once."""
        for stop in ("end", "length", "filter"):
            async with LoopbackModel([Answer(TEXT, stop=stop)]) as model:
                done = await self.converse(model)
            assert done.end.kind == "run.finished", done.end.data
            assert done.texts == [TEXT]
            (answered,) = done.facts("model.answered")
            assert answered.stop == stop

    async def test_a_refusal(self) -> None:
        """What the model says to it is on record as such, and is what the agent says."""
        async with LoopbackModel([Answer(refusal=TEXT)]) as model:
            done = await self.converse(model)
        assert done.end.kind == "run.finished", done.end.data
        (answered,) = done.facts("model.answered")
        assert (answered.stop, answered.refusal) == ("refusal", TEXT)
        assert done.texts == [TEXT]

    async def test_an_output_that_is_cut_or_refused(self) -> None:
        """It is not asked for again: the next one would end the same way."""
        cut, refused = Answer('{"total": 5, "rem', stop="length"), Answer(refusal=TEXT)
        for answer, says in ((cut, "limit"), (refused, TEXT)):
            async with LoopbackModel([answer]) as model:
                done = await self.converse(model, PLAIN | FORMED)
            assert done.end.kind == "run.failed"
            assert len(model.requests) == 1
            assert says in done.end.data.message

    async def _asked_again(
        self, wrong: Line, right: Line, files: Mapping[str, str] = PLAIN
    ) -> Conversed:
        """A run in which the first reply is no answer, and the second one is."""
        async with LoopbackModel([wrong, right]) as model:
            done = await self.converse(model, files)
        assert done.end.kind == "run.finished", done.end.data
        assert len(model.requests) == 2
        assert done.kinds.count("model.answered") == 1
        return done
