"""Construction of an app: stores, definitions, runs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from os.path import isdir
from typing import Any, Protocol, cast

from anyio import to_thread

from turnloom.board.service import bind
from turnloom.board.spec import BoardHandle, Reader, TypeRegistry
from turnloom.conversation.logic.checking import deciding, unreadable
from turnloom.conversation.logic.routing import ConversationForm
from turnloom.errors import Diagnostic, UsageError, WorkflowGone
from turnloom.explain.spec.explanations import RunDeclarations
from turnloom.flow.logic.flowing import FlowForm
from turnloom.guards.ports import BeliefStore
from turnloom.guards.spec import Guards, Price
from turnloom.kernel.arguments import as_count, as_one_of
from turnloom.kernel.documents import DeclarationFile
from turnloom.kernel.values import Json
from turnloom.log.events import RunStarted
from turnloom.log.ports import Clock
from turnloom.reaction.logic.reacting import ReactionForm
from turnloom.runs.undriven import CHAT, Undriven
from turnloom.runtime.drive.driver import Stores
from turnloom.runtime.drive.plans import RememberedPlans, plan_of
from turnloom.runtime.limits import CallLimits
from turnloom.runtime.observers import ObserverQueue, Observers
from turnloom.runtime.ports import Artifacts, Permits, Plans, Scheduler, Store, is_shared
from turnloom.runtime.runs import Runs, RuntimePorts, pin_flow
from turnloom.runtime.spec import LoadedWorkflow, Renewal
from turnloom.variables.logic.checking import describe, domains
from turnloom.variables.ports import DocumentStore
from turnloom.wiring.adapters import adapter
from turnloom.wiring.boards import BoardDeclaration, Boards
from turnloom.wiring.collections import Collections
from turnloom.wiring.doors import Capabilities, Doors, lacking_in, port_of, sort_out
from turnloom.wiring.flows import Flows
from turnloom.wiring.folders import Folders
from turnloom.wiring.limits import DeclaredLimits, read_limits
from turnloom.wiring.models import ModelEngines, check_engine
from turnloom.wiring.opening import (
    open_artifacts,
    open_beliefs,
    open_documents,
    open_scheduler,
    open_store,
    open_vectors,
)
from turnloom.wiring.prices import read_prices
from turnloom.wiring.schemes import check_places
from turnloom.wiring.settings import Settings, settings

# Names of boards, which are part of run ids.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class Closable(Protocol):
    """A resource that can be closed."""

    async def aclose(self) -> None:
        """Release the resource."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """Components of an app."""

    settings: Settings
    clock: Clock
    opened: Sequence[Closable]
    store: Store
    artifacts: Artifacts
    beliefs: BeliefStore
    documents: DocumentStore
    definitions: "AppDefinitions"
    boards: Boards
    flows: Flows
    types: TypeRegistry
    runs: Runs
    world: RuntimePorts
    collections: Collections
    limits: DeclaredLimits
    prices: Mapping[str, Price]

    def declare_board(
        self,
        name: str,
        tenant: str,
        limit: int,
        variables: Mapping[str, Any],
        hooks: Sequence[Mapping[str, Any]],
        guards: Guards | Mapping[str, Any] | None = None,
    ) -> BoardDeclaration:
        """Declare a board without agents for a tenant.

        Raises:
            UsageError: the name is invalid or taken.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(f"Invalid board name {name!r}. Use letters, digits, '_', '-', '.'.")
        as_count(limit, "`max_turns`")
        declared = BoardDeclaration(
            name, tenant, self.types, limit, variables=variables, hooks=hooks, guards=guards
        )
        self.boards.declare(declared)
        return declared

    def bind(self, reader: Reader) -> BoardHandle:
        """Return the artifacts as the reader sees them.

        Raises:
            UsageError: `reader` is not a Reader.
        """
        of = as_one_of(reader, Reader, "`reader`")
        return bind(self.artifacts, self.types, of, self.clock.now)

    async def aclose(self) -> None:
        """Close the resources that the app opened."""
        for each in self.opened:
            await each.aclose()


@dataclass(frozen=True, slots=True)
class Setup:
    """Settings, objects and observers of an app. `given` names the settings that the program set
    itself."""

    settings: Settings
    doors: Doors
    given: Sequence[str]
    observers: Sequence[ObserverQueue]
    limits: DeclaredLimits = field(default_factory=DeclaredLimits)
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])


def set_up(asked: Mapping[str, Any]) -> Setup:
    """Check the arguments of an app. Nothing is opened.

    Raises:
        UsageError: a setting is unknown or invalid, or an object lacks members of its port.
    """
    values, doors = sort_out(asked)
    chosen = settings(values)
    check_places(chosen, [each.name for each in fields(doors) if getattr(doors, each.name)])
    check_engine(chosen.engine)
    _check_followed(doors)
    queues = tuple(ObserverQueue(each, chosen.observer_queue) for each in doors.observers)
    given = [name for name in ("model", "engine") if values.get(name)]
    limits, prices = read_limits(chosen), read_prices()
    return Setup(chosen, doors, given, queues, limits=limits, prices=prices)


