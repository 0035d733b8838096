"""Checks of workflows in a separate process, since users' code may exit or hang."""

import logging
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from os.path import abspath, dirname, join
from typing import Any

from turnloom.adapters.processes.isolation import ProcessEnding, run_in_process
from turnloom.errors import DefinitionError, Diagnostic, UsageError

log = logging.getLogger("turnloom.check")

# Returns the problems of a path, and calls the function before each code file runs.
Examine = Callable[[str, Callable[[str], None]], list[Diagnostic]]


@dataclass(frozen=True)
class _Running:
    """Sent before the code of a file runs."""

    path: str
    file: str


@dataclass(frozen=True)
class _Examined:
    """Sent after the check of a path."""

    path: str
    problems: list[Diagnostic]


class Examination:
    """Checks paths in one process. If users' code ends it, another process continues with the
    remaining paths, without that file."""

    def __init__(self, examine: Examine, limit: float) -> None:
        self._examine = examine
        self._limit = limit
        self._refused: dict[_Running, Diagnostic] = {}

    def problems(self, paths: Sequence[str]) -> Iterator[tuple[str, list[Diagnostic]]]:
        """Yield each path with its problems, in order.

        Raises:
            UsageError: a path cannot be checked.
        """
        left = [*paths]
        while left:
            for path, found in self._some(left):
                yield path, found
                left.remove(path)

    def _some(self, paths: Sequence[str]) -> Iterator[tuple[str, list[Diagnostic]]]:
        """Yield the problems of paths in order, until users' code ends the process."""
        running = _Running(paths[0], paths[0])
        for received in run_in_process(partial(self._perform, paths), self._limit):
            match received:
                case _Running():
                    running = received
                case _Examined(path, found):
                    yield path, found
                case Exception():
                    raise received
                case ending:
                    problem = self._problem(running, ending)
                    if running in self._refused:
                        yield running.path, [problem]
                    self._refused[running] = problem

    def _perform(self, paths: Sequence[str], send: Callable[[Any], None]) -> None:
        """In the process: send the problems of each path, and the name of each file before its code
        runs."""
        try:
            for path in paths:
                running = _Running(path, path)
                send(running)

                def loading(file: str, path: str = path) -> None:
                    nonlocal running
                    if (now := _Running(path, file)) != running:
                        running = now
                        send(now)
                    if now in self._refused:
                        raise DefinitionError(path, [self._refused[now]])

                send(_Examined(path, self._examine(path, loading)))
        except UsageError as error:
            send(UsageError(str(error)))
        except Exception as error:
            log.debug("The check failed.", exc_info=True)
            send(RuntimeError(f"{type(error).__name__}: {error}"))

    def _problem(self, running: _Running, ending: ProcessEnding) -> Diagnostic:
        path = join(dirname(abspath(running.path)), running.file)
        lines = (line for file, line in ending.frames if file == path)
        message, remedy = _message(ending.code, self._limit)
        return Diagnostic(running.file, next(lines, 1), "W042", message, remedy=remedy)


def _message(code: int | None, limit: float) -> tuple[str, str]:
    """Message and remedy for the exit code of a process."""
    if code is None:
        return (
            f"The code file does not load: it takes longer than {limit:g} s.",
            "Do that work in a function, or give it more time: `--timeout SECONDS`.",
        )
    if code < 0:
        return (
            f"The code file does not load: it ends the process by {signal.Signals(-code).name}.",
            "Fix the error. Run the file with `python` to see it.",
        )
    return (
        f"The code file does not load: it ends the process with exit code {code}.",
        "Raise an error instead, or do it in a function.",
    )
