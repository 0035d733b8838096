"""`turnloom show`: schemas, settings, context plans and graphs of workflows, states of runs."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import typer

from turnloom.app import Loom
from turnloom.assembly.service.gathering import describe_contexts
from turnloom.cli.command import Command
from turnloom.cli.explanations import render_state
from turnloom.cli.graphs import graph_of
from turnloom.cli.problems import located, relocate
from turnloom.cli.programs import refuse_exits
from turnloom.cli.stored import AppId, Json, StoreFile, find_run, masked, present_store
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.conversation.logic.schemas import FILES, schema_of, written
from turnloom.errors import DefinitionError, UsageError
from turnloom.flow.logic.plans import describe_plan
from turnloom.log.logic import started_of
from turnloom.log.spec import LOCAL
from turnloom.runtime.spec import AgentRuntime
from turnloom.wiring import Folders, in_force
from turnloom.wiring.flow_files import file_of, flow_at, is_program


class Subject(StrEnum):
    """The subjects of the command."""

    schema = "schema"
    config = "config"
    plan = "plan"
    graph = "graph"
    state = "state"
    openapi = "openapi"


@dataclass(frozen=True, kw_only=True)
class ShowCommand(Command):
    """Show the JSON Schema of a workflow's file, the settings and where each came from, what gives
    the agents of a workflow or a run their context, a picture of a workflow, the state of a run at
    any of its events, or the OpenAPI document of the server."""

    subject: Annotated[
        Subject,
        typer.Argument(
            metavar="WHAT", help="`schema`, `config`, `plan`, `graph`, `state` or `openapi`."
        ),
    ]
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help=f"Schema of: {', '.join(FILES)}. Plan and graph of: a folder, a flow of a file "
            "(`FILE.py` or `FILE.py:FLOW`), or a run. State of: a run.",
        ),
    ] = None
    at: Annotated[
        int | None, typer.Option(metavar="SEQ", help="The state as of this event, not the last.")
    ] = None
    agent: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The state with the artifacts that this agent may see."),
    ] = None
    json: Json = False
    store: StoreFile = None
    app_id: AppId = LOCAL

    def carry_out(self, terminal: Terminal) -> int:
        """Print what was asked for."""
        self._check()
        match self.subject:
            case Subject.config:
                self._show_config(terminal)
            case Subject.schema:
                self._show_schema(terminal)
            case Subject.openapi:
                self._show_openapi(terminal)
            case Subject.plan:
                self._show_context(terminal)
            case Subject.graph:
                asyncio.run(self._show_graph(terminal))
            case Subject.state:
                asyncio.run(self._show_state(terminal))
        return 0

    def _show_context(self, terminal: Terminal) -> None:
        """What gives agents their context: those of a folder, of a flow, or of a run."""
        if self.name is not None and Path(self.name).is_dir():
            self._show_folder(terminal, self.name)
        elif self.name is not None and is_program(self.name):
            self._show_flow(terminal, self.name)
        else:
            asyncio.run(self._show_run(terminal))

    def _check(self) -> None:
        """Refuse what cannot be shown, before anything is opened."""
        if self.json and self.subject not in (Subject.plan, Subject.state):
            raise UsageError("Only plans and states are shown as JSON. Leave `--json` out.")
        for option, given in (("--at", self.at), ("--agent", self.agent)):
            if given is not None and self.subject is not Subject.state:
                raise UsageError(f"`{option}` goes with `turnloom show state RUN`.")
        if self.name is not None and self.subject in (Subject.plan, Subject.graph):
            refuse_exits(self.name)

    async def _show_graph(self, terminal: Terminal) -> None:
        if self.name is None:
            raise UsageError(
                "Say of what: `turnloom show graph NAME`, where NAME is a workflow folder, "
                "`FILE.py`, `FILE.py:FLOW` or a run."
            )
        async with Loom(store=present_store(self.store)) as app:
            terminal.show(safe((await graph_of(app, self.name, self.app_id)).rstrip("\n")))

    async def _show_state(self, terminal: Terminal) -> None:
        if self.name is None:
            raise UsageError(
                "Say of which run: `turnloom show state RUN`. `turnloom runs` lists runs."
            )
        async with Loom(store=present_store(self.store)) as app:
            run = await find_run(app, self.name, self.app_id)
            found = await app.history.state(run, at=self.at, agent=self.agent, app_id=self.app_id)
        if self.json:
            terminal.emit(msgspec.json.encode(found))
            return
        for part in render_state(found, terminal.out.width):
            terminal.show(part)

    def _show_folder(self, terminal: Terminal, path: str) -> None:
        """The context of a folder's agents; its files are the raw plan."""
        if self.store is not None:
            raise UsageError("A folder has no store. Leave `--store` out.")
        loaded, problems = Folders().examine(path)
        if loaded is None:
            raise DefinitionError(path, relocate(path, sorted(problems)))
        if self.json:
            terminal.emit(msgspec.json.encode(loaded.files))
        else:
            terminal.show(safe(_contexts(loaded.staff)))

    def _show_flow(self, terminal: Terminal, path: str) -> None:
        """The context of the agents of a flow's steps, or the plan that runs are pinned to."""
        if self.store is not None:
            raise UsageError("A flow of a file has no store. Leave `--store` out.")
        with located(file_of(path)):
            plan = flow_at(path).plan
        self._show_plan(terminal, plan.text, describe_plan(plan))

    async def _show_run(self, terminal: Terminal) -> None:
        if self.name is None:
            raise UsageError(
                "Say of what: `turnloom show plan PATH` for a folder or a flow of a file, "
                "`turnloom show plan RUN` for a run. `turnloom runs` lists runs."
            )
        async with Loom(store=present_store(self.store)) as app:
            run = await find_run(app, self.name, self.app_id)
            plan = await app.handle(run, app_id=self.app_id).plan()
            started = started_of(await app.history.events(run, app_id=self.app_id))
        if plan is not None:
            self._show_plan(terminal, plan.text, plan.context)
            return
        if self.json:
            terminal.emit(msgspec.json.encode(started.files))
            return
        for file, text in started.files.items():
            terminal.show(joined((f"# {file}", "dim")))
            terminal.show(safe(text.rstrip("\n")))
        terminal.show(joined(("# context", "dim")))
        terminal.show(safe(_contexts(Folders().recall(started).staff)))

    def _show_plan(self, terminal: Terminal, text: str, context: str) -> None:
        """The plan of a board or a flow: for people, what it says of context."""
        if self.json:
            terminal.emit(text.encode())
        else:
            terminal.show(safe(context or "No agent has a context."))

    def _show_schema(self, terminal: Terminal) -> None:
        if self.name is None:
            names = ", ".join(FILES)
            raise UsageError(f"Say of which file: `turnloom show schema NAME`. Names: {names}.")
        if self.store is not None:
            raise UsageError("A schema has no store. Leave `--store` out.")
        terminal.emit(written(schema_of(self.name)))

    def _show_openapi(self, terminal: Terminal) -> None:
        if self.name is not None:
            raise UsageError(f"`turnloom show openapi` takes no name. Leave {self.name!r} out.")
        made = msgspec.json.encode(import_module("turnloom.server").openapi())
        terminal.emit(msgspec.json.format(made, indent=2))

    def _show_config(self, terminal: Terminal) -> None:
        if self.name is not None:
            raise UsageError(f"`turnloom show config` takes no name. Leave {self.name!r} out.")
        for name, chosen in in_force({"store": self.store}).items():
            value = _as_toml(masked(chosen.value))
            terminal.show(joined((name, "bold"), f" = {value}", (f"  # {chosen.origin}", "dim")))


def _as_toml(value: Any) -> str:
    """A value as turnloom.toml has it, on one line."""
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    table = cast("dict[str, Any]", value)
    return f"{{{', '.join(f'{_as_toml(key)} = {_as_toml(each)}' for key, each in table.items())}}}"


def _contexts(staff: Mapping[str, AgentRuntime]) -> str:
    return describe_contexts({agent: each.context for agent, each in staff.items()})
