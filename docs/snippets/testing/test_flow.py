"""Test a flow: its agents are scripted, and the test checks the outcome."""

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from turnloom import AgentStep, AssembledContext, Flow, FlowFailed, Loom, StepContext
from turnloom.testing import ScriptedEngine


class Letter(BaseModel):
    model_config = ConfigDict(frozen=True)

    text: str
    reply: str = ""


class Reply(AgentStep[Letter]):
    def user_prompt(self, state: Letter) -> str:
        return f"Reply to: {state.text}"

    def apply(self, state: Letter, answer: str, context: AssembledContext) -> Any:
        return {"reply": answer}


async def send(letter: Letter, ctx: StepContext) -> None:
    if not letter.reply:
        raise ValueError("there is nothing to send")


LETTERS = Flow("letters", Letter).start_with(Reply, retry=1).finally_(send)


async def test_a_letter_is_replied_to() -> None:
    engine = ScriptedEngine({"Reply": ["Thank you."]})
    async with Loom(store="memory", engine=engine) as app:
        outcome = await app.run(LETTERS, Letter(text="Hello"))
    assert outcome.state.reply == "Thank you."
    assert "Reply to: Hello" in engine.calls[0].prompt
    engine.assert_complete()


async def test_without_a_reply_nothing_is_sent() -> None:
    async with Loom(store="memory", engine=ScriptedEngine({"Reply": [""]})) as app:
        with pytest.raises(FlowFailed) as raised:
            await app.run(LETTERS, Letter(text="Hello"))
        failure = raised.value.outcome.failure
        assert failure is not None and failure.message == "there is nothing to send"
