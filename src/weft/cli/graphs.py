"""Pictures of workflows, found by what people call them."""

import os

from weft.app import Weft
from weft.cli.problems import located
from weft.cli.stored import find_run
from weft.errors import DefinitionError, UsageError
from weft.explain.logic.pictures import picture
from weft.reaction.logic.reacting import Reacting
from weft.wiring import Folders, flows_in, is_code


async def graph_of(app: Weft, name: str) -> str:
    """A picture of what is in a folder, of a flow in a file of code, or of what a run goes by.

    Raises:
        UsageError: there is no such thing, or it cannot be drawn.
        DefinitionError: it does not pass its check.
    """
    declared = _declared(name)
    if declared is not None:
        return declared
    run = await find_run(app, name)
    started = (await app.log(run))[0].data
    if started.form == Reacting.form:
        raise UsageError(
            f"Run {run!r} belongs to a board, which has no ways that could be drawn: its agents "
            f"are woken by what is published. `weft show plan {name}` prints what wakes them."
        )
    return picture((await app.definition(run)).workflow)


def _declared(name: str) -> str | None:
    """A picture of what a folder or a file of code declares; nothing if a name is of neither."""
    file, _, flow = (name, "", "") if is_code(name) else name.rpartition(":")
    if is_code(file):
        with located(file):
            return _of_file(file, flow)
    if os.path.isdir(name):
        with located(name):
            return _of_folder(name)
    return None


def _of_file(file: str, name: str) -> str:
    flows = {flow.name: flow for flow in flows_in(file)}
    if name in flows or len(flows) == 1 and not name:
        return flows.get(name, next(iter(flows.values()))).to_mermaid()
    known = ", ".join(f"`{file}:{each}`" for each in flows) or "none"
    raise UsageError(f"Say which flow of {file!r}. There is: {known}.")


def _of_folder(folder: str) -> str:
    loaded, problems = Folders().examine(folder)
    if loaded is None:
        raise DefinitionError(os.path.basename(os.path.abspath(folder)), sorted(problems))
    return picture(loaded.workflow)
