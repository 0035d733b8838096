"""What every engine makes of tools: it offers them, has them called, and tells what they gave."""

from turnloom.agents.spec import Answer, ToolCall
from turnloom.testing.contracts.engines.stage import EQUIPPED, FORMED, Conversed, EngineSuite
from turnloom.testing.loopback import Endless, LoopbackModel, ModelRequest

ADDED = ToolCall("add", {"a": 2, "b": 3})


def calling(*calls: ToolCall, text: str = "") -> Answer:
    """An answer that calls tools."""
    return Answer(text, calls=calls)


class CallingContract(EngineSuite):
    """An engine has tools called by the run, never by itself."""

    async def test_a_tool(self) -> None:
        """It is offered with its form, called, and what it gave is told."""
        async with LoopbackModel([calling(ADDED), "It is 5."]) as model:
            done = await self.converse(model, EQUIPPED)
        assert done.end.kind == "run.finished"
        assert done.texts == ["It is 5."]
        assert model.requests[0].tools == ["add", "fail", "meet", "wait"]
        offered = str(model.requests[0].body["tools"][0])
        assert "Add two numbers." in offered and "integer" in offered
        assert [fact.result for fact in done.facts("tool.returned")] == [5]
        assert model.requests[-1].results == ["5"]

    async def test_words_beside_a_call(self) -> None:
        """What the model says while it calls a tool is said too."""
        async with LoopbackModel([calling(ADDED, text="Let me see."), "It is 5."]) as model:
            done = await self.converse(model, EQUIPPED)
        assert done.texts == ["Let me see.", "It is 5."]

    async def test_tools_at_once(self) -> None:
        """Several calls of one answer go on side by side, and each result goes to its call."""
        calls = [ToolCall("meet", {"guests": 2}), ToolCall("meet", {"guests": 2}), ADDED]
        async with LoopbackModel([calling(*calls), "We met."]) as model:
            done = await self.converse(model, EQUIPPED)
        assert done.texts == ["We met."]
        assert len(done.facts("tool.returned")) == 3
        met, again, five = model.requests[-1].results
        assert "met 2" in met and "met 2" in again and five == "5"

    async def test_rounds_of_calls(self) -> None:
        """Calls that follow from results are further requests, with all that came before."""
        more = ToolCall("add", {"a": 5, "b": 4})
        async with LoopbackModel([calling(ADDED), calling(more), "It is 9."]) as model:
            done = await self.converse(model, EQUIPPED)
        assert done.texts == ["It is 9."]
        assert model.requests[-1].results == ["5", "9"]
        assert done.kinds.count("model.called") == 3

    async def test_a_tool_that_fails(self) -> None:
        """The model is told why, and goes on."""
        failing = ToolCall("fail", {"reason": "no such luck"})
        done, told = await self._after(failing)
        assert done.texts == ["Too bad."]
        assert "no such luck" in told
        assert len(done.facts("tool.failed")) == 1

    async def test_a_tool_that_takes_too_long(self) -> None:
        """The model is told so, and goes on."""
        done, told = await self._after(ToolCall("wait"))
        assert done.texts == ["Too bad."]
        assert "0.2" in told or "Timeout" in told

    async def test_arguments_that_do_not_fit(self) -> None:
        """The model is told what does not fit."""
        done, told = await self._after(ToolCall("add", {"a": 2, "c": 3}))
        assert done.texts == ["Too bad."]
        assert "`b`" in told

    async def test_a_tool_that_is_not_there(self) -> None:
        """The model is told what there is."""
        done, told = await self._after(ToolCall("subtract", {"a": 2}))
        assert done.texts == ["Too bad."]
        assert "subtract" in told

    async def test_a_tool_that_has_no_possible_name(self) -> None:
        """The model is told so too, by a name that its provider takes."""
        done, told = await self._after(ToolCall("functions.subtract?", {"a": 2}))
        assert done.texts == ["Too bad."]
        assert "subtract" in told

    async def test_calls_that_their_provider_does_not_tell_apart(self) -> None:
        """Each result goes to its call all the same."""
        calls = [ToolCall("add", {"a": a, "b": 0}, "same") for a in (1, 2)]
        async with LoopbackModel([calling(*calls), "It is 1 or 2."]) as model:
            done = await self.converse(model, EQUIPPED)
        assert done.texts == ["It is 1 or 2."]
        assert model.requests[-1].results == ["1", "2"]

    async def test_tools_and_an_output(self) -> None:
        """A tool can be called on the way to an output."""
        output = {"total": 5, "remark": "added"}
        async with LoopbackModel([calling(ADDED), Answer(output=output)]) as model:
            done = await self.converse(model, EQUIPPED | FORMED)
        assert done.end.kind == "run.finished"
        assert [fact.output for fact in done.facts("agent.output")] == [output]

    async def test_why_an_answer_with_calls_ended(self) -> None:
        """It is on record."""
        async with LoopbackModel([calling(ADDED), "It is 5."]) as model:
            done = await self.converse(model, EQUIPPED)
        assert [fact.stop for fact in done.facts("model.answered")] == ["tool", "end"]

    async def test_calls_of_an_answer_without_an_end(self) -> None:
        """None of them is made: the answer is asked for again."""
        for is_closed in (True, False):
            async with LoopbackModel([Endless(calling(ADDED), is_closed), "It is 5."]) as model:
                done = await self.converse(model, EQUIPPED)
            assert done.texts == ["It is 5."]
            assert "tool.called" not in done.kinds
            assert len(model.requests) == 2

    async def test_a_tool_of_any_name(self) -> None:
        """A tool may be called what no provider takes: it is offered by a name that they take."""
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

    async def _after(self, call: ToolCall) -> tuple[Conversed, str]:
        """A run in which a tool cannot give anything, and what the model is told of it."""
        async with LoopbackModel([calling(call), "Too bad."]) as model:
            done = await self.converse(model, EQUIPPED)
        (told,) = model.requests[-1].results
        return done, told
