"""Flows as definitions of runs: their plan, and the code behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from os.path import abspath
from pathlib import Path as FilePath
from typing import Any, cast

from anyio import to_thread

from turnloom.agents.logic.outputs.models import ProgramModel
from turnloom.agents.spec import Agent, Engine, OutputModel
from turnloom.assembly.spec.means import ReaderSearch, no_search
from turnloom.board.spec import TypeRegistry
from turnloom.errors import (
    DefinitionError,
    Diagnostic,
    PlanChanged,
    UnknownFlow,
    UsageError,
)
from turnloom.flow.logic.flowing import FlowForm, FlowParts
from turnloom.flow.logic.flows import Flow, gathering
from turnloom.flow.logic.migrating import SalvageForm, differs_in_state, undoable_in
from turnloom.flow.logic.plans import (
    assembly_of,
    code_digests,
    decide_alike,
    plan_diff,
    planned_reducers,
    steps_of,
)
from turnloom.flow.spec.nodes import FlowPlan, StepNode
from turnloom.flow.spec.steps import AgentStep, agent_of
from turnloom.kernel.threads import LOADING, threads
from turnloom.kernel.values import preview, writable
from turnloom.log.events import RunStarted
from turnloom.runs.declared import read_code_hooks, read_guards, read_variables, toolkit_of
from turnloom.runtime.flow import FlowRuntime, migrate_states
from turnloom.runtime.spec import AgentRuntime, LoadedWorkflow
from turnloom.variables.logic.derivation import Triggers
from turnloom.wiring.adapters import adapter
from turnloom.wiring.code import callee_of, warn_of
from turnloom.wiring.collections import comparing, counter_for
from turnloom.wiring.doors import Capabilities
from turnloom.wiring.models import (
    ASKING,
    ModelEngines,
    NoEngine,
    UnaskedModels,
    own_contexts,
)

# What the root of a run says that belongs to a flow: the file in which it was built, for people to
# know; or the file that was named as the entry by which other programs find it.
ROOT, ENTRY = "flow:", "entry:"


class Flows:
    """The flows of an app; `engine` answers for steps that are given none, and `search` finds what
    their sources look for; `models` asks models by name, and `types` are those of artifacts that
    the app knows; `can` is what the store can do."""

    def __init__(
        self,
        engine: Engine | None,
        search: ReaderSearch = no_search,
        models: ModelEngines | None = None,
        types: TypeRegistry | None = None,
        can: Capabilities | None = None,
    ) -> None:
        self._can = can or Capabilities()
        self._engine = engine
        self._types = types or TypeRegistry()
        self._models = models or ModelEngines()
        self._search = search
        self._known: dict[tuple[str, str], LoadedWorkflow] = {}
        self._built: dict[tuple[str, str], Flow[Any]] = {}

    def declare(self, flow: Flow[Any], entry: str = "") -> LoadedWorkflow:
        """Know a flow, and give it as runs are pinned to it; of two with one plan, which may have
        other code behind it, the one declared last is known. `entry` is a file that other programs
        may import to continue its runs.

        Raises:
            DefinitionError: it does not pass its check.
            UsageError: it is no flow.
        """
        if not isinstance(cast(object, flow), Flow):
            raise UsageError(f"{preview(flow)} is no flow. Build one: `Flow(name, State)`.")
        plan = flow.plan
        key = (plan.name, plan.digest)
        if self._built.get(key) is not flow or entry:
            root = f"{ENTRY}{abspath(entry)}" if entry else f"{ROOT}{flow.site.file}"
            self._known[key] = self._make(flow, plan, root)
            self._built[key] = flow
            warn_of(flow.name, self._known[key].warnings)
        return self._known[key]

    async def restore(self, started: RunStarted, text: str) -> LoadedWorkflow:
        """The flow as a run began with it, whose plan has this text.

        No program is executed to look for a flow: it is one that was declared here, or one of the
        file that was named as the run's entry.

        Raises:
            UnknownFlow: neither this program nor the run's entry has the flow.
            PlanChanged: they have it differently.
        """
        key = (started.workflow, started.definition)
        if key not in self._known and started.root.startswith(ENTRY):
            await to_thread.run_sync(self._read, started, limiter=threads(LOADING))
        if key in self._known:
            return _with_changes(self._known[key], started.code)
        others = [loaded for (name, _), loaded in self._known.items() if name == started.workflow]
        if not others:
            built = started.root.removeprefix(ROOT).removeprefix(ENTRY)
            raise UnknownFlow(
                f"This run belongs to flow {started.workflow!r}, built in {built!r} and "
                "not registered here. Continue the run in a program that builds the flow: "
                "`app.register_flow(flow)`, then `app.resume(run)`."
            )
        for loaded in reversed(others):
            if decide_alike(text, _plan(loaded).text):
                return _with_changes(loaded, started.code)
        if differs_in_state(text, _plan(others[-1]).text):
            loaded = _with_changes(others[-1], started.code)
            return replace(loaded, migrate=partial(migrate_states, _form(loaded)))
        differs = plan_diff(text, _plan(others[-1]).text)
        raise PlanChanged(
            f"Flow {started.workflow!r} was built differently when this run began, and is not run "
            f"otherwise. Build it as it was, or cancel the run.\n{differs}".rstrip()
        )

    def salvage(self, started: RunStarted, text: str) -> LoadedWorkflow | None:
        """The flow as it is declared now, to end a run that began with another plan of this text;
        nothing if none of that name is declared."""
        others = [loaded for (name, _), loaded in self._known.items() if name == started.workflow]
        if not others:
            return None
        form = others[-1].workflow
        assert isinstance(form, FlowForm)
        return replace(
            others[-1], workflow=SalvageForm(form, undoable_in(text), planned_reducers(text))
        )

    def knows(self, started: RunStarted) -> bool:
        """Whether this program can say what became of a run's flow."""
        is_declared = any(name == started.workflow for name, _ in self._known)
        return is_declared or started.root.startswith(ENTRY)

    def _read(self, started: RunStarted) -> None:
        """Know the flow of the file that a run has as its entry, if it is there."""
        file = started.root.removeprefix(ENTRY)
        if FilePath(file).is_file():
            for flow in flows_in(file):
                if flow.name == started.workflow:
                    self.declare(flow, entry=file)

    def _make(self, flow: Flow[Any], plan: FlowPlan, root: str) -> LoadedWorkflow:
        self._can.need_for_steps(steps_of(plan.paths))
        where = f"{ROOT}{flow.name}"
        steps = _agent_steps(plan)
        given = {name: node.step.tools for name, node in steps.items()}
        toolkit, tools = toolkit_of(given, callee_of)
        agents = {name: _agent(node) for name, node in steps.items()}
        variables, functions, warnings = read_variables(where, flow.variables, agents, toolkit)
        hooks, called = read_code_hooks(where, flow.hooks, agents, callee_of)
        models = {name: agent.model for name, agent in agents.items()}
        guards = read_guards(where, flow.guards, models)
        if guards.selection is not None:
            raise DefinitionError(flow.name, [_no_selection(flow)])
        staff = self._staffed(flow.name, steps)
        around = FlowParts(
            agents,
            _outputs(steps),
            variables,
            Triggers(variables.definitions, toolkit.aliases),
            hooks=hooks,
            toolkit=toolkit,
        )
        return LoadedWorkflow(
            FlowForm(plan, around),
            staff,
            root,
            plan.digest,
            files={},
            code=code_digests(plan),
            functions=functions,
            tools=tools,
            hooks=called,
            types=self._types,
            search=self._search,
            counter=counter_for(each.context for each in staff.values()),
            runtime=FlowRuntime,
            guards=guards,
            embedder=comparing(guards),
            unheeded=self._models.unheeded(staff.values()),
            warnings=warnings,
        )

    def _staffed(self, name: str, steps: Mapping[str, StepNode]) -> dict[str, AgentRuntime]:
        """Who answers for each step.

        Raises:
            DefinitionError: nothing answers for some of them.
        """
        found: dict[str, AgentRuntime] = {}
        problems: list[Diagnostic] = []
        for step, node in steps.items():
            try:
                found[step] = self._staff(node)
            except NoEngine as error:
                problems.append(_unanswered(node, error))
        if problems:
            raise DefinitionError(name, problems)
        return found

    def unanswered(self, flow: Flow[Any]) -> list[Diagnostic]:
        """The steps that nothing answers for by the settings; not whether models can be
        reached."""
        problems: list[Diagnostic] = []
        for node in _agent_steps(flow.plan).values():
            try:
                if not agent_of(node.step).engines:
                    self._engine_of(node)
            except NoEngine as error:
                problems.append(_unanswered(node, error))
        return problems

    def _staff(self, node: StepNode) -> AgentRuntime:
        step: AgentStep[Any, Any] = node.step
        declared = agent_of(step)
        given = declared.engines or (self._engine_of(node),)
        engines = tuple(self._models.answering(each) for each in given)
        return AgentRuntime(
            engines,
            assembly_of(node) if node.context else None,
            own_contexts(engines),
            declared.components,
            samples=declared.samples,
            score=declared.score,
            most=declared.max_concurrency,
            labels=declared.labels,
            named={name: self._models.answering(each) for name, each in step.engines.items()},
        )

    def _engine_of(self, node: StepNode) -> Any:
        """What answers for a step that names no engines one after the other."""
        step: AgentStep[Any, Any] = node.step
        return step.engine or next(iter(step.engines.values()), None) or self._common(node)

    def _common(self, node: StepNode) -> Any:
        """What answers for a step that is given no engine."""
        given = self._engine or node.step.model or self._models.default
        if not given and self._models.kind in ASKING:
            raise NoEngine("No engine is named.", UNNAMED)
        return given or ""


