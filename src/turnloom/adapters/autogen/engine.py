"""An engine that asks models through AutoGen's clients, one request for each call of a turn."""

from functools import partial
from typing import Any

from autogen import OpenAIWrapper
from autogen.llm_config import LLMConfig
from pydantic import ValidationError

from turnloom.adapters.autogen.asking import ModelAsker
from turnloom.adapters.autogen.clients import BRIDGED, Clients, Config
from turnloom.adapters.autogen.forms import answer_of, request_of
from turnloom.agents.logic.dialogues import spelled
from turnloom.agents.logic.trouble import reason_of, unset
from turnloom.agents.spec import Answer, Patience, Task
from turnloom.errors import UsageError

# What `openai` is called where both of OpenAI's protocols are spoken.
CHAT = "openai-chat"

# The values of `api_type` that names may begin with.
PROVIDERS = (
    *BRIDGED,
    *("anthropic", "bedrock", "cerebras", "cohere", "google", "groq", "mistral"),
    *("ollama", "together"),
)


class AutogenModels:
    """The models that one engine asks, the default one looked for at once.

    A name says its provider, as in `openai:gpt-5`, unless all are reached by one `base_url`.
    """

    def __init__(
        self,
        default: str | dict[str, Any] | LLMConfig | None,
        base_url: str | None = None,
        api_key: str | None = None,
    ) -> None:
        self._default = default
        self._common: dict[str, Any] = {}
        self._found: dict[str | None, Clients] = {}
        if base_url is not None:
            self._common = {"base_url": base_url, "api_key": api_key or "none"}
        if default is not None:
            self.named(None)

    def named(self, name: str | None) -> Clients:
        """What asks the model of that name, or the one that is asked when none is named.

        Raises:
            UsageError: there is none, or it cannot be asked.
        """
        if name not in self._found:  # to look for one costs as much as to ask it
            self._found[name] = self._looked_up(name or self._default)
        return self._found[name]

    def _looked_up(self, chosen: str | dict[str, Any] | LLMConfig | None) -> Clients:
        if chosen is None:
            raise UsageError(
                "No model is named. Say `model` for the agent or the orchestrator, as in "
                "'openai:gpt-5', or give the engine one."
            )
        entry = self._entry(chosen) if isinstance(chosen, str) else chosen
        try:
            entries = LLMConfig.ensure_config(entry).config_list
            found = [alone(each.model_dump(exclude_none=True)) for each in entries]
            OpenAIWrapper(config_list=found)
        except Exception as error:  # whatever a provider's library says to a lack of settings
            raise UsageError(f"Model {str(chosen)!r} cannot be asked. {_reason(error)}") from error
        return Clients(found)

    def _entry(self, name: str) -> dict[str, Any]:
        """The entry of a `config_list` that a name stands for."""
        provider, _, model = (CHAT, "", name) if self._common else name.partition(":")
        if provider not in (CHAT, *PROVIDERS) or not model:
            raise UsageError(
                f"Model {name!r} cannot be asked. Say its provider, as in 'openai:gpt-5'. The "
                f"classic line of AG2 knows: {', '.join(PROVIDERS)}."
            )
        kind = "openai" if provider == CHAT else provider
        return {"api_type": kind, "model": model, **self._common}


def _reason(error: Exception) -> str:
    """Why a model cannot be asked, where its client does not say it in words for people, too."""
    if isinstance(error, ValidationError):
        lacking = ", ".join(str(each["loc"][-1]) for each in error.errors() if each["loc"])
        return (
            f"It needs settings that its name does not give: {lacking}. Give them to "
            "`AutogenEngine` as an entry of a `config_list`."
        )
    if isinstance(error, ValueError) and "Anthropic API" in str(error):
        return unset("ANTHROPIC_API_KEY")
    return reason_of(error)


def alone(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration whose client leaves trying again to us: two who do would try often."""
    return config | {"max_retries": 0} if config["api_type"] in BRIDGED else config


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
        self._models = AutogenModels(model, base_url, api_key)
        self._asking = ModelAsker(patience or Patience(), keep_open)

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
        return answer_of(task, names, await self._asking(task, clients.model, ask))

    async def aclose(self) -> None:
        """Part from the providers."""
        await self._asking.aclose()
