"""Real folders from outside are refused with exactly the problems that they have here.

The texts are excerpts of two workflows of the public repository BlocUnited-LLC/mozaiks
(MIT licence, copyright 2026 BlocUnited LLC).
"""

from tests.conversation.talks import examine

HELLO_WORLD = {
    "orchestrator.yaml": """
        workflow_name: HelloWorld
        entry_point: true
        max_turns: 10
        human_in_the_loop: true
        startup_mode: AgentDriven
        orchestration_pattern: DefaultPattern
        initial_message_to_user: null
        initial_message: "InterviewAgent, greet the user and ask for their name."
        initial_agent: InterviewAgent
        """,
    "agents.yaml": """
        agents:
        - name: InterviewAgent
          prompt_sections:
          - id: role
            heading: '[ROLE]'
            content: You are a friendly greeter.
          - id: objective
            heading: '[OBJECTIVE]'
            content: |-
              - Greet the user warmly when the workflow starts.
              - Ask for their name if it was not already provided.
          max_consecutive_auto_reply: 20
          auto_tool_mode: false
          structured_outputs_required: true""",
    "context_variables.yaml": """
        definitions:
        - name: user_name
          type: string
          description: The name provided by the user during the greeting conversation.
          source:
            type: runtime
            default: null

        - name: greeting_complete
          type: boolean
          description: Set to true once the greet tool has been called successfully.
          source:
            type: runtime
            default: false
        """,
    "handoffs.yaml": """
        handoff_rules:
        - source_agent: user
          target_agent: InterviewAgent
          handoff_type: condition
          condition_type: expression
          condition_scope: null
          condition: ${greeting_complete} == False
          transition_target: AgentTarget

        - source_agent: InterviewAgent
          target_agent: user
          handoff_type: after_work
          condition_type: null
          condition_scope: null
          condition: null
          transition_target: RevertToUserTarget
        """,
    "tools.yaml": """
        tools:
        - agent: GreeterAgent
          file: greet.py
          function: greet
          tool_type: UI_Tool
          auto_invoke: true
        lifecycle_tools: []
        """,
    "structured_outputs.yaml": """
        structured_outputs:
          models: {}

        registry:
          InterviewAgent: null""",
    "hooks.yaml": "hooks: []",
    "ui_config.yaml": """
        visual_agents:
        - InterviewAgent
        - user
        """,
}

SUBSCRIPTION_MANAGER = {
    "orchestrator.yaml": """
        max_turns: 8
        startup_mode: AgentDriven
        orchestration_pattern: AutoPattern
        human_in_the_loop: false
        initial_agent: SubscriptionAssistant
        """,
    "agents.yaml": """
        agents:
          SubscriptionAssistant:
            system_message: |
              [ROLE]
              You are a subscription support assistant for a self-hosted Mozaiks Core runtime.
            max_consecutive_auto_reply: 4
            auto_tool_mode: false
        """,
    "tools.yaml": """
        tools:
          - agent: SubscriptionAssistant
            file: subscriptions.py
            function: get_subscription
            tool_type: Agent_Tool
        """,
}


def told(files: dict[str, str]) -> list[str]:
    return [
        f"{problem.file}:{problem.line} {problem.code} {problem.message}"
        for problem in examine(files)[1]
    ]


def test_hello_world_has_a_source_that_never_was_and_a_tool_of_nobody() -> None:
    older, tool = examine(HELLO_WORLD)[1]
    assert (older.file, older.line, older.code) == ("Flow/context_variables.yaml", 6, "W014")
    assert "'runtime'" in older.message and "turnloom migrate" in older.remedy
    assert (tool.file, tool.line, tool.code) == ("Flow/tools.yaml", 2, "W020")
    assert "'GreeterAgent'" in tool.message


def test_the_subscription_manager_is_right_but_for_its_missing_code() -> None:
    assert told(SUBSCRIPTION_MANAGER) == []


def test_hello_world_without_what_is_wrong_is_right() -> None:
    mended = {file: HELLO_WORLD[file] for file in ("orchestrator.yaml", "handoffs.yaml")}
    mended["orchestrator.yaml"] = mended["orchestrator.yaml"].replace("entry_point: true\n", "\n")
    mended["agents.yaml"] = HELLO_WORLD["agents.yaml"].split("  max_consecutive")[0]
    mended["context_variables.yaml"] = HELLO_WORLD["context_variables.yaml"].replace(
        "type: runtime", "type: derived"
    )
    conversation, (unused,) = examine(mended)
    assert "'user_name'" in unused.message, "its tool is not here"
    assert conversation is not None
    assert conversation.agents["InterviewAgent"].instructions == (
        "[ROLE]\nYou are a friendly greeter.\n\n"
        "[OBJECTIVE]\n- Greet the user warmly when the workflow starts.\n"
        "- Ask for their name if it was not already provided."
    )