def _check_followed(doors: Doors) -> None:
    """Refuse artifacts or beliefs that index the log of another store."""
    for name in ("artifacts", "beliefs"):
        given = getattr(doors, name)
        if getattr(given, "follows_log", False) and given is not getattr(doors.store, name, None):
            raise UsageError(
                f"Setting {name!r} follows the log of another store. Pass that store too, or an "
                "object with `follows_log = False`."
            )


def assemble(setup: Setup) -> Parts:
    """Create the parts of an app. They connect on first use."""
    chosen, doors, engine = setup.settings, setup.doors, setup.doors.engine
    store = doors.store or open_store(chosen)
    documents = doors.documents or open_documents(chosen)
    artifacts = doors.artifacts or open_artifacts(chosen, store)
    beliefs = doors.beliefs or open_beliefs(chosen, store)
    results = port_of(store, "results")
    lacking = lacking_in({"artifacts": artifacts, "beliefs": beliefs, "results": results})
    can = Capabilities(lacking)
    collections = Collections(doors.vectors or open_vectors(chosen))
    models = ModelEngines(chosen.model, chosen.engine, setup.given)
    boards, types = Boards(engine, collections, models, can), TypeRegistry()
    flows = Flows(engine, collections.search, models, types, can=can)
    folders = Folders(
        engine,
        strict=chosen.strict,
        connect=doors.connect,
        types=types,
        collections=collections,
        models=models,
    )
    definitions = AppDefinitions(folders, boards, flows, store.plans, models=models, can=can)
    clock = _clock(store, doors)
    scheduler = doors.scheduler or open_scheduler(chosen, clock)
    stores = Stores(
        store.log,
        store.inbox,
        store.claims,
        store.snapshots,
        artifacts=artifacts,
        beliefs=beliefs,
        results=results,
        plans=store.plans,
        per_turn=chosen.durability == "turn",
        removals=getattr(store, "removals", None),
        is_shared=is_shared(scheduler),
        limits=_call_limits(scheduler, setup.limits),
        questions=setup.limits.questions,
    )
    world = _world(
        stores,
        store,
        setup,
        documents=documents,
        definitions=definitions,
        scheduler=scheduler,
        clock=clock,
    )
    opened = [
        (world.observers, True),
        (definitions, True),
        (artifacts, _is_ours(artifacts, doors, "artifacts")),
        (beliefs, _is_ours(beliefs, doors, "beliefs")),
        (store, doors.store is None),
        (documents, doors.documents is None),
        (collections, True),
        (scheduler, doors.scheduler is None and hasattr(scheduler, "aclose")),
    ]
    return Parts(
        chosen,
        world.clock,
        [cast(Closable, each) for each, is_ours in opened if is_ours],
        store,
        artifacts=artifacts,
        beliefs=beliefs,
        documents=documents,
        definitions=definitions,
        boards=boards,
        flows=flows,
        types=types,
        runs=Runs(world),
        world=world,
        collections=collections,
        limits=setup.limits,
        prices=setup.prices,
    )


def _call_limits(scheduler: Scheduler, declared: DeclaredLimits) -> CallLimits | None:
    """The limits of model calls: of all processes where the scheduler spreads drives, else of this
    one.

    Raises:
        UsageError: the scheduler spreads drives, and cannot limit them together.
    """
    permits: Permits | None = getattr(scheduler, "permits", None)
    if permits is None and is_shared(scheduler):
        if declared.models:
            raise UsageError(
                "`limits.models` in turnloom.toml needs a scheduler with `permits`, which hold for "
                f"all processes, and {type(scheduler).__name__} has none. Leave out the limits."
            )
        return None
    if permits is None and not declared.models:
        return None
    return CallLimits(permits or adapter("inline").InlinePermits(), declared.models)


def _is_ours(given: object, doors: Doors, name: str) -> bool:
    """Whether the app closes a port: neither the port nor its store belongs to the program."""
    return given is not getattr(doors, name) and given is not getattr(doors.store, name, None)


# The forms of runs.
_FORMS = (ConversationForm, ReactionForm, FlowForm, Undriven)


