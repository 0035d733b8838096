"""What every engine makes of answers: texts, pieces, outputs, usage."""

from typing import Any

import anyio

from turnloom.agents.spec import Answer, Usage
from turnloom.testing.contracts.engines.stage import FORMED, TALKING, EngineSuite, written
from turnloom.testing.contracts.facts import PATIENCE
from turnloom.testing.loopback import Lingering, LoopbackModel, ModelRequest, Paced

SUM = {"total": 5, "remark": "easy"}

# Seconds after which a request is given up, where an answer might be waited for in vain.
SOON = 2.0


class AnswersContract(EngineSuite):
    """An engine shows what it is given, and gives what it is shown."""

    async def test_a_text(self) -> None:
        """What the model says is said, to the letter, and used tokens are on record."""
        text = "It is five.\n\n  (2 + 3 = 5: “fünf”, 五, \U0001f600)"
        async with LoopbackModel([Answer(text, Usage(21, 7))]) as model:
            done = await self.converse(model)
        assert done.end.kind == "run.finished"
        assert done.texts == [text]
        (answered,) = done.facts("model.answered")
        assert answered.usage == Usage(21, 7)

    async def test_what_is_shown(self) -> None:
        """The model is shown the instructions and what was said, and offered nothing else."""
        async with LoopbackModel(["Five."]) as model:
            await self.converse(model)
        (request,) = model.requests
        assert "You add numbers." in request.text
        assert "Add two and three." in request.text
        assert not request.tools

    async def test_what_was_said_before(self) -> None:
        """In a later turn the model is shown its own words and those of the user, in order."""
        async with LoopbackModel(["Five.", "Nine."]) as model, self.app(model) as app:
            async with written(TALKING) as folder:
                run = await app.start(folder)
                with anyio.fail_after(PATIENCE):
                    async for event in run.events():
                        if event.kind == "question.asked" and len(model.requests) == 1:
                            await run.answer(None, "Now add four.")
                        elif event.kind == "question.asked":
                            await run.cancel()
        shown = model.requests[1].text
        places = [shown.index(said) for said in ("Add two", "Five.", "Now add four.")]
        assert places == sorted(places)

    async def test_pieces(self) -> None:
        """An answer is heard while it is made, piece by piece, and is the same in the end."""
        text = "One and two and three\nand so on."
        async with LoopbackModel([Paced(text, 0.01)]) as model:
            done = await self.converse(model)
        assert done.texts == [text]
        assert done.heard == (text if self.streams else "")
        assert not self.streams or len(done.pieces) > 1

    async def test_a_piece_of_any_length(self) -> None:
        """An answer may come in one piece, however long, even if it is then asked for again."""
        text = 70_000 * "x"
        async with LoopbackModel([text] * 2) as model:
            done = await self.converse(model)
        assert done.end.kind == "run.finished", done.end.data
        assert done.texts == [text]

    async def test_a_connection_that_stays_open(self) -> None:
        """An answer that says that it has ended is not waited for any longer."""
        async with LoopbackModel([Lingering("It is five.")]) as model:
            done = await self.converse(model, silence=SOON)
        assert done.end.kind == "run.finished", done.end.data
        assert done.texts == ["It is five."]

    async def test_an_empty_answer(self) -> None:
        """A model that says nothing ends its turn without a word."""
        async with LoopbackModel([Answer("")]) as model:
            done = await self.converse(model)
        assert done.end.kind == "run.finished"
        assert done.texts == []

    async def test_an_output(self) -> None:
        """The model is told the form that is asked for, and what it gives of it is the output."""
        async with LoopbackModel([Answer(output=SUM)]) as model:
            done = await self.converse(model, FORMED)
        assert done.end.kind == "run.finished"
        (given,) = done.facts("agent.output")
        assert given.output == SUM
        assert "total" in str(model.requests[0].body)
        assert done.texts == []

    async def test_an_output_that_is_wrong(self) -> None:
        """The model is told what is wrong with its output, and gives another one."""
        wrong = Answer(output={"total": "many"})
        async with LoopbackModel([wrong, Answer(output=SUM)]) as model:
            done = await self.converse(model, FORMED)
        assert done.end.kind == "run.finished"
        assert [fact.output for fact in done.facts("agent.output")] == [SUM]
        (refused,) = done.facts("output.refused")
        assert refused.problem.splitlines()[0] in _plain(model.requests[1])

    async def test_runs_at_once(self) -> None:
        """Runs that go on at the same time do not get each other's answers."""

        def echo(request: ModelRequest) -> Paced:
            number = request.text.partition("number ")[2].partition("!")[0]
            return Paced(f"It is {number}.", 0.01)

        async with LoopbackModel(echo) as model, self.app(model) as app:
            runs: list[Any] = []
            for number in range(8):
                opening = f"initial_message: Say number {number}!\n"
                async with written(TALKING | {"orchestrator.yaml": opening}) as folder:
                    runs.append(await app.start(folder))
            with anyio.fail_after(PATIENCE):
                for number, run in enumerate(runs):
                    await run.finished()
                    said = [
                        e.data.text
                        for e in await app.history.events(run.id)
                        if e.kind == "agent.text"
                    ]
                    assert said == [f"It is {number}."]


def _plain(request: ModelRequest) -> str:
    """The messages of a request, with what is written as data in them read."""
    return request.text.replace("\\n", "\n").replace('\\"', '"')
