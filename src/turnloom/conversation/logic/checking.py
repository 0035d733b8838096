"""Check the documents of a workflow folder and build the conversation."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from turnloom.agents.logic.outputs.checking import check_outputs
from turnloom.agents.spec import (
    DIGEST,
    SELECTOR,
    USER,
    Agent,
    Outputs,
    Script,
    ScriptLine,
    Toolkit,
)
from turnloom.conversation.logic.dataflow import check_flow
from turnloom.conversation.logic.migrating import todays_folder
from turnloom.conversation.logic.reach import (
    check_ends,
    check_no_questions,
    check_reach,
    reached,
)
from turnloom.conversation.logic.rosters import read_agents, roster
from turnloom.conversation.logic.routing import TRANSFER, names_in
from turnloom.conversation.logic.rules import check_rules
from turnloom.conversation.logic.schemas import SCHEMAS
from turnloom.conversation.logic.scope import OLDER, Scope
from turnloom.conversation.logic.sources import check_contexts, read_in
from turnloom.conversation.logic.tooling import (
    Tooling,
    check_hooks,
    check_message_hooks,
    check_toolkit,
    read_tooling,
)
from turnloom.conversation.spec import (
    FOREIGN_VERSION,
    Conversation,
    HandoffRule,
    Orchestrator,
    UiConfig,
)
from turnloom.errors import Diagnostic
from turnloom.guards.logic import budgets as checking
from turnloom.guards.spec import Guards, Selection
from turnloom.kernel.digests import fingerprint
from turnloom.kernel.documents import DeclarationFile, Folder, Path
from turnloom.kernel.models import DocumentEntry, Report
from turnloom.kernel.values import as_object, nearest
from turnloom.variables.events import ContextSuppressed
from turnloom.variables.logic.checking import NAMELESS, KnownNames, check_variables
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.logic.exposure import names_of
from turnloom.variables.spec import BAKED_IN, BASE, FromEnvironment, Variables


def check_guards(scope: Scope, orchestrator: Orchestrator, agents: Mapping[str, Agent]) -> None:
    """Report problems of guards: undeclared names, and settings that cannot work."""
    document = scope.document("orchestrator")
    path = (*scope.report.part(document, "orchestrator").path, "guards")
    models = {name: agent.model or orchestrator.model for name, agent in agents.items()}
    checking.check_guards(scope.report, document, path, orchestrator.guards, models=models)
    _check_escalation(scope, orchestrator, path)
    _check_selection(scope, orchestrator)


def _check_escalation(scope: Scope, orchestrator: Orchestrator, path: Path) -> None:
    detection = orchestrator.guards.loop_detection
    if detection is None or orchestrator.startup_mode != "BackendOnly":
        return
    document = scope.document("orchestrator")
    for place in checking.escalations(detection):
        scope.report.add(
            document,
            (*path, "loop_detection", *place),
            "W033",
            f"BackendOnly runs have no user, but `{'.'.join(place)}: escalate` asks one.",
            remedy=f"Set `{'.'.join(place)}` to another strategy, as `stop`.",
        )


def _check_selection(scope: Scope, orchestrator: Orchestrator) -> None:
    selection = orchestrator.guards.selection
    if selection is None:
        return
    document = scope.document("orchestrator")
    root = (*scope.report.part(document, "orchestrator").path, "guards", "selection")
    for number, name in enumerate(selection.candidates):
        where = (*root, "candidates", number)
        scope.check_agent(document, where, name, "is a candidate")
    for path, name in _variables(selection):
        _check_variable(scope, document, (*root, *path), name)


def declared_guards(folder: Folder, broken: frozenset[str]) -> Guards:
    """The valid guards of a folder, even if it has problems elsewhere."""
    scope = Scope(Report(folder.name), folder, broken)
    orchestrator = scope.orchestrator()
    return orchestrator.guards if orchestrator else Guards()


def _variables(selection: Selection) -> Iterator[tuple[Path, str]]:
    if selection.about.variable is not None:
        yield ("category", "variable"), selection.about.variable
    if selection.exclude_variable is not None:
        yield ("exclude_variable",), selection.exclude_variable


def _check_variable(scope: Scope, document: DeclarationFile, path: Path, name: str) -> None:
    known = [*scope.variable_names, *BASE, *BAKED_IN]
    if name in known or not scope.variables_known:
        return
    hint = nearest(name, known)
    remedy = f"Did you mean {hint!r}?" if hint else "Add it under `definitions`."
    message = f"The selection reads variable {name!r}, which is not declared."
    scope.report.add(document, path, "W021", message, remedy=remedy)


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
    """The conversation that a folder declares, and all problems.

    `broken` names the parts that could not be read: consequences of that are not reported. The
    same holds for context variables that are set aside, which count as empty.
    """
    if not folder.documents and not broken.intersection(PARTS):
        return None, []  # the folder is empty, which its reader has reported
    report = Report(folder.name)
    folder = _in_todays_shape(report, _unversioned(report, folder), set_aside)
    scope = Scope(report, folder, broken | set_aside)
    orchestrator = scope.orchestrator()
    agents = read_agents(scope)
    agent_names = scope.agent_names if scope.agents_known else frozenset[str]()
    tooling = read_tooling(scope)
    outputs = _outputs(scope, agents)
    known = KnownNames(agent_names, tooling.asking if tooling.complete else None)
    ignored = "context_variables" in set_aside
    declared = None if ignored else folder.documents.get("context_variables")
    variables = check_variables(report, declared, known)
    scope.know(variables)
    check_contexts(scope, agents)
    toolkit = check_toolkit(scope, tooling, agents, outputs)
    rules = check_rules(scope, scope.document("handoffs"))
    _name_unnamed(scope, rules)
    hooks = check_hooks(scope, tooling)
    message_hooks = tuple(hook for _, hook in check_message_hooks(scope))
    visible = _visible(scope, orchestrator)
    script = _script(scope, tooling, toolkit)
    if orchestrator is not None:
        _check_start(scope, orchestrator)
        check_guards(scope, orchestrator, agents)
        if orchestrator.startup_mode == "BackendOnly":
            check_no_questions(scope, rules)
        check_reach(scope, orchestrator, rules)
        check_flow(scope, orchestrator, rules, agents)
        check_ends(scope, orchestrator, agents, rules)
    else:
        _check_first(scope)
    if orchestrator is None or broken or _errors(report):
        return None, sorted(report.problems)
    conversation = Conversation(
        orchestrator.workflow_name or folder.name,
        orchestrator.version,
        definition_digest(folder.documents),
        orchestrator,
        agents=agents,
        variables=variables.variables,
        triggers=Triggers(variables.variables.definitions, toolkit.aliases),
        rules=rules,
        script=script,
        toolkit=toolkit,
        outputs={agent: outputs.models[name] for agent, name in outputs.registry.items()},
        hooks=hooks,
        message_hooks=message_hooks,
        visible=visible,
    )
    return conversation, sorted(report.problems)


def _unversioned(report: Report, folder: Folder) -> Folder:
    """The folder without the versions of its formats, which are reported."""
    kept = dict(folder.documents)
    for part, document in folder.documents.items():
        entry = DocumentEntry((), document.value)
        own = report.foreign(document, entry, FOREIGN_VERSION)
        if own is not entry:
            kept[part] = replace(document, value=own.value)
    return replace(folder, documents=kept)


def _in_todays_shape(report: Report, folder: Folder, set_aside: frozenset[str]) -> Folder:
    """The folder as a migration will write it; each file that it changes is reported once."""
    todays = todays_folder(folder)
    for part, each in todays.pending.items():
        if each.shape is not None and part not in set_aside:
            message = f"An older format of this file is used: {each.shape.said}."
            remedy = "Rewrite the folder with `turnloom migrate`."
            report.add(folder.documents[part], each.shape.path, OLDER, message, remedy=remedy)
    return todays.folder


def _name_unnamed(scope: Scope, rules: Mapping[str, tuple[HandoffRule, ...]]) -> None:
    """Say which names may be those of variables without one: used, but not declared."""
    report, file = scope.report, scope.document(OPTIONAL).file
    shown = {name for each in scope.variables.exposures.values() for name in names_of(each)}
    own = [rule for found in rules.values() for rule in found]
    compared = {term.name for rule in own if rule.condition for term in rule.condition.terms}
    written = {name for rule in own if rule.llm for name in names_in(rule.said)}
    used = {*shown, *compared, *written} - {*scope.variable_names, *BASE, *BAKED_IN}
    if scope.variables_known or not used:
        return
    remedy = f"Give it one. Used, but not declared: {', '.join(map(repr, sorted(used)))}."
    report.problems = [
        replace(each, remedy=remedy) if each.file == file and each.message == NAMELESS else each
        for each in report.problems
    ]


def definition_digest(documents: Mapping[str, DeclarationFile]) -> str:
    """One digest for all declarative files of a workflow."""
    return fingerprint(*(f"{key} {fingerprint(documents[key].text)}" for key in sorted(documents)))


def _errors(report: Report) -> bool:
    return any(problem.severity == "error" for problem in report.problems)


def _outputs(scope: Scope, agents: Mapping[str, Agent]) -> Outputs:
    """The output models, and the agents that answer with them."""
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
            message = f"Agent {agent.name!r} answers with {name!r}, which is not a declared model."
            scope.report.add(where, (*path, "structured_outputs"), "W039", message, remedy=remedy)
        elif name is not None and registry.setdefault(agent.name, name) != name:
            message = f"The registry gives {agent.name!r} another model, {registry[agent.name]!r}."
            scope.report.add(
                where, (*path, "structured_outputs"), "W039", message, remedy="Keep one."
            )
    return replace(outputs, registry=registry)


def _visible(scope: Scope, orchestrator: Orchestrator | None) -> frozenset[str] | None:
    """The agents whose messages the user sees; None for all."""
    document, start = scope.document("ui_config"), scope.document("orchestrator")
    keys = [*UiConfig.model_fields]
    others = {key for key in as_object(document.value) or () if nearest(str(key), keys) is None}
    entry = DocumentEntry((), document.value or {})
    entry = scope.report.foreign(document, entry, others - {*keys})
    config = scope.report.model(document, entry, UiConfig)
    shown = config.visual_agents if config else None
    listed = orchestrator.visual_agents if orchestrator else None
    where = (*scope.report.part(start, "orchestrator").path, "visual_agents")
    for path, names, file in (((), shown, document), (where[:-1], listed, start)):
        for number, name in enumerate(names or ()):
            if name != USER:
                at = (*path, "visual_agents", number)
                scope.check_agent(file, at, name, "is shown to the user")
    if shown is not None and listed is not None and {*shown} != {*listed}:
        message = f"{document.file!r} has other `visual_agents`."
        scope.report.add(start, where, "W013", message, remedy="Keep one of the two lists.")
    names = shown if listed is None else listed
    return None if names is None else frozenset(names)


def _script(scope: Scope, tooling: Tooling, toolkit: Toolkit) -> Script:
    document = scope.document("script")
    script = scope.report.model(document, DocumentEntry((), document.value), Script) or Script()
    for name, lines in script.agents.items():
        if name == SELECTOR:
            continue
        scope.check_agent(document, ("agents", name), name, "has lines in the script")
        if tooling.complete and not toolkit.servers:
            _check_calls(scope, document, name, lines, toolkit=toolkit)
    for name in script.functions:
        scope.check_agent(document, ("functions", name), name, "has a function in the script")
        if name in script.agents:
            message = f"The script has both lines and a function for {name!r}."
            scope.report.add(document, ("functions", name), "W013", message, remedy="Keep one.")
    for number, name in enumerate(script.repeats):
        if not script.agents.get(name):
            message = f"The script repeats the last line of {name!r}, but has no lines for it."
            remedy = f"Add lines under `agents`, or drop {name!r} from `repeats`."
            scope.report.add(document, ("repeats", number), "W011", message, remedy=remedy)
    return script


def _check_calls(
    scope: Scope,
    document: DeclarationFile,
    agent: str,
    lines: Sequence[ScriptLine],
    toolkit: Toolkit,
) -> None:
    """Report calls of tools that the agent does not have; handoffs are tools with a prefix."""
    known = [*toolkit.bound.get(agent, ()), DIGEST]
    for number, line in enumerate(lines):
        for place, call in enumerate(line.calls):
            if call.tool in known or call.tool.startswith(TRANSFER):
                continue
            where = ("agents", agent, number, "calls", place, "tool")
            hint = nearest(call.tool, known)
            remedy = f"Did you mean {hint!r}?" if hint else f"Declared: {', '.join(known)}."
            message = f"In the script, {agent!r} calls {call.tool!r}, a tool that it does not have."
            scope.report.warn(document, where, "W067", message, remedy=remedy)


def _check_first(scope: Scope) -> None:
    """Check the first agent of an orchestrator that cannot be read as a whole."""
    document = scope.document("orchestrator")
    entry = scope.report.part(document, "orchestrator")
    initial = (as_object(entry.value) or {}).get("initial_agent")
    if isinstance(initial, str):
        where = (*entry.path, "initial_agent")
        scope.check_agent(document, where, initial, "starts the conversation")


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
            "BackendOnly runs have no user, but ManualPattern asks one who speaks next.",
            remedy="Choose another pattern.",
        )
    if orchestrator.startup_mode == "BackendOnly" and orchestrator.human_in_the_loop:
        scope.report.add(
            document,
            (*root, "human_in_the_loop"),
            "W033",
            "BackendOnly runs have no user, but human_in_the_loop asks one.",
            remedy="Drop one of the two.",
        )
    if orchestrator.initial_message_to_user and orchestrator.startup_mode != "UserDriven":
        scope.report.warn(
            document,
            (*root, "initial_message_to_user"),
            "W034",
            f"initial_message_to_user opens a UserDriven run; this one is "
            f"{orchestrator.startup_mode}.",
            remedy="Set `startup_mode: UserDriven`, or drop it.",
        )


def _is_manual(orchestrator: Orchestrator) -> bool:
    return orchestrator.orchestration_pattern == "ManualPattern"


# The part that a workflow can start without.
OPTIONAL = "context_variables"

_FILES = tuple(f"/{OPTIONAL}{suffix}" for suffix in (".json", ".yaml", ".yml"))


def unreadable(problems: Iterable[Diagnostic]) -> frozenset[str]:
    """The parts whose files could not be read."""
    files = [problem.file for problem in problems if problem.severity == "error"]
    return frozenset(file.rpartition("/")[2].rpartition(".")[0] or file for file in files)


def is_about(problem: Diagnostic) -> bool:
    """Whether a problem is about the context variables."""
    return problem.file.endswith(_FILES)


def is_invalid(problems: Iterable[Diagnostic]) -> bool:
    """Whether the context variables have errors."""
    return any(each.severity == "error" and is_about(each) for each in problems)


def suppressed(conversation: Conversation) -> tuple[ContextSuppressed, ...]:
    """The variables that conditions and sources name but that have no value, with the reason."""
    named = dict.fromkeys(_names(conversation))
    names = tuple(name for name in named if name not in BAKED_IN and name not in BASE)
    reason = "the context variables are invalid, and strict is off"
    return (ContextSuppressed(names, reason),) if names else ()


def _names(conversation: Conversation) -> Iterator[str]:
    """The variables that handoffs and hooks depend on, and that sources read."""
    rules = [rule for found in conversation.rules.values() for rule in found]
    hooks = [hook for found in conversation.hooks.values() for hook in found]
    for condition in (*(rule.condition for rule in rules), *(hook.when for hook in hooks)):
        yield from (term.name for term in condition.terms) if condition else ()
    yield from (name for rule in rules if rule.llm for name in names_in(rule.said))
    choices = [choice for agent in conversation.agents.values() for choice in agent.context]
    yield from (name for choice in choices for _, name in read_in(choice))


def check_production(folder: Folder, conversation: Conversation) -> list[Diagnostic]:
    """A warning for each rule that never fires in production, and each agent unreachable there."""
    report = Report(folder.name)
    absent = frozenset(_absent(conversation.variables))
    left: dict[str, tuple[HandoffRule, ...]] = {}
    for source, rules in conversation.rules.items():
        left[source] = tuple(rule for rule in rules if not _missed(rule, absent))
        for rule in rules:
            if missed := _missed(rule, absent):
                _warn_rule(report, folder, source, rule, missed=missed)
    _warn_agents(report, folder, conversation, left)
    return sorted(report.problems)


def _absent(variables: Variables) -> Iterator[str]:
    """The names that have no value in production."""
    declared = variables.definitions
    yield from (name for name in BAKED_IN if name not in declared)
    for name, definition in declared.items():
        if isinstance(definition.source, FromEnvironment):
            yield name


def _missed(rule: HandoffRule, absent: frozenset[str]) -> list[str]:
    """The names in the condition of a rule that have no value."""
    terms = rule.condition.terms if rule.condition else ()
    return list(dict.fromkeys(term.name for term in terms if term.name in absent))


def _warn_rule(
    report: Report, folder: Folder, source: str, rule: HandoffRule, missed: list[str]
) -> None:
    document = folder.documents["handoffs"]
    names = " and ".join(map(repr, missed))
    verb = "is" if len(missed) == 1 else "are"
    report.warn(
        document,
        (*report.part(document, "handoff_rules").path, rule.number - 1, "condition"),
        "W070",
        f"Rule {rule.number}, from {source!r} to {rule.target!r}, never fires in production: "
        f"{names} {verb} read from the environment, which is absent there.",
        remedy="Use a derived variable, or add a rule that does not need it.",
    )


def _warn_agents(
    report: Report,
    folder: Folder,
    conversation: Conversation,
    left: Mapping[str, tuple[HandoffRule, ...]],
) -> None:
    """Report agents that are unreachable by the remaining rules."""
    agents, setup = conversation.agents, conversation.orchestrator
    lost = reached(agents, setup, conversation.rules) - reached(agents, setup, left)
    document = folder.documents["agents"]
    declared = report.named(document, report.part(document, "agents"), "Agent").entries
    for name in sorted(lost & agents.keys()):
        report.warn(
            document,
            declared[name].path,
            "W030",
            f"In production, no handoff leads to agent {name!r}.",
            remedy="Add a handoff to it that needs no environment variable.",
        )


def deciding(folder: Folder, broken: frozenset[str]) -> Conversation | None:
    """The conversation with its pattern, rules and hooks, but without variables and tools.

    A run may be pinned to declarations that are invalid in this process: for example, the kind of a
    trigger may be registered in another process only. Routing needs none of that.
    """
    scope = Scope(Report(folder.name), folder, broken)
    orchestrator = scope.orchestrator()
    if orchestrator is None:
        return None
    return Conversation(
        orchestrator.workflow_name or folder.name,
        orchestrator.version,
        definition_digest(folder.documents),
        orchestrator,
        agents=roster(folder, broken).agents,
        variables=Variables(),
        triggers=Triggers({}),
        rules=check_rules(scope, scope.document("handoffs")),
        script=Script(),
        toolkit=Toolkit(),
        outputs={},
        hooks=check_hooks(scope, read_tooling(scope)),
    )
