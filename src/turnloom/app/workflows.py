"""The workflows that an app serves, by name."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from turnloom.app.arguments import as_path
from turnloom.errors import DefinitionError, InvalidUpdate, UnknownWorkflow, UsageError
from turnloom.kernel.arguments import as_name
from turnloom.kernel.values import Json
from turnloom.log.spec import LOCAL

if TYPE_CHECKING:
    from pydantic import BaseModel

    from turnloom.errors import Diagnostic
    from turnloom.flow.logic.flows import Flow
    from turnloom.log.events import RunStarted
    from turnloom.wiring import Parts
    from turnloom.wiring.folders import Loading

FormName = Literal["conversation", "reaction", "flow"]

# Seconds that the code of a workflow has to load when it is checked.
PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class ServedWorkflow:
    """A workflow that an app serves: its name, and its form."""

    name: str
    form: FormName


@dataclass(frozen=True, slots=True)
class ShownWorkflow:
    """A workflow as it is declared now: its form and version, its files, how its agents get their
    context, and the JSON Schema of the state that a run begins with, if it is a flow."""

    name: str
    form: FormName
    version: str
    files: Mapping[str, str]
    context: str
    input: Json = None


class Workflows:
    """The workflows that an app serves: folders that are added here, and the flows and boards that
    the program declares."""

    def __init__(self, parts: "Callable[[], Parts]") -> None:
        self._parts = parts
        self._folders: dict[str, str] = {}

    def add(self, path: "str | os.PathLike[str]") -> list[str]:
        """Serve the workflow folder at a path, or all of those in it; returns their names.

        Raises:
            UsageError: the folder does not exist, or the name of a workflow is taken.
        """
        from turnloom.wiring import workflows_below

        place = as_path(path, "The folder of workflows")
        if not os.path.isdir(place):
            raise UsageError(f"Folder {place!r} does not exist. Name a folder with workflows.")
        below = workflows_below(place)
        found = {os.path.basename(os.path.abspath(each)): each for each in below or [place]}
        for name, folder in found.items():
            if self._folders.get(name, folder) != folder:
                raise UsageError(f"Two folders are named {name!r}. Rename one of them.")
        self._folders |= {name: os.path.abspath(each) for name, each in found.items()}
        return [*found]

    def served(self, app_id: str) -> list[ServedWorkflow]:
        """What a tenant can start or publish to, sorted by name."""
        parts = self._parts()
        found = {name: ServedWorkflow(name, "conversation") for name in self._folders}
        found |= {name: ServedWorkflow(name, "flow") for name in parts.flows.built()}
        boards = parts.boards.named(as_name(app_id, "`app_id`"))
        found |= {name: ServedWorkflow(name, "reaction") for name in boards}
        return [found[name] for name in sorted(found)]

    def folder(self, name: str) -> str:
        """The folder of a workflow.

        Raises:
            UnknownWorkflow: no folder of this name is served.
        """
        if name not in self._folders:
            raise UnknownWorkflow(name)
        return self._folders[name]

    def flow(self, name: str) -> "Flow[BaseModel] | None":
        """The flow of a name, if the program declares one."""
        return self._parts().flows.built().get(name)

    def state(self, flow: "Flow[BaseModel]", given: Json) -> "BaseModel":
        """The state that a run of a flow begins with, from JSON.

        Raises:
            InvalidUpdate: it is not a state of the flow.
        """
        from pydantic import ValidationError

        from turnloom.wiring.flow_files import refuse_unknown

        try:
            state = flow.state.model_validate({} if given is None else given)
            refuse_unknown(flow.state, given)
            return state
        except UsageError as error:
            raise InvalidUpdate(str(error)) from None
        except ValidationError as error:
            faults = "; ".join(_fault(each) for each in error.errors(include_url=False))
            raise InvalidUpdate(f"This is no {flow.state.__name__}: {faults}.") from None

    def serves(self, started: "RunStarted") -> bool:
        """Whether a run belongs to one of these workflows."""
        if started.form == "conversation":
            return started.root in self._folders.values()
        return self._parts().definitions.declares(started)

    async def check(self, name: str, *, app_id: str = LOCAL) -> "list[Diagnostic]":
        """All problems of a workflow, found in a separate process: its code may end it. Flows and
        boards were checked when they were declared.

        Raises:
            UnknownWorkflow: there is no such workflow.
        """
        from anyio import to_thread

        is_declared = self.flow(name) is not None or self._has_board(name, app_id)
        if name not in self._folders and is_declared:
            return []
        return await to_thread.run_sync(_problems, self.folder(name))

    async def show(self, name: str, *, app_id: str = LOCAL) -> ShownWorkflow:
        """A workflow as it is declared now.

        Raises:
            UnknownWorkflow: there is no such workflow.
            DefinitionError: it does not pass its check.
        """
        from turnloom.assembly.service.gathering import describe_contexts
        from turnloom.flow.logic.plans import describe_plan

        flow = self.flow(name)
        if flow is not None:
            schema = flow.state.model_json_schema()
            plan = flow.plan
            return ShownWorkflow(
                name, "flow", plan.digest, {}, context=describe_plan(plan), input=schema
            )
        is_board = name not in self._folders and self._has_board(name, app_id)
        if is_board:
            loaded = self._parts().boards.load(name)
        else:
            loaded = await self._parts().definitions.load(self.folder(name))
        contexts = {agent: each.context for agent, each in loaded.staff.items()}
        return ShownWorkflow(
            name,
            "reaction" if is_board else "conversation",
            loaded.workflow.version,
            loaded.files,
            context=describe_contexts(contexts),
        )

    async def graph(self, name: str, *, app_id: str = LOCAL) -> str:
        """A Mermaid flowchart of a conversation or a flow.

        Raises:
            UnknownWorkflow: there is no such workflow.
            UsageError: it is a board, which has no ways that could be drawn.
            DefinitionError: it does not pass its check.
        """
        from turnloom.explain.logic.pictures import picture

        flow = self.flow(name)
        if flow is not None:
            return flow.to_mermaid()
        if name not in self._folders and self._has_board(name, app_id):
            raise UsageError(
                f"{name!r} is a board, which has no ways that could be drawn: its agents are woken "
                "by what is published."
            )
        return picture((await self._parts().definitions.load(self.folder(name))).workflow)

    def _has_board(self, name: str, app_id: str) -> bool:
        """Whether the program declares a board of this name for a tenant."""
        return self._parts().boards.knows(name, app_id)


def _problems(path: str) -> "list[Diagnostic]":
    from turnloom.wiring import examine_in_process

    return [each for _, found in examine_in_process([path], _examine, PATIENCE) for each in found]


def _examine(path: str, loading: "Loading") -> "list[Diagnostic]":
    from turnloom.wiring import Folders

    try:
        return sorted(Folders().examine_here(path, loading))
    except DefinitionError as error:
        return [*error.diagnostics]


def _fault(detail: Any) -> str:
    where = ".".join(map(str, detail["loc"]))
    return f"{where}: {detail['msg']}" if where else str(detail["msg"])
