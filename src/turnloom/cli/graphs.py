"""Graphs of workflows, by the names that people use."""

import os

from anyio import to_thread

from turnloom.app import Loom
from turnloom.cli.problems import located
from turnloom.cli.stored import find_run
from turnloom.errors import DefinitionError, UsageError
from turnloom.explain.logic.pictures import picture
from turnloom.log.logic import started_of
from turnloom.reaction.logic.reacting import ReactionForm
from turnloom.wiring import Folders
from turnloom.wiring.flow_files import file_of, flow_at, is_program


async def graph_of(app: Loom, name: str, app_id: str) -> str:
    """Draw a folder, a flow in a file of code, or the pinned workflow of a run.

    Raises:
        UsageError: there is no such thing, or it cannot be drawn.
        DefinitionError: it does not pass its check.
    """
    declared = await to_thread.run_sync(_declared, name)  # a file may run an event loop
    if declared is not None:
        return declared
    run = await find_run(app, name, app_id)
    started = started_of(await app.history.events(run, app_id=app_id))
    if started.form == ReactionForm.form:
        raise UsageError(
            f"Run {run!r} belongs to a board, which has no ways that could be drawn: its agents "
            f"are woken by what is published. `turnloom show plan {name}` prints what wakes them."
        )
    return (await app.history.definition(run, app_id=app_id)).to_mermaid()


def _declared(name: str) -> str | None:
    """The graph of what a folder or a file of code declares; None if a name is neither."""
    if is_program(name):
        with located(file_of(name)):
            return flow_at(name).to_mermaid()
    if os.path.isdir(name):
        with located(name):
            return _of_folder(name)
    return None


def _of_folder(folder: str) -> str:
    loaded, problems = Folders().examine(folder)
    if loaded is None:
        raise DefinitionError(os.path.basename(os.path.abspath(folder)), sorted(problems))
    return picture(loaded.workflow)