UNNAMED = (
    "Give it one: `engine = …` or `model = …` in its class; or say it for all that lack one: "
    "`--model`, or `Loom(model=…)` or `Loom(engine=…)` in Python."
)


def _agent_steps(plan: FlowPlan) -> dict[str, StepNode]:
    """The steps that agents take, by name."""
    return {node.name: node for node in steps_of(plan.paths) if isinstance(node.step, AgentStep)}


def _unanswered(node: StepNode, error: NoEngine) -> Diagnostic:
    message = f"Nothing answers for step {node.name!r}. {error.message}"
    return Diagnostic(*node.site, "W050", message, remedy=error.remedy)


def _no_selection(flow: Flow[Any]) -> Diagnostic:
    message = "A selection among the guards of a flow has no effect: steps follow from each other."
    remedy = "Let a step choose who answers for it: `.then(…, select=Selection(…))`."
    return Diagnostic(flow.site.file, flow.site.line, "W127", message, remedy=remedy)


def _with_changes(loaded: LoadedWorkflow, begun: Mapping[str, str]) -> LoadedWorkflow:
    """A flow with the digests that its code had when a run began, and what changed since."""
    changed = [name for name, digest in begun.items() if loaded.code.get(name) != digest]
    return replace(loaded, code=begun, changed_code=tuple(changed)) if changed else loaded


