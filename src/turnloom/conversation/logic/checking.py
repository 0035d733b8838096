"""From the documents of a workflow folder to a checked conversation, or to all their problems."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from turnloom.agents.logic.outputs.checking import check_outputs
from turnloom.agents.spec import (
    DIGEST,
    SELECTOR,
    USER,
    Agent,
    Line,
    Outputs,
    Script,
    Toolkit,
)
from turnloom.conversation.logic.contexts import check_contexts
from turnloom.conversation.logic.dataflow import check_flow
from turnloom.conversation.logic.ends import check_ends
from turnloom.conversation.logic.guarding import check_guards
from turnloom.conversation.logic.reach import check_nobody_is_asked, check_reach
from turnloom.conversation.logic.rosters import read_agents
from turnloom.conversation.logic.rules import check_rules
from turnloom.conversation.logic.schemas import SCHEMAS
from turnloom.conversation.logic.scope import Scope
from turnloom.conversation.logic.tooling import (
    Tooling,
    check_hooks,
    check_message_hooks,
    check_toolkit,
    read_tooling,
)
from turnloom.conversation.logic.transfers import TRANSFER
from turnloom.conversation.spec import Conversation, Orchestrator, UiConfig
from turnloom.errors import Diagnostic
from turnloom.kernel.digests import fingerprint
from turnloom.kernel.documents import Document, Folder
from turnloom.kernel.models import Entry, Report
from turnloom.kernel.values import nearest
from turnloom.variables.logic.checking import Known, check_variables
from turnloom.variables.logic.derivation import Triggers

PARTS = (
    "orchestrator",
    "agents",
    "context_variables",
    "handoffs",
    "tools",
    "structured_outputs",
    "hooks",
    "ui_config",
    "script",
)


def check(
    folder: Folder, broken: frozenset[str], set_aside: frozenset[str] = frozenset()
) -> tuple[Conversation | None, list[Diagnostic]]:
    """The conversation that a folder declares, and all that is wrong with it.

    `broken` names the parts that could not be read: nothing that would follow from that is said.
    Nor is it of context variables that are set aside, which count as empty.
    """
    if not folder.documents and not broken.intersection(PARTS):
        return None, []  # nothing is there, and whoever looked has said so
    report = Report(folder.name)
    scope = Scope(report, folder, broken | set_aside)
    orchestrator = _orchestrator(scope)
    agents = read_agents(scope)
    agent_names = scope.agent_names if scope.agents_known else frozenset[str]()
    tooling = read_tooling(scope)
    outputs = _outputs(scope, agents)
    known = Known(agent_names, tooling.words if tooling.complete else None)
    ignored = "context_variables" in set_aside
    declared = None if ignored else folder.documents.get("context_variables")
    variables = check_variables(report, declared, known)
    scope.know(variables)
    check_contexts(scope, agents)
    toolkit = check_toolkit(scope, tooling, agents, outputs)
    rules = check_rules(scope, scope.document("handoffs"))
    hooks = check_hooks(scope, tooling)
    message_hooks = tuple(hook for _, hook in check_message_hooks(scope))
    visible = _visible(scope)
    script = _script(scope, tooling, toolkit)
    if orchestrator is not None:
        _check_start(scope, orchestrator)
        check_guards(scope, orchestrator, agents)
        if orchestrator.startup_mode == "BackendOnly":
            check_nobody_is_asked(scope, rules)
        check_reach(scope, orchestrator, rules)
        check_flow(scope, orchestrator, rules, agents)
        check_ends(scope, orchestrator, agents, rules)
    if orchestrator is None or broken or _errors(report):
        return None, sorted(report.problems)
    conversation = Conversation(
        orchestrator.workflow_name or folder.name,
        orchestrator.version,
        definition_digest(folder.documents),
        orchestrator,
        agents,
        variables.variables,
        Triggers(variables.variables.definitions, toolkit.aliases),
        rules,
        script,
        toolkit,
        {agent: outputs.models[name] for agent, name in outputs.registry.items()},
        hooks,
        message_hooks,
        visible,
    )
    return conversation, sorted(report.problems)


def definition_digest(documents: Mapping[str, Document]) -> str:
    """One digest for all declarative files of a workflow."""
    return fingerprint(*(f"{key} {fingerprint(documents[key].text)}" for key in sorted(documents)))


def _errors(report: Report) -> bool:
    return any(problem.severity == "error" for problem in report.problems)


def _orchestrator(scope: Scope) -> Orchestrator | None:
    document = scope.document("orchestrator")
    return scope.report.model(document, scope.report.part(document, "orchestrator"), Orchestrator)


def _outputs(scope: Scope, agents: Mapping[str, Agent]) -> Outputs:
    """The forms of outputs, and which agent answers in which."""
    document = scope.folder.documents.get("structured_outputs")
    known = scope.agent_names if scope.agents_known else None
    outputs = check_outputs(scope.report, document, known, SCHEMAS)
    registry = dict(outputs.registry)
    for agent in agents.values():
        where, path = scope.places[agent.name]
        name = agent.structured_outputs
        if name is not None and name not in outputs.models and outputs.complete:
            hint = nearest(name, list(outputs.models))
            remedy = f"Did you mean {hint!r}?" if hint else "Declare it in `structured_outputs`."
            message = f"Agent {agent.name!r} answers with {name!r}, which is no declared model."
            scope.report.add(where, (*path, "structured_outputs"), "W039", message, remedy)
        elif name is not None and registry.setdefault(agent.name, name) != name:
            message = f"The registry lets {agent.name!r} answer with {registry[agent.name]!r}."
            scope.report.add(where, (*path, "structured_outputs"), "W039", message, "Keep one.")
    return replace(outputs, registry=registry)


def _visible(scope: Scope) -> frozenset[str] | None:
    """The agents whose messages the user sees; nothing when it is everybody's."""
    document = scope.document("ui_config")
    config = scope.report.model(document, Entry((), document.value or {}), UiConfig)
    if config is None or "visual_agents" not in config.model_fields_set:
        return None
    for number, name in enumerate(config.visual_agents):
        where = ("visual_agents", number)
        if name != USER:
            scope.check_agent(document, where, name, "is shown to the user")
    return frozenset(config.visual_agents)


