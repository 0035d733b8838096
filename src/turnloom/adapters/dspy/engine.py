"""An engine that asks models through DSPy, one request for each call of a turn."""

from functools import partial
from typing import Any

from dspy import LM
from dspy.lm15 import Config, Request, Response
from dspy.utils.exceptions import LMError

from turnloom.adapters.dspy.asking import ask, failure, is_oversized, may_pass
from turnloom.adapters.dspy.models import Models, named
from turnloom.adapters.dspy.requests import answer_of, request_of
from turnloom.agents.logic.endings import Ending, noting
from turnloom.agents.logic.spelling import spelled
from turnloom.agents.service.patience import attempts
from turnloom.agents.spec import Answer, Patience, Task


class DSPyEngine:
    """Asks the model that the agent names, or else this one.

    Models are named with their provider, as in `openai:gpt-5`; with `base_url`, they are those of
    one server that speaks OpenAI's protocol. `settings` go into each request. With `keep_open`,
    connections stay open between calls, until `aclose`.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        settings: Config | None = None,
        patience: Patience | None = None,
        keep_open: bool = False,
    ) -> None:
        self._default = model
        self._settings = settings or Config()
        self._patience = patience or Patience()
        self._models = Models(base_url, api_key, self._patience.timeout, are_kept=keep_open)
        if model is not None:
            self._models.made(model)  # whether it can be asked shows before a run starts

    async def __call__(self, task: Task) -> Answer:
        """What the model says to the task, asked again after trouble that may pass.

        Raises:
            ContextTooLarge: the task does not fit into the window of the model.
            EngineError: it does not answer, or refuses to.
            UsageError: no model is named, or there is none of that name.
        """
        name = named(task, self._default)
        names = spelled(tool.name for tool in task.tools)
        trying = attempts(self._patience, may_pass)
        async with self._models.opened(name) as model:
            request = request_of(task, names, model.name, self._settings)
            try:
                asked: tuple[Response, Ending] = await trying(
                    partial(_ask, task, model.lm, request)
                )
            except (LMError, TimeoutError) as error:
                tried = trying.statistics["attempt_number"]
                raise failure(error, name, tried, self._patience) from error
        return answer_of(task, names, *asked)

    async def aclose(self) -> None:
        """Part from the providers."""
        await self._models.aclose()


class _Ear:
    """Hears an answer while it is made, in the place of one of DSPy's streams."""

    def __init__(self, task: Task) -> None:
        self._say = task.say
        self._is_heard = task.output is None  # nobody reads half an output

    async def send(self, chunk: Any) -> None:
        """Take a piece."""
        words = chunk.choices[0].delta.content
        if words and self._is_heard:
            self._say(words)


async def _ask(task: Task, model: LM, request: Request) -> tuple[Response, Ending]:
    """One request, heard from its beginning while it is answered; one whose answer comes in larger
    pieces than DSPy reads is made again for a whole answer, which nobody hears."""
    task.say(None)
    ending = noting()
    try:
        return await ask(model, request, _Ear(task)), ending
    except LMError as error:
        if not is_oversized(error):
            raise
    task.say(None)
    ending = noting()
    return await ask(model, request), ending
