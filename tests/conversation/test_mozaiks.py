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


def test_hello_world_uses_what_this_release_does_not_have_and_a_source_that_never_was() -> None:
    unknown = "W010 Key '{}' is not known here.".format
    runtime = (
        "W012 Type 'runtime' does not exist; "
        "there is 'static', 'environment', 'database', 'derived'."
    )
    assert told(HELLO_WORLD) == [
        f"Flow/agents.yaml:12 {unknown('max_consecutive_auto_reply')}",
        f"Flow/agents.yaml:13 {unknown('auto_tool_mode')}",
        f"Flow/agents.yaml:14 {unknown('structured_outputs_required')}",
        f"Flow/context_variables.yaml:6 {runtime}",
        f"Flow/context_variables.yaml:13 {runtime}",
        f"Flow/orchestrator.yaml:2 {unknown('entry_point')}",
        "Flow/tools.yaml:1 W060 This release does nothing with 'tools'.",
        "Flow/ui_config.yaml:1 W060 This release does nothing with 'ui_config'.",
    ]


def test_the_subscription_manager_uses_a_pattern_and_tools_that_are_not_here() -> None:
    assert told(SUBSCRIPTION_MANAGER) == [
        "Flow/agents.yaml:6 W010 Key 'max_consecutive_auto_reply' is not known here.",
        "Flow/agents.yaml:7 W010 Key 'auto_tool_mode' is not known here.",
        "Flow/orchestrator.yaml:3 W012 'orchestration_pattern' is 'AutoPattern'; "
        "allowed: 'DefaultPattern'.",
        "Flow/tools.yaml:1 W060 This release does nothing with 'tools'.",
    ]


def test_hello_world_without_what_is_wrong_is_right() -> None:
    mended = {file: HELLO_WORLD[file] for file in ("orchestrator.yaml", "handoffs.yaml")}
    mended["orchestrator.yaml"] = mended["orchestrator.yaml"].replace("entry_point: true\n", "\n")
    mended["agents.yaml"] = HELLO_WORLD["agents.yaml"].split("  max_consecutive")[0]
    mended["context_variables.yaml"] = HELLO_WORLD["context_variables.yaml"].replace(
        "type: runtime", "type: derived"
    )
    conversation, (unused,) = examine(mended)
    assert unused.message.startswith("Nothing uses variable 'user_name'"), "its tool is not here"
    assert conversation is not None
    assert conversation.agents["InterviewAgent"].instructions == (
        "[ROLE]\nYou are a friendly greeter.\n\n"
        "[OBJECTIVE]\n- Greet the user warmly when the workflow starts.\n"
        "- Ask for their name if it was not already provided."
    )
