"""Files of code: the flows that they build, and the chats of AG2's classic line that they start."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from os.path import abspath
from pathlib import Path
from typing import Any

from turnloom.conversation.logic.chats import check_chats, classic
from turnloom.errors import Diagnostic
from turnloom.wiring.adapters import adapter
from turnloom.wiring.flows import examine as examine_flows
from turnloom.wiring.folders import Loading
from turnloom.wiring.models import ModelEngines


def board_program(file: str) -> Mapping[str, Any]:
    """What a file of code defines by name, as others have it who import the file: types of
    artifacts are called by the module that they stand in.

    Raises:
        DefinitionError: it does not run.
    """
    return adapter("files").program(file, Path(file).stem)


def examine(file: str, models: ModelEngines) -> list[Diagnostic]:
    """Everything that is wrong with a file of code: with its chats, as it reads, and with the flows
    that it builds when it is run, with `models` as the settings say. One that has chats and no flow
    is not run."""
    program = classic(adapter("files").source(file))
    if program is None:
        return examine_flows(file, models)
    flows = examine_flows(file, models) if program.names_flows else []
    return sorted([*check_chats(program, abspath(file)), *flows])


def examine_in_process(
    paths: Sequence[str], examine: Callable[[str, Loading], list[Diagnostic]], limit: float
) -> Iterator[tuple[str, list[Diagnostic]]]:
    """Yield each path with its problems, found in a separate process: users' code may exit it.

    Raises:
        UsageError: a path names nothing that can be checked.
    """
    return adapter("processes").Examination(examine, limit).problems(paths)


def may_exit(path: str) -> bool:
    """Whether the code at a path may end its process without an error."""
    return adapter("files").may_exit(path)
