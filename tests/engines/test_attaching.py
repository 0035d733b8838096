"""Group chats of AG2's classic line with the variables of a workflow folder."""

from pathlib import Path

import pytest
from autogen.agentchat import a_initiate_group_chat, run_group_chat
from autogen.agentchat.group import (
    AgentTarget,
    ContextExpression,
    ContextVariables,
    ExpressionContextCondition,
    OnContextCondition,
    RevertToUserTarget,
)

from tests.support.chats import chat, converse, loaded, say, speakers
from tests.support.raising import raising
from turnloom.adapters.autogen import attach
from turnloom.adapters.autogen.attaching import SUPPORTED, UNSUPPORTED
from turnloom.errors import UsageError
from turnloom.variables.logic.triggers import TRIGGER_LOADERS

FILES = {
    "agents.yaml": "Asker: {}\nPlanner: {}\nReviewer: {}\n",
    "context_variables.yaml": """
        definitions:
          tier: {type: string, source: {type: static, value: beta}}
          known:
            type: boolean
            source:
              type: derived
              default: false
              triggers: [{type: agent_text, agent: Asker, match: {equals: NEXT}}]
          stage:
            type: string
            source:
              type: derived
              default: asking
              triggers: [{type: context_changed, variable: known, equals: true, value: planning}]
          asked:
            type: boolean
            source:
              type: derived
              default: false
              triggers: [{type: agent_turn_count, agent: Asker, count: 1}]
        agents:
          Planner: {variables: [stage, tier]}
        """,
}


@pytest.mark.repeats
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_flag_is_set_before_the_next_agent_decides(is_async: bool, tmp_path: Path) -> None:
    workflow = loaded(tmp_path, FILES)
    for _ in range(100):
        pattern, agents = chat()
        agents["Asker"].handoffs.set_after_work(AgentTarget(agents["Planner"]))
        attach(pattern, workflow)
        with say(agents, Asker=[" next "], Planner=["Too late."], Reviewer=["In time."]):
            result, context = await converse(pattern, is_async)
        assert "Too late." not in [message["content"] for message in result.chat_history]
        assert speakers(result)[-1] == "Reviewer"
        assert context.to_dict() == {
            "tier": "beta",
            "known": True,
            "stage": "planning",
            "asked": True,
        }


def test_a_chat_in_a_thread_has_the_flag_in_time_too(tmp_path: Path) -> None:
    workflow = loaded(tmp_path, FILES)
    for _ in range(20):
        pattern, agents = chat()
        agents["Asker"].handoffs.set_after_work(AgentTarget(agents["Planner"]))
        attach(pattern, workflow)
        with say(agents, Asker=["NEXT"], Planner=["Too late."], Reviewer=["In time."]):
            response = run_group_chat(pattern, "Begin.", 6)
            for event in response.events:
                if event.type == "input_request":
                    event.content.respond("exit")
        assert [message["content"] for message in response.messages][-1] == "In time."


async def test_a_flag_is_set_before_its_own_agent_s_work_is_over(tmp_path: Path) -> None:
    pattern, agents = chat(context_variables=ContextVariables(data={"tier": "gold"}))
    is_known = ExpressionContextCondition(ContextExpression("${known} == True"))
    agents["Asker"].handoffs.add_after_works(
        [
            OnContextCondition(target=AgentTarget(agents["Reviewer"]), condition=is_known),
            OnContextCondition(target=RevertToUserTarget(), condition=None),
        ]
    )
    attach(pattern, loaded(tmp_path, FILES))
    with say(agents, Asker=["NEXT"], Reviewer=["Fine."]):
        result, context, _ = await a_initiate_group_chat(pattern, "Begin.", 6)
    assert speakers(result) == ["Asker", "Reviewer"]
    assert context["tier"] == "gold"


async def test_an_agent_is_shown_its_variables_as_they_are_now(tmp_path: Path) -> None:
    pattern, agents = chat()
    agents["Asker"].handoffs.set_after_work(AgentTarget(agents["Planner"]))
    agents["Planner"].handoffs.context_conditions.clear()
    attach(pattern, loaded(tmp_path, FILES))
    with say(agents, Asker=["NEXT"], Planner=["Here it is."]):
        await a_initiate_group_chat(pattern, "Begin.", 6)
    told = agents["Planner"].system_message
    assert told.startswith("Be Planner.\n\n")
    assert told.endswith('- stage: "planning"\n- tier: "beta"')
    assert agents["Asker"].system_message == "Be Asker."


async def test_message_hooks_of_the_folder_run_in_the_chat(tmp_path: Path) -> None:
    hook = "process_message_before_send"
    files = FILES | {
        "hooks.yaml": f"hooks: [{{hook_type: {hook}, hook_agent: Asker, filename: h.py, "
        "function: shout}]",
        "h.py": "def shout(sender, message, recipient, silent):\n    return 'NEXT'\n",
    }
    pattern, agents = chat()
    attach(pattern, loaded(tmp_path, files))
    with say(agents, Asker=["wait"]):
        result, context, _ = await a_initiate_group_chat(pattern, "Begin.", 6)
    assert result.chat_history[-1]["content"] == "NEXT"
    assert context["known"] is True


async def test_agents_of_an_earlier_run_are_refused(tmp_path: Path) -> None:
    pattern, agents = chat()
    workflow = loaded(tmp_path, FILES)
    attach(pattern, workflow)
    with raising(UsageError, "'Asker'"):
        attach(pattern, workflow)


DERIVATION = """
from turnloom import derivation

@derivation
def f(event, values):
    return True
"""


@pytest.mark.parametrize(
    ("trigger", "value"),
    [
        ("{type: agent_text, agent: Asker, match: {equals: TERMINATE}}", "TERMINATE"),
        ("{type: timer_expired, after: 5}", "'timer_expired'"),
        ("{type: function, function: f}", "'function'"),
        ("{type: tool_response, tool: save}", "'save'"),
        ("{type: ui_response, tool: save, response_key: a, apply: auto}", "`apply`"),
    ],
)
def test_a_trigger_that_would_never_fire_is_refused(
    trigger: str, value: str, tmp_path: Path
) -> None:
    source = f"{{type: derived, default: false, triggers: [{trigger}]}}"
    variables = f"definitions: {{late: {{type: boolean, source: {source}}}}}"
    code = {
        "tools.yaml": "tools: [{agent: Asker, file: t.py, function: save}]",
        "t.py": "def save(): ...",
        "derivations.py": DERIVATION,
    }
    workflow = loaded(tmp_path, FILES | code | {"context_variables.yaml": variables})
    with raising(UsageError, "'late'", value):
        attach(chat()[0], workflow)


def test_every_kind_of_trigger_is_supported_or_refused_with_its_reason() -> None:
    supported = {name for name, kind in TRIGGER_LOADERS.items() if kind.model in SUPPORTED}
    assert supported | UNSUPPORTED.keys() == {*TRIGGER_LOADERS}
    assert not supported & UNSUPPORTED.keys()


def test_a_chat_that_lacks_an_agent_is_refused(tmp_path: Path) -> None:
    files = FILES | {"agents.yaml": FILES["agents.yaml"] + "Writer: {}\n"}
    with raising(UsageError, "'Writer'"):
        attach(chat()[0], loaded(tmp_path, files))
