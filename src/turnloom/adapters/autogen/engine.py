"""An engine that asks models through AutoGen's clients, one request for each call of a turn."""

from functools import partial

from autogen.llm_config import LLMConfig

from turnloom.adapters.autogen.asking import Asking
from turnloom.adapters.autogen.clients import Config
from turnloom.adapters.autogen.forms import answer_of, request_of
from turnloom.adapters.autogen.naming import Models
from turnloom.agents.logic.spelling import spelled
from turnloom.agents.spec import Answer, Patience, Task


class AutogenEngine:
    """Asks the model that the agent names, or else this one.

    Models are named with the `api_type` of the classic line, as in `openai:gpt-5`, or are a
    configuration of it: an entry of a `config_list`, or an `LLMConfig`. With `base_url`, they are
    those of one server that speaks OpenAI's protocol. With `keep_open`, connections stay open
    between calls, until `aclose`.
    """

    def __init__(
        self,
        model: str | Config | LLMConfig | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        patience: Patience | None = None,
        keep_open: bool = False,
    ) -> None:
        self._models = Models(model, base_url, api_key)
        self._asking = Asking(patience or Patience(), keep_open)

    async def __call__(self, task: Task) -> Answer:
        """What the model says to the task, asked again after trouble that may pass.

        Raises:
            ContextTooLarge: the task does not fit into the window of the model.
            EngineError: it does not answer, or refuses to.
            UsageError: no model is named, or there is none of that name.
        """
        clients = self._models.named(task.model)
        names = spelled(tool.name for tool in task.tools)
        ask = partial(clients.ask, request_of(task, names))
        return answer_of(task, names, await self._asking(clients.model, ask, task.say))

    async def aclose(self) -> None:
        """Part from the providers."""
        await self._asking.aclose()
