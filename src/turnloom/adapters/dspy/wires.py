"""The way of a program's requests to its model."""

import asyncio
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

from dspy import LM
from dspy.lm15 import Message, Request, Response, TextPart
from dspy.lm15 import Usage as Tokens
from dspy.utils.exceptions import LMError

from turnloom.adapters.dspy.asking import ask, failure, may_pass
from turnloom.adapters.dspy.models import Model
from turnloom.adapters.dspy.requests import model_of, refusal_of, text_of, usage_of
from turnloom.agents.service.patience import attempts
from turnloom.agents.spec import Patience, Task, Usage
from turnloom.errors import EngineError, TurnloomError
from turnloom.kernel.digests import digest
from turnloom.kernel.values import Json


class Wire:
    """An engine of DSPy for one call of ours, with what went over it.

    What a model answered is on record at once, where the run's variables are: a program that
    is entered again hears it again. `before` goes before the instructions of each request.
    """

    def __init__(
        self, task: Task, name: str, model: Model, patience: Patience, before: str
    ) -> None:
        self.usage = Usage()
        self.model = self.ends = self.refusal = ""
        self.shown: list[str] = []
        self.trouble: TurnloomError | None = None
        self._task = task
        self._asked = model
        self._patience = patience
        self._name = name
        self._before = before
        self._counted: Counter[str] = Counter()
        self._threads = _Threads(self)

    def lm(self) -> LM:
        """The model as programs ask it, in the loop or from threads."""
        name = self._asked.name
        return LM(name, engine=self._threads, async_engine=self, cache=False, num_retries=0)

    async def complete(self, request: Request) -> Response:
        """The answer to a request: on record, or asked for with patience."""
        if self._before:
            system = f"{self._before}\n\n{_joined(request.system)}".strip()
            request = replace(request, system=system)
        self.shown += filter(None, (_joined(request.system), *map(_text, request.messages)))
        given = await self._once(request)
        usage = Usage(given["input_tokens"], given["output_tokens"])
        self.usage += usage
        self.model, self.ends = given["model"], given["ends"]
        self.refusal = given.get("refusal", "")
        message = Message("assistant", (TextPart(given["text"]),))
        tokens = Tokens(usage.input_tokens, usage.output_tokens)
        return Response(None, self.model, message, given["ends"], tokens)

    async def _once(self, request: Request) -> Any:
        effect = partial(self._answer, request)
        if self._task.variables is None:
            return await effect()
        name = digest(repr(request))
        self._counted[name] += 1
        return await self._task.variables.once(f"model:{name}#{self._counted[name]}", effect)

    async def _answer(self, request: Request) -> Json:
        trying = attempts(self._patience, may_pass)
        try:
            response: Response = await trying(partial(ask, self._asked.lm, request))
        except (LMError, TimeoutError) as error:
            tried = trying.statistics["attempt_number"]
            self.trouble = failure(error, self._name, tried, self._patience)
            raise
        usage = usage_of(response)
        return {
            "text": text_of(response),
            "model": model_of(response),
            "ends": response.finish_reason,
            "refusal": refusal_of(response),
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
        }

    def cut(self) -> None:
        """Let go of what threads of the program still wait for."""
        self._threads.cut()


class _Threads:
    """A wire as threads use it, which may wait."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._under_way: set[asyncio.Task[Any] | None] = set()
        self._is_cut = False

    def complete(self, request: Request) -> Response:
        """The answer to a request."""
        return asyncio.run_coroutine_threadsafe(self._completed(request), self._loop).result()

    async def _completed(self, request: Request) -> Response:
        if self._is_cut:
            raise EngineError("The call of this program is over.")
        task = asyncio.current_task()
        self._under_way.add(task)
        try:
            return await self._wire.complete(request)
        finally:
            self._under_way.discard(task)

    def cut(self) -> None:
        """Give up what is under way, and all that follows."""
        self._is_cut = True
        for task in filter(None, self._under_way):
            task.cancel()


def _text(message: Message) -> str:
    return _joined(message.parts)


def _joined(parts: Any) -> str:
    """Instructions or parts of a message as one text."""
    if parts is None or isinstance(parts, str):
        return parts or ""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))
