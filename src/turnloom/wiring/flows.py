"""Flows as workflows: their plans, engines and functions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from os.path import abspath
from pathlib import Path as FilePath
from typing import Any, cast

from anyio import Lock, to_thread

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
from turnloom.flow.logic.fitting import changed_nodes
from turnloom.flow.logic.flowing import FlowForm, FlowParts
from turnloom.flow.logic.flows import Flow, gathering
from turnloom.flow.logic.migrating import (
    SalvageForm,
    differs_in_state,
    earlier_form,
    undoable_in,
)
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
from turnloom.runtime.spec import AgentRuntime, LoadedWorkflow, Renewal
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

# Prefixes of `RunStarted.root` in runs of flows: the file that builds the flow, for information
# only; or the entry file, which other processes import to continue the run.
ROOT, ENTRY = "flow:", "entry:"


class Flows:
    """Flows of an app. `engine` is the default of agent steps, `search` serves their sources,
    `models` makes model engines, `types` are the artifact types of the app, and `can` describes the
    store."""

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
        self._library: FilePath | None = None
        self._reading = Lock()

    def look_in(self, library: str) -> None:
        """Find the entry files of runs in this folder, by their names, before the place where they
        were when the runs started."""
        self._library = FilePath(library)

    def declare(self, flow: Flow[Any], entry: str = "") -> LoadedWorkflow:
        """Register a flow and return it as a workflow.

        The last of several flows with the same plan replaces the others, since its code may differ.
        `entry` is a file that other processes import to continue the flow's runs.

        Raises:
            DefinitionError: the flow is invalid.
            UsageError: it is not a Flow.
        """
        if not isinstance(cast(object, flow), Flow):
            raise UsageError(
                f"Expected a Flow, got {preview(flow)}. Build one: `Flow(name, State)`."
            )
        plan = flow.plan
        key = (plan.name, plan.digest)
        if self._built.get(key) is not flow or entry:
            root = f"{ENTRY}{abspath(entry)}" if entry else f"{ROOT}{flow.site.file}"
            self._known[key] = self._make(flow, plan, root)
            self._built[key] = flow
            warn_of(flow.name, self._known[key].warnings)
        return self._known[key]

    def load(self, flow: Flow[Any]) -> LoadedWorkflow:
        """Return a flow as a workflow without registering it. Models are not contacted, and a step
        without an engine gets a placeholder.

        Raises:
            DefinitionError: the flow is invalid.
        """
        engine = self._engine or adapter("scripted").ScriptedEngine({})
        others = Flows(engine, self._search, UnaskedModels(engine), self._types, can=self._can)
        return others.declare(flow)

    async def restore(self, started: RunStarted, text: str) -> LoadedWorkflow:
        """Return the flow as it was when the run started; `text` is the plan of the run.

        The flow must be registered, or built by the run's entry file. No other file is executed.

        Raises:
            UnknownFlow: the flow is not registered, and the run's entry does not build it.
            PlanChanged: the flow has changed.
        """
        key = (started.workflow, started.definition)
        if key not in self._known and started.root.startswith(ENTRY):
            async with self._reading:  # for all runs that wait for it
                if key not in self._known:
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
            f"Flow {started.workflow!r} has changed since this run started. Restore it, or cancel "
            f"the run.\n{differs}".rstrip()
        )

    def renew(self, started: RunStarted, text: str) -> Renewal | None:
        """Return the registered flow, to retry a run with another plan; None if it is not
        registered."""
        others = [loaded for (name, _), loaded in self._known.items() if name == started.workflow]
        if not others:
            return None
        present = others[-1]
        before = replace(present, workflow=earlier_form(text, _form(present)))
        return Renewal(before, present, tuple(changed_nodes(text, _plan(present).text)))

    def salvage(self, started: RunStarted, text: str) -> LoadedWorkflow | None:
        """Return the registered flow, to end a run with another plan; None if it is not
        registered."""
        others = [loaded for (name, _), loaded in self._known.items() if name == started.workflow]
        if not others:
            return None
        form = others[-1].workflow
        assert isinstance(form, FlowForm)
        return replace(
            others[-1], workflow=SalvageForm(form, undoable_in(text), planned_reducers(text))
        )

    def built(self) -> dict[str, Flow[Any]]:
        """The registered flows by name; of several with one name, the last."""
        return {name: flow for (name, _), flow in self._built.items()}

    def knows(self, started: RunStarted) -> bool:
        """Whether this program registers the run's flow, or can import it."""
        is_declared = any(name == started.workflow for name, _ in self._known)
        return is_declared or started.root.startswith(ENTRY)

    def _read(self, started: RunStarted) -> None:
        """Register the flow of a run from its entry file, if the file exists."""
        file = FilePath(started.root.removeprefix(ENTRY))
        if self._library and (self._library / file.name).is_file():
            file = self._library / file.name
        if file.is_file():
            for flow in flows_in(str(file)):
                if flow.name == started.workflow:
                    self.declare(flow, entry=str(file))

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
        """Agents of the steps.

        Raises:
            DefinitionError: a step has no engine.
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
        """Problems of steps without an engine. Models are not contacted."""
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
        """Engine of a step without a chain of engines."""
        step: AgentStep[Any, Any] = node.step
        return step.engine or next(iter(step.engines.values()), None) or self._common(node)

    def _common(self, node: StepNode) -> Any:
        """Default engine of a step."""
        given = self._engine or node.step.model or self._models.default
        if not given and self._models.kind in ASKING:
            raise NoEngine("No model is set.", UNNAMED)
        return given or ""


UNNAMED = (
    "Set `engine = …` or `model = …` in its class; or set a default: `--model`, or "
    "`Loom(model=…)` or `Loom(engine=…)` in Python."
)


def _agent_steps(plan: FlowPlan) -> dict[str, StepNode]:
    """Agent steps by name."""
    return {node.name: node for node in steps_of(plan.paths) if isinstance(node.step, AgentStep)}


def _unanswered(node: StepNode, error: NoEngine) -> Diagnostic:
    message = f"Step {node.name!r} has no engine. {error.message}"
    return Diagnostic(*node.site, "W050", message, remedy=error.remedy)


def _no_selection(flow: Flow[Any]) -> Diagnostic:
    message = "`selection` in the guards of a flow has no effect: its plan decides which step runs."
    remedy = "Select the agent of a step instead: `.then(…, select=Selection(…))`."
    return Diagnostic(flow.site.file, flow.site.line, "W127", message, remedy=remedy)


def _with_changes(loaded: LoadedWorkflow, begun: Mapping[str, str]) -> LoadedWorkflow:
    """Record which code has changed since the run started."""
    changed = [name for name, digest in begun.items() if loaded.code.get(name) != digest]
    return replace(loaded, code=begun, changed_code=tuple(changed)) if changed else loaded


def _form(loaded: LoadedWorkflow) -> FlowForm:
    assert isinstance(loaded.workflow, FlowForm)
    return loaded.workflow


def _plan(loaded: LoadedWorkflow) -> FlowPlan:
    return _form(loaded).plan


def is_code(path: str) -> bool:
    """Whether a path names a code file."""
    return path.endswith(".py")


def flows_in(file: str) -> list[Flow[Any]]:
    """Flows that a code file builds, including invalid ones.

    Raises:
        DefinitionError: the file raises an error.
    """
    return [*_loaded(file)]


def named_flows(file: str) -> tuple[dict[str, Flow[Any]], dict[str, Flow[Any]]]:
    """Flows that a code file builds, by flow name and by variable name.

    Raises:
        DefinitionError: the file raises an error.
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
    """Check a code file and the flows it builds."""
    flows, problems = _built(file)
    if not flows and not problems:
        message, remedy = "The file builds no flow.", "Build one: `Flow(name, State)`."
        return [Diagnostic(FilePath(file).name, 1, "W000", message, remedy=remedy)]
    return sorted({*problems, *(each for flow in flows for each in examine_flow(flow, models))})


def _built(file: str) -> tuple[Mapping[Flow[Any], Sequence[str]], Sequence[Diagnostic]]:
    """Flows of a file with the variables that refer to them, and the errors of its execution."""
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
    """Check a flow with its variables, hooks and guards; if they are valid, check that each agent
    step has an engine. Models are not contacted."""
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