class AppDefinitions:
    """Workflows of an app: folders, boards and flows."""

    def __init__(
        self,
        folders: Folders,
        boards: Boards,
        flows: Flows,
        plans: Plans,
        models: ModelEngines | None = None,
        can: Capabilities | None = None,
    ) -> None:
        self._models = models or ModelEngines()
        self._can = can or Capabilities()
        self._folders = folders
        self._boards = boards
        self._flows = flows
        self._plans = RememberedPlans(plans)

    async def load(self, source: str) -> LoadedWorkflow:
        """Load the workflow of a folder.

        Raises:
            UsageError: the store lacks a port that the workflow needs.
        """
        loaded = await self._folders.load(source)
        self._can.need_for_guards(loaded.guards)
        return loaded

    def look_in(self, library: str) -> None:
        """Find the code of runs in this folder first, by the names of their folders and files.

        Raises:
            UsageError: there is no such folder.
        """
        if not isdir(library):
            raise UsageError(f"There is no folder {library!r} with workflows. Correct the path.")
        self._folders.look_in(library)
        self._flows.look_in(library)

    async def restore(self, started: RunStarted) -> LoadedWorkflow:
        """Return the workflow as it was when the run started."""
        if started.form == ReactionForm.form:
            return self._boards.restore(started, await self._plan_text(started))
        if started.form == CHAT:
            raise WorkflowGone(
                f"This run of {started.workflow!r} is a group chat of another program, which alone "
                "can continue it. Explain or cancel it here."
            )
        if started.form == FlowForm.form:
            return await self._flows.restore(started, await self._plan_text(started))
        return await self._folders.restore(started)

    async def renew(self, started: RunStarted) -> Renewal | None:
        """Return the present declaration of a flow with a changed plan, which is kept."""
        if started.form != FlowForm.form:
            return None
        found = self._flows.renew(started, await self._plan_text(started))
        if found is not None:
            await pin_flow(self._plans, started.tenant, found.present)
        return found

    async def salvage(self, started: RunStarted) -> LoadedWorkflow | None:
        """Return a workflow that ends a run of a flow with a changed plan."""
        if started.form != FlowForm.form:
            return None
        return self._flows.salvage(started, await self._plan_text(started))

    def declares(self, started: RunStarted) -> bool:
        """Whether this program can continue a run: boards and flows must be declared in code."""
        if started.form == ReactionForm.form:
            return self._boards.knows(started.workflow, started.tenant)
        return started.form != FlowForm.form or self._flows.knows(started)

    def hears(self, started: RunStarted) -> bool:
        """Whether the form of a run takes messages of its user at any time."""
        return any(each.hears for each in _FORMS if each.form == started.form)

    async def _plan_text(self, started: RunStarted) -> str:
        plan = await plan_of(self._plans, started)
        return plan.text if plan else "{}"

    async def aclose(self) -> None:
        """Close the connections to tool servers and models."""
        await self._folders.aclose()
        await self._models.aclose()


def _clock(store: Store, doors: Doors) -> Clock:
    """Clock of deadlines: that of the store, of the program or of the system."""
    return getattr(store, "clock", None) or doors.clock or adapter("system").SystemClock()


def _world(
    stores: Stores,
    store: Store,
    setup: Setup,
    *,
    documents: DocumentStore,
    definitions: AppDefinitions,
    scheduler: Scheduler,
    clock: Clock,
) -> RuntimePorts:
    """Ports of the runtime, from the program, the settings or the system."""
    system, doors, chosen = adapter("system"), setup.doors, setup.settings
    return RuntimePorts(
        stores,
        clock,
        doors.entropy or system.SystemEntropy(),
        doors.environment or system.SystemEnvironment(),
        documents=documents,
        definitions=definitions,
        scheduler=scheduler,
        observers=Observers(setup.observers, chosen.observer_drain),
        components=doors.components,
        window=chosen.window,
        feedback=port_of(store, "feedback"),
        backlog=getattr(store, "backlog", None),
        sweep=chosen.sweep,
    )


def read_part(path: str, part: str) -> tuple[DeclarationFile | None, list[Diagnostic]]:
    """Read one part of a workflow, from its folder or its file; return problems as well.

    Raises:
        UsageError: the path does not exist, or two files declare the part.
    """
    return adapter("files").read_part(path, part)


def workflows_below(path: str) -> list[str]:
    """Workflow folders directly below a folder."""
    return adapter("files").workflows_below(path)


async def declared(started: RunStarted) -> RunDeclarations:
    """Declarations at the start of a run, for explanations."""
    if started.form in (ReactionForm.form, FlowForm.form):
        return RunDeclarations({}, None)
    restore = adapter("files").restore_folder
    folder, problems = await to_thread.run_sync(
        restore, started.workflow, started.root, started.files, started.code
    )
    broken = unreadable(problems)
    document = folder.documents.get("context_variables")
    descriptions = {} if document is None else describe(document)
    types = {} if document is None else domains(document)
    return RunDeclarations(descriptions, deciding(folder, broken), types)


def read_sources(path: str) -> Any:
    """The files of a folder to migrate, or the one file with its variables.

    Raises:
        UsageError: the path does not exist.
    """
    return adapter("files").read_sources(path)


def replace_files(
    root: str,
    texts: Mapping[str, str],
    values: Mapping[str, Json],
    report: str,
    renamed: Mapping[str, str],
) -> list[str]:
    """Write files of a folder, documents in their format; return the names of their backups. Of
    `renamed` files, only the backup stays.

    Raises:
        OSError: a file cannot be written; the folder is unchanged.
    """
    dumped = {file: adapter("files").dump(file, value) for file, value in values.items()}
    files = adapter("files").replace_files(root, {**dumped, **texts}, report, renamed)
    return [*files.backups.values()]


def undo_replacement(root: str) -> tuple[list[str], list[str]]:
    """Restore the files that were replaced last; return their names, and those removed.

    Raises:
        UsageError: nothing was replaced, or a file was changed since.
        OSError: a file cannot be restored.
    """
    done = adapter("files").undo_replacement(root)
    return [*done.backups], [*done.created]
