"""Recorded answers of a model, replayed without it."""

import json
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path as FilePath
from types import TracebackType
from typing import Any, Self

import anyio
import msgspec

from turnloom.adapters.scripted import pieces
from turnloom.agents.logic.answers import as_answer
from turnloom.agents.spec import Answer, Engine, Task, Usage
from turnloom.errors import EngineError, UsageError
from turnloom.kernel.values import as_data, canonical, preview

# Values that are left out of requests and answers.
EMPTY = ("", (), None, Usage())


class RecordedAnswer(msgspec.Struct, frozen=True):
    """A request to an engine, without secrets, and its answer."""

    request: dict[str, Any]
    answer: dict[str, Any]


class RecordedEngine:
    """Records the answers of an engine to a file, then replays them.

    If the file is missing, `make` makes the engine, and its answers are written when the block ends
    without an error. Otherwise they are replayed, and a request that was not recorded is an error.
    """

    def __init__(self, file: str | FilePath, make: Callable[[], Engine]) -> None:
        self._file = anyio.Path(file)
        self._make = make
        self._engine: Engine | None = None
        self._kept: list[RecordedAnswer] = []
        self._given: set[int] = set()

    async def __aenter__(self) -> Self:
        if not await self._file.exists():
            self._engine = self._make()
            if getattr(self._engine, "takes_variables", False):
                raise UsageError("Cannot record an engine that changes variables. Record a model.")
            return self
        try:
            self._kept = msgspec.json.decode(
                await self._file.read_bytes(), type=list[RecordedAnswer]
            )
        except msgspec.MsgspecError as error:
            raise UsageError(f"Invalid recording {self._file}: {error}") from error
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._engine is not None and error is None:
            text = json.dumps(msgspec.to_builtins(self._kept), indent=2, ensure_ascii=False)
            await self._file.write_text(f"{text}\n", "utf-8")

    async def __call__(self, task: Task) -> Answer:
        """The recorded answer; while recording, the answer of the engine.

        Raises:
            EngineError: no answer to this request was recorded.
        """
        request = request_of(task)
        if self._engine is not None:
            answer = as_answer(task, await self._engine(task))
            self._kept.append(RecordedAnswer(request, task.mask(_data_of(answer))))
            return answer
        answer = self._read(self._next_answer(request))
        if task.output is None:  # structured output is not streamed
            for piece in pieces(answer.text):
                task.say(piece)
        return answer

    def assert_complete(self) -> None:
        """Fail unless every recorded answer was used.

        Raises:
            EngineError: some were not.
        """
        left = len(self._kept) - len(self._given)
        if self._engine is None and left:
            raise EngineError(f"Unused answers in {self._file}: {left}.")

    def _read(self, kept: RecordedAnswer) -> Answer:
        try:
            return msgspec.convert(kept.answer, Answer)
        except msgspec.ValidationError as error:
            number = self._kept.index(kept) + 1
            raise EngineError(
                f"Invalid answer {number} in {self._file}: {error}. Undo the edit, or delete the "
                "file and record it again."
            ) from error

    def _next_answer(self, request: dict[str, Any]) -> RecordedAnswer:
        """The recorded answer to a request; identical requests get their answers in order."""
        fitting = [number for number, each in enumerate(self._kept) if each.request == request]
        for number in fitting:
            if number not in self._given:
                self._given.add(number)
                return self._kept[number]
        agent = request["agent"]
        if fitting:
            why = f"all {len(fitting)} answers to it were used"
        else:
            why = _nearest(request, self._kept)
        raise EngineError(
            f"No answer in {self._file} to this request of {agent!r}: {why}. Delete the file and "
            "record it again."
        )


def request_of(task: Task) -> dict[str, Any]:
    """The identity of a request, without secrets, run-specific values and empty fields."""
    fields = {
        "agent": task.agent,
        "model": task.model,
        "system": task.system,
        "messages": tuple((message.author, message.text) for message in task.transcript),
        "tools": task.tools,
        "output": task.output,
        "exchanges": task.exchanges,
    }
    return task.mask(_plain(fields))


def _data_of(answer: Answer) -> dict[str, Any]:
    """An answer as JSON, without empty fields.

    Raises:
        EngineError: it has artifacts.
    """
    if answer.artifacts:
        raise EngineError("Cannot record an answer with artifacts. Return text or output.")
    return _plain(msgspec.structs.asdict(answer))


def _plain(parts: Mapping[str, Any]) -> dict[str, Any]:
    """The values as decoded from JSON, without empty fields."""
    fields = {key: value for key, value in parts.items() if value not in EMPTY}
    return msgspec.json.decode(msgspec.json.encode(fields))


def _nearest(request: Mapping[str, Any], kept: Sequence[RecordedAnswer]) -> str:
    """The most similar recorded request, and the first difference from it."""
    if not kept:
        return "the file is empty"
    text = canonical(dict(request))
    likeness = [SequenceMatcher(None, text, canonical(each.request)) for each in kept]
    number = max(range(len(kept)), key=lambda n: likeness[n].quick_ratio())
    other = kept[number].request
    keys = [key for key in (*request, *other) if request.get(key) != other.get(key)]
    now, then = (as_data(each.get(keys[0])) for each in (request, other))
    at = max(0, _first_difference(now, then) - 20)
    return (
        f"the most similar one, {number + 1} of {len(kept)}, differs in `{keys[0]}`: recorded "
        f"{preview(then[at:])}, requested {preview(now[at:])}"
    )


def _first_difference(one: str, other: str) -> int:
    """The index of the first difference between two texts."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
