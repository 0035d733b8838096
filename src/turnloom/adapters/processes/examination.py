"""Checks of workflows in a process of their own, since users' code may end it or never end."""

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

# Finds the problems of a path, and calls a function before each code file of it runs.
Examine = Callable[[str, Callable[[str], None]], list[Diagnostic]]


@dataclass(frozen=True)
class _Running:
    """The code of a file runs from now on."""

    path: str
    file: str


@dataclass(frozen=True)
class _Examined:
    """What is wrong with a path."""

    path: str
    problems: list[Diagnostic]


class Examination:
    """The problems of paths, found in one process; another one takes over where users' code ends
    it, and does not run that file again."""

    def __init__(self, examine: Examine, limit: float) -> None:
        self._examine = examine
        self._limit = limit
        self._refused: dict[_Running, Diagnostic] = {}

    def problems(self, paths: Sequence[str]) -> Iterator[tuple[str, list[Diagnostic]]]:
        """Each path with its problems, in order.

        Raises:
            UsageError: a path names nothing that can be checked.
        """
        left = [*paths]
        while left:
            for path, found in self._some(left):
                yield path, found
                left.remove(path)

    def _some(self, paths: Sequence[str]) -> Iterator[tuple[str, list[Diagnostic]]]:
        """The problems of some of the paths, in order: of all of them, if no code ends the
        process."""
        running = _Running(paths[0], paths[0])
        for said in run_in_process(partial(self._perform, paths), self._limit):
            match said:
                case _Running():
                    running = said
                case _Examined(path, found):
                    yield path, found
                case Exception():
                    raise said
                case ending:
                    problem = self._problem(running, ending)
                    if running in self._refused:
                        yield running.path, [problem]
                    self._refused[running] = problem

    def _perform(self, paths: Sequence[str], say: Callable[[Any], None]) -> None:
        """In the process: say what is wrong with each path, and whose code runs until then."""
        try:
            for path in paths:
                running = _Running(path, path)
                say(running)

                def loading(file: str, path: str = path) -> None:
                    nonlocal running
                    if (now := _Running(path, file)) != running:
                        running = now
                        say(now)
                    if now in self._refused:
                        raise DefinitionError(path, [self._refused[now]])

                say(_Examined(path, self._examine(path, loading)))
        except UsageError as error:
            say(UsageError(str(error)))
        except Exception as error:
            log.debug("The check failed.", exc_info=True)
            say(RuntimeError(f"{type(error).__name__}: {error}"))

    def _problem(self, running: _Running, ending: ProcessEnding) -> Diagnostic:
        path = join(dirname(abspath(running.path)), running.file)
        lines = (line for file, line in ending.frames if file == path)
        message, remedy = _words(ending.code, self._limit)
        return Diagnostic(running.file, next(lines, 1), "W042", message, remedy=remedy)


def _words(code: int | None, limit: float) -> tuple[str, str]:
    """What a process came to by its exit code, and what to do."""
    if code is None:
        return (
            f"The code file does not load: it takes longer than {limit:g} s.",
            "Do that work in a function, or give it more time: `--timeout SECONDS`.",
        )
    if code < 0:
        return (
            f"The code file does not load: it ends the process by {signal.Signals(-code).name}.",
            "Correct it; `python` shows the same for the file.",
        )
    return (
        f"The code file does not load: it ends the process with exit code {code}.",
        "Raise an error instead, or do it in a function.",
    )
