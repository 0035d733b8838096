"""What goes wrong in AG2 1.2's networks and agents goes right where its clients answer."""

import sys
from pathlib import Path
from types import FrameType

from pydantic import create_model

from tests.support.lines import CONTEXT, BothLines, call, modelled, rule, system
from tests.support.tasks import task
from turnloom.adapters.ag2 import AG2Engine
from turnloom.testing import LoopbackModel


class TestAG2(BothLines):
    engine = "ag2"

    async def test_an_agent_that_stays_goes_on(self, tmp_path: Path) -> None:
        """Who hands over to itself has the next turn, until a rule says otherwise."""
        folder = self.folder(
            tmp_path,
            context_variables=CONTEXT,
            handoffs=[rule("A", "terminate", "spoke is true AND done is true"), rule("A", "A")],
        )
        async with modelled(["One.", "Two.", "NEXT."]):
            done = await self.converse(folder)
        assert done.texts == ["One.", "Two.", "NEXT."]

    async def test_nothing_that_was_said_is_out_of_view(self, tmp_path: Path) -> None:
        """The last turn is shown the first word, however many came between."""
        folder = self.folder(
            tmp_path,
            orchestrator={
                "initial_message": "No sugar, please.",
                "orchestration_pattern": "RoundRobinPattern",
                "max_turns": 9,
            },
        )
        async with modelled([f"Turn {number}." for number in range(1, 10)]) as model:
            await self.converse(folder)
        assert all(
            word in model.requests[-1].text
            for word in ("No sugar, please.", *(f"Turn {number}." for number in range(1, 9)))
        )

    async def test_a_question_is_on_record_and_followed(self, tmp_path: Path) -> None:
        """What a tool asks a person is seen by whoever follows the run, and stays in its log."""
        code = """
            from turnloom import use_ui_tool
            async def ask(context_variables):
                return await use_ui_tool("ask", {"title": "Which?"})
            """
        folder = self.folder(tmp_path, code, "ask", handoffs=[rule("A", "terminate")])
        async with modelled([call("ask"), "Thanks."]) as model:
            done = await self.converse(folder, "The red one.")
        (asked,), (answer,) = done.facts("question.asked"), done.facts("question.answered")
        assert asked.question == answer.question
        assert "The red one." in model.requests[1].results[0]

    async def test_the_words_for_a_handoff_have_the_values_of_the_turn(
        self, tmp_path: Path
    ) -> None:
        offered = rule("A", "B", "Once ${plan} is made.", condition_type="string_llm")
        source = {"type": "derived", "default": "copy"}
        variables = {"definitions": {"plan": {"type": "string", "source": source}}}
        folder = self.folder(tmp_path, context_variables=variables, handoffs=[offered])
        async with modelled([call("transfer_to_B_1"), "Mine."]) as model:
            await self.converse(folder)
        (tool,) = model.requests[0].body["tools"]
        assert 'Once "copy" is made.' in tool["function"]["description"]
        assert "Be B." in system(model.requests[1])

    async def test_both_lines_answer_in_one_run(self, tmp_path: Path) -> None:
        agents = {
            name: {"engine": engine, "model": f"openai-chat:{engine}"}
            for name, engine in (("A", "ag2"), ("B", "autogen"))
        }
        folder = self.folder(tmp_path, agents=agents, handoffs=[rule("A", "B")])
        async with modelled(["One.", "Two."]) as model:
            done = await self.converse(folder)
        assert done.texts == ["One.", "Two."]
        assert [each.body["model"] for each in model.requests] == ["ag2", "autogen"]

    async def test_no_class_is_built_for_a_call(self) -> None:
        """Every call but the first does with the classes that there are."""
        built: list[str] = []

        def notice(frame: FrameType, event: str, argument: object) -> None:
            if event == "call" and frame.f_code.co_name == create_model.__name__:
                built.append(frame.f_code.co_filename)

        async with LoopbackModel(["One.", "Two."]) as model:
            engine = AG2Engine("any", base_url=model.url)
            await engine(task(("user", "Count.")))
            sys.setprofile(notice)
            try:
                await engine(task(("user", "Count.")))
            finally:
                sys.setprofile(None)
        assert not built