def _form(loaded: LoadedWorkflow) -> FlowForm:
    assert isinstance(loaded.workflow, FlowForm)
    return loaded.workflow


def _plan(loaded: LoadedWorkflow) -> FlowPlan:
    return _form(loaded).plan


def is_code(path: str) -> bool:
    """Whether a path names a file of code, and not a folder."""
    return path.endswith(".py")


def flows_in(file: str) -> list[Flow[Any]]:
    """The flows that a file of code builds, also those that do not pass their check.

    Raises:
        DefinitionError: the file does not run.
    """
    return [*_loaded(file)]


def named_flows(file: str) -> tuple[dict[str, Flow[Any]], dict[str, Flow[Any]]]:
    """The flows that a file of code builds: by their own names, and by those of its variables.

    Raises:
        DefinitionError: the file does not run.
    """
    flows = _loaded(file)
    return (
        {flow.name: flow for flow in flows},
        {variable: flow for flow, variables in flows.items() for variable in variables},
    )


def _loaded(file: str) -> Mapping[Flow[Any], Sequence[str]]:
    flows, problems = _built(file)
    if problems:
        raise DefinitionError(FilePath(file).name, problems)
    return flows


def examine(file: str, models: ModelEngines) -> list[Diagnostic]:
    """Everything that is wrong with a file of code that builds flows, and with these."""
    flows, problems = _built(file)
    if not flows and not problems:
        message, remedy = "The file builds no flow.", "Build one: `Flow(name, State)`."
        return [Diagnostic(FilePath(file).name, 1, "W000", message, remedy=remedy)]
    return sorted({*problems, *(each for flow in flows for each in examine_flow(flow, models))})


def _built(file: str) -> tuple[Mapping[Flow[Any], Sequence[str]], Sequence[Diagnostic]]:
    """The flows of a file with the variables that hold them, as far as it runs, and why it does
    not."""
    members: dict[str, Any] = {}
    problems: Sequence[Diagnostic] = ()
    with gathering() as built:
        try:
            members = adapter("files").program(file)
        except DefinitionError as error:
            problems = error.diagnostics
    flows = {flow: list[str]() for flow in built if flow.site.file == abspath(file)}
    for name, member in members.items():
        if isinstance(member, Flow):
            flows.setdefault(cast(Flow[Any], member), []).append(name)
    return flows, problems


def examine_flow(flow: Flow[Any], models: ModelEngines) -> Sequence[Diagnostic]:
    """What is wrong with a flow, and with what it declares beside its steps; once that is right,
    whether something answers for each agent by the settings, and not whether models can be
    reached."""
    found, (file, line) = flow.check(), flow.line.site
    if any(each.severity == "error" for each in found):
        return found
    stand_in = adapter("scripted").ScriptedEngine({})
    unanswered: Sequence[Diagnostic] = ()
    try:
        beside = Flows(stand_in, models=UnaskedModels(stand_in)).declare(flow).warnings
        unanswered = Flows(None, models=models).unanswered(flow)
    except DefinitionError as error:
        beside = error.diagnostics
    except UsageError as error:
        message, _, remedy = str(error).partition(". ")
        return [*found, Diagnostic(file, line, "W126", f"{message}.", remedy=remedy)]
    located = (replace(each, file=file, line=line) for each in beside)
    return [*found, *located, *unanswered]


def _agent(node: StepNode) -> Agent:
    step: AgentStep[Any, Any] = node.step
    return Agent(
        name=node.name,
        system_message=writable(step.instructions()),
        model=step.model,
        max_tool_rounds=step.max_tool_rounds,
    )


def _outputs(steps: Mapping[str, StepNode]) -> dict[str, OutputModel]:
    declared = {name: node.step.output_type for name, node in steps.items()}
    return {name: ProgramModel(model) for name, model in declared.items() if model is not None}