def _script(scope: Scope, tooling: Tooling, toolkit: Toolkit) -> Script:
    document = scope.document("script")
    script = scope.report.model(document, Entry((), document.value), Script) or Script()
    for name, lines in script.agents.items():
        if name == SELECTOR:
            continue
        scope.check_agent(document, ("agents", name), name, "has lines in the script")
        if tooling.complete and not toolkit.servers:
            _check_calls(scope, document, name, lines, toolkit)
    for name in script.functions:
        scope.check_agent(document, ("functions", name), name, "has a function in the script")
        if name in script.agents:
            message = f"The script has both lines and a function for {name!r}."
            scope.report.add(document, ("functions", name), "W013", message, "Keep one.")
    for number, name in enumerate(script.repeats):
        if not script.agents.get(name):
            message = f"The script repeats the last line of {name!r}, and has no lines for it."
            remedy = f"Add lines under `agents`, or drop {name!r} from `repeats`."
            scope.report.add(document, ("repeats", number), "W011", message, remedy)
    return script


def _check_calls(
    scope: Scope, document: Document, agent: str, lines: Sequence[Line], toolkit: Toolkit
) -> None:
    """Note calls of tools that the agent does not have; handoffs are offered under a prefix."""
    known = [*toolkit.bound.get(agent, ()), DIGEST]
    for number, line in enumerate(lines):
        for place, call in enumerate(line.calls):
            if call.tool in known or call.tool.startswith(TRANSFER):
                continue
            where = ("agents", agent, number, "calls", place, "tool")
            hint = nearest(call.tool, known)
            remedy = f"Did you mean {hint!r}?" if hint else f"Declared: {', '.join(known)}."
            message = f"The script lets {agent!r} call {call.tool!r}, a tool that it does not have."
            scope.report.warn(document, where, "W067", message, remedy)


def _check_start(scope: Scope, orchestrator: Orchestrator) -> None:
    document = scope.document("orchestrator")
    root, initial = scope.report.part(document, "orchestrator").path, orchestrator.initial_agent
    if initial is not None:
        scope.check_agent(document, (*root, "initial_agent"), initial, "starts the conversation")
    if orchestrator.startup_mode == "BackendOnly" and _is_manual(orchestrator):
        scope.report.add(
            document,
            (*root, "orchestration_pattern"),
            "W033",
            "BackendOnly runs without people, and ManualPattern asks them who speaks.",
            "Choose another pattern.",
        )
    if orchestrator.startup_mode == "BackendOnly" and orchestrator.human_in_the_loop:
        scope.report.add(
            document,
            (*root, "human_in_the_loop"),
            "W033",
            "BackendOnly runs without people, and human_in_the_loop asks them.",
            "Drop one of the two.",
        )
    if orchestrator.initial_message_to_user and orchestrator.startup_mode != "UserDriven":
        scope.report.add(
            document,
            (*root, "initial_message_to_user"),
            "W034",
            f"initial_message_to_user opens a UserDriven run; this one is "
            f"{orchestrator.startup_mode}.",
            "Set `startup_mode: UserDriven`, or drop it.",
        )


def _is_manual(orchestrator: Orchestrator) -> bool:
    return orchestrator.orchestration_pattern == "ManualPattern"
