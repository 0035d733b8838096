"""Code files with flows, boards or chats of AG2's classic line."""

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
    """Names that a code file defines. Its module name is the file's stem, since it is part of the
    names of artifact types.

    Raises:
        DefinitionError: the file raises an error.
    """
    return adapter("files").program(file, Path(file).stem)


def examine(file: str, models: ModelEngines) -> list[Diagnostic]:
    """Check a code file: its chats without executing it, and its flows by executing it. A file with
    chats and without flows is not executed."""
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
        UsageError: a path cannot be checked.
    """
    return adapter("processes").Examination(examine, limit).problems(paths)


def may_exit(path: str) -> bool:
    """Whether the code at a path may end its process without an error."""
    return adapter("files").may_exit(path)
