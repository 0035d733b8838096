"""Answers of a model, recorded once and given again without it."""

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

# What a request or an answer need not say.
NOTHING = ("", (), None, Usage())


class RecordedAnswer(msgspec.Struct, frozen=True):
    """A request as an engine was given it, without secrets, and its answer."""

    request: dict[str, Any]
    answer: dict[str, Any]


class RecordedEngine:
    """Answers from a file, as an engine did when the file was made.

    If the file is not there, `make` makes the engine that is asked, and the file is written when
    the block ends well. If it is there, nobody is asked; what was not recorded is an error.
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
                raise UsageError("What an engine does to variables is not recorded. Ask a model.")
            return self
        try:
            self._kept = msgspec.json.decode(
                await self._file.read_bytes(), type=list[RecordedAnswer]
            )
        except msgspec.MsgspecError as error:
            raise UsageError(f"{self._file} holds no recorded answers: {error}") from error
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
        """The recorded answer, or that of the engine, which is recorded.

        Raises:
            EngineError: no answer to such a request was recorded.
        """
        request = request_of(task)
        if self._engine is not None:
            answer = as_answer(task, await self._engine(task))
            self._kept.append(RecordedAnswer(request, task.mask(_data_of(answer))))
            return answer
        answer = self._read(self._found(request))
        if task.output is None:  # nobody reads half an output
            for piece in pieces(answer.text):
                task.say(piece)
        return answer

    def assert_complete(self) -> None:
        """Fail unless every recorded answer was asked for.

        Raises:
            EngineError: some were not.
        """
        left = len(self._kept) - len(self._given)
        if self._engine is None and left:
            raise EngineError(f"{self._file} holds answers that nobody asked for: {left}.")

    def _read(self, kept: RecordedAnswer) -> Answer:
        try:
            return msgspec.convert(kept.answer, Answer)
        except msgspec.ValidationError as error:
            number = self._kept.index(kept) + 1
            raise EngineError(
                f"{self._file} has no answer at number {number}: {error}. Undo what was edited "
                "there, or delete the file and record it again."
            ) from error

    def _found(self, request: dict[str, Any]) -> RecordedAnswer:
        """What was recorded for a request; the same one made twice gets one answer after the
        other."""
        fitting = [number for number, each in enumerate(self._kept) if each.request == request]
        for number in fitting:
            if number not in self._given:
                self._given.add(number)
                return self._kept[number]
        agent = request["agent"]
        how = f"was recorded {len(fitting)} times" if fitting else _nearest(request, self._kept)
        raise EngineError(
            f"{self._file} has no answer to this request of {agent!r}: it {how}. Delete the file "
            "and record it again."
        )


def request_of(task: Task) -> dict[str, Any]:
    """What tells a request from others, without secrets and without what differs from run to run;
    what is empty is left out."""
    said = {
        "agent": task.agent,
        "model": task.model,
        "system": task.system,
        "messages": tuple((message.author, message.text) for message in task.transcript),
        "tools": task.tools,
        "output": task.output,
        "exchanges": task.exchanges,
    }
    return task.mask(_plain(said))


def _data_of(answer: Answer) -> dict[str, Any]:
    """An answer as data; what is empty is left out.

    Raises:
        EngineError: it publishes values, which are no data.
    """
    if answer.artifacts:
        raise EngineError("An answer that holds artifacts cannot be recorded. Let it say data.")
    return _plain(msgspec.structs.asdict(answer))


def _plain(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Parts as they come back from a file; what is empty is left out."""
    said = {key: value for key, value in parts.items() if value not in NOTHING}
    return msgspec.json.decode(msgspec.json.encode(said))


def _nearest(request: Mapping[str, Any], kept: Sequence[RecordedAnswer]) -> str:
    """Which recorded request is most like another one, and where the two part."""
    if not kept:
        return "is the only one, as the file is empty"
    text = canonical(dict(request))
    likeness = [SequenceMatcher(None, text, canonical(each.request)) for each in kept]
    number = max(range(len(kept)), key=lambda n: likeness[n].quick_ratio())
    other = kept[number].request
    keys = [key for key in (*request, *other) if request.get(key) != other.get(key)]
    now, then = (as_data(each.get(keys[0])) for each in (request, other))
    at = max(0, _parting(now, then) - 20)
    return (
        f"is most like number {number + 1} of {len(kept)}, but differs in `{keys[0]}`, where "
        f"{preview(then[at:])} was recorded and {preview(now[at:])} is asked"
    )


def _parting(one: str, other: str) -> int:
    """Where two texts begin to differ."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
