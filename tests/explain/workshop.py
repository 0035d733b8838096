"""Workflows in which much happens: in a turn, and in deciding who is next."""

import msgspec

from turnloom import Answer
from turnloom.agents.spec import ToolCall

TOKEN = "tok-4711-quiet"

# Everything that can happen in a turn: tools, hooks, questions, outputs, transfers.
WORKSHOP = {
    "orchestrator.yaml": "{initial_agent: Planner, initial_message: Build it.}",
    "agents.yaml": """
        Planner: {system_message: Plan.}
        Writer: {system_message: Write., structured_outputs: Report}
        Editor: {system_message: Edit.}
        """,
    "structured_outputs.yaml": """
        models: {Report: {type: model, fields: {title: {type: str}, pages: {type: int}}}}
        """,
    "context_variables.yaml": """
        definitions:
          token: {type: string, secret: true,
            source: {type: environment, env_var: TURNLOOM_TEST_TOKEN}}
          accepted: {type: boolean, source: {type: derived, default: false, triggers: [
            {type: ui_response, tool: plan, response_key: accepted}]}}
          colour: {type: string, source: {type: derived, default: grey, triggers: [
            {type: ui_response, tool: plan, response_key: colour}]}}
          total: {type: integer, source: {type: derived, default: 0, triggers: [
            {type: tool_response, tool: add, from: sum}]}}
        agents:
          Planner: {variables: [token, accepted]}
        """,
    "handoffs.yaml": """
        handoff_rules:
          - {source_agent: Planner, target_agent: terminate, handoff_type: condition,
             condition: '${total} == 99'}
          - {source_agent: Planner, target_agent: Editor, handoff_type: condition,
             condition_type: string_llm, condition: When nothing can be built.}
          - {source_agent: Planner, target_agent: Writer, handoff_type: condition,
             condition_type: string_llm, condition: 'Accepted: ${accepted}, total: ${total}.'}
          - {source_agent: Planner, target_agent: Planner, handoff_type: after_work}
          - {source_agent: Writer, target_agent: Editor, handoff_type: condition,
             condition_scope: pre, condition: '${accepted} == False'}
          - {source_agent: Writer, target_agent: Editor, handoff_type: after_work}
          - {source_agent: Editor, target_agent: terminate, handoff_type: condition,
             condition_scope: pre, condition: '${total} == 5'}
        """,
    "tools.yaml": """
        tools:
          - {agent: Planner, file: work.py, function: plan, tool_type: UI_Tool}
          - {agent: Planner, file: work.py, function: add}
          - {agent: Writer, file: work.py, function: bind, auto_invoke: true}
        lifecycle_tools:
          - {trigger: before_chat, agent: null, file: work.py, function: unlock}
          - {trigger: before_agent, agent: Planner, file: work.py, function: greet,
             when: '${accepted} == False'}
          - {trigger: after_agent, agent: Planner, file: work.py, function: check, retries: 1}
          - {trigger: after_agent, agent: Planner, file: work.py, function: praise, after: check}
          - {trigger: before_agent, agent: Writer, file: work.py, function: greet,
             when: '${accepted} == False'}
        """,
    "tools/work.py": """
        from turnloom import use_ui_tool

        class Pool: ...

        def unlock(context_variables):
            context_variables["pool"] = Pool()
            context_variables["draft"] = {"n": 1}

        def greet(): return "hello"
        def check(): raise RuntimeError("not today")
        def praise(): ...

        async def plan(title: str, context_variables):
            async def pay(): return {"paid": title}
            paid = await context_variables.once("pay", pay)
            first = await use_ui_tool("plan", {"question": "Like this?", "paid": paid})
            context_variables.set("accepted", first["accepted"])
            try:
                context_variables.set("total", "many")
            except Exception:
                context_variables.remove("draft")
            second = await use_ui_tool("plan", {"question": "Sure?"})
            return [first["accepted"], second["accepted"]]

        async def add(a: int, b: int = 2) -> dict:
            return {"sum": a + b}

        def bind(pages: int):
            if pages > 9:
                raise ValueError("too thick")
        """,
}


def _call(tool: str, **arguments: object) -> ToolCall:
    return ToolCall(tool, dict(arguments))


LINES = {
    "Planner": [
        Answer("Let me see.", calls=(_call("plan", title=TOKEN), _call("add", a=3))),
        Answer(calls=(_call("subtract", a=1),)),
        Answer(calls=(_call("transfer_to_Writer_3"),)),
    ],
    "Writer": [
        "No report.",
        Answer(output={"title": "Sheds", "pages": 10}),
        Answer(output={"title": "Sheds", "pages": 2}),
    ],
}
REPLIES = [{"accepted": True, "colour": "red"}, {"accepted": True}]

# Who is next follows from a value, from the model, or from neither.
CHOICE = {
    "orchestrator.yaml": "{initial_agent: A, max_turns: 2}",
    "agents.yaml": "A: {}\nB: {}\nC: {}",
    "context_variables.yaml": """
        definitions:
          level: {type: integer, source: {type: derived, default: 1, triggers: [
            {type: agent_text, agent: A, match: {contains: UP}, value: 2},
            {type: agent_text, agent: A, match: {contains: OUT}, value: 3}]}}
        """,
    "handoffs.yaml": """
        handoff_rules:
          - {source_agent: A, target_agent: B, handoff_type: condition,
             condition: '${level} == 2'}
          - {source_agent: A, target_agent: C, handoff_type: condition,
             condition_type: string_llm, condition: level is 5}
          - {source_agent: A, target_agent: B, handoff_type: condition,
             condition: '${level} == 3'}
        """,
}
CHATTER = {"A": ["Hm.", "Hm.", "Hm."], "B": ["Yes.", "Yes."], "C": ["No.", "No."]}


def pattern(name: str) -> dict[str, str]:
    """The choice, left to a pattern when no rule fires."""
    setup = {"initial_agent": "A", "max_turns": 3, "orchestration_pattern": name}
    return CHOICE | {"orchestrator.yaml": msgspec.json.encode(setup).decode()}
