"""Find boards by the names that the command line uses: `FILE.py:NAME`, or the store."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from anyio import to_thread

from turnloom.app import Board, Loom
from turnloom.cli.problems import located
from turnloom.cli.stored import present_store
from turnloom.errors import TurnloomError, UsageError
from turnloom.flow.logic.flows import Flow
from turnloom.kernel.values import nearest
from turnloom.log.spec import LOCAL
from turnloom.wiring.flow_files import file_of, flow_at, is_program
from turnloom.wiring.flows import named_flows
from turnloom.wiring.programs import board_program

_REMEDY = "Declare it in a function of the app: `def declare(app): …; return board`."


@asynccontextmanager
async def opened_board(
    path: str, store: str | None, app_id: str, *, reads: bool
) -> AsyncGenerator[Board]:
    """The board that a path names: one that a file of code holds in a variable, or that a function
    of it declares for an app on this store. To be read, no store is made.

    Raises:
        UsageError: there is none, it is not said which, or the store to be read is missing.
        DefinitionError: the file does not run.
    """
    if not is_program(path):
        raise UsageError(f"{path!r} names no board. Write `FILE.py:NAME`. {_REMEDY}")
    file = file_of(path)
    with located(file):
        members = await to_thread.run_sync(_members, file)
    apps = [each for each in members.values() if isinstance(each, Loom)]
    found = _member(file, path[len(file) + 1 :], members)
    try:
        if isinstance(found, Board):
            _check_own(file, found, store, app_id)
            yield found
            return
        async with Loom(store=present_store(store) if reads else store) as app:
            yield await _declared(file, found, app)
    finally:
        for each in apps:
            await each.aclose()


@asynccontextmanager
async def edited_definition(
    path: str, store: str | None, app_id: str
) -> AsyncGenerator[str | Flow[Any] | Board]:
    """The definition that a path names: a workflow folder, or a flow or board in a file of code.

    Raises:
        UsageError: there is none, or it is not said which.
        DefinitionError: the file does not run.
    """
    if not is_program(path):
        yield path
        return
    file = file_of(path)
    with located(file):
        flows, variables = await to_thread.run_sync(_flows, file)
    name = path[len(file) + 1 :]
    if flows and (not name or name in flows or name in variables):
        yield await to_thread.run_sync(flow_at, path)
        return
    async with opened_board(path, store, app_id, reads=True) as board:
        yield board


def _flows(file: str) -> tuple[Mapping[str, Flow[Any]], Mapping[str, Flow[Any]]]:
    """The flows that a file of code builds, by name and by variable."""
    if not Path(file).is_file():
        raise UsageError(f"File {file!r} does not exist.")
    return named_flows(file)


def _members(file: str) -> Mapping[str, Any]:
    """The names that a file of code defines."""
    if not Path(file).is_file():
        raise UsageError(f"File {file!r} does not exist.")
    return board_program(file)


def _member(file: str, name: str, members: Mapping[str, Any]) -> Board | Callable[[Loom], Any]:
    """The board, or the function that declares it, of a name."""
    boards = {each: held for each, held in members.items() if isinstance(held, Board)}
    by_name = {held.name: held for held in boards.values()}
    if not name and len(by_name) == 1:
        return next(iter(by_name.values()))
    if not name and by_name:
        names = ", ".join(by_name)
        raise UsageError(f"{file!r} has several boards: {names}. Name one: {file}:{min(by_name)}")
    if not name:
        raise UsageError(f"{file!r} holds no board. {_REMEDY} Then name it: {file}:declare")
    if name in boards or name in by_name:
        return boards.get(name) or by_name[name]
    functions = {
        each: held
        for each, held in members.items()
        if callable(held) and not isinstance(held, type | Loom)
    }
    if name in functions:
        return functions[name]
    near = nearest(name, [*by_name, *functions])
    remedy = f"Did you mean {near!r}?" if near else _REMEDY
    raise UsageError(f"{file!r} has no board {name!r}. {remedy}")


def _check_own(file: str, board: Board, store: str | None, app_id: str) -> None:
    """Refuse to open a board of another app on this store."""
    if store is not None:
        raise UsageError(
            f"Board {board.name!r} of {file!r} belongs to an app that has its store. Leave "
            f"`--store` out. {_REMEDY}"
        )
    if app_id not in (board.app_id, LOCAL):
        raise UsageError(f"Board {board.name!r} of {file!r} is of app {board.app_id!r}.")


async def _declared(file: str, declare: Callable[[Loom], Any], app: Loom) -> Board:
    called = f"{getattr(declare, '__name__', 'it')}(app) of {file!r}"
    try:
        given = declare(app)
        found = await cast(Awaitable[Any], given) if isinstance(given, Awaitable) else given
    except TurnloomError:
        raise
    except Exception as error:
        raise UsageError(f"{called} failed: {type(error).__name__}: {error}. {_REMEDY}") from error
    if not isinstance(found, Board):
        raise UsageError(f"{called} gives no board. {_REMEDY}")
    return found
