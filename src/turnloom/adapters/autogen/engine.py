"""Engine that calls models through AutoGen's clients, one request per model call of a turn."""

from functools import partial
from typing import Any

from autogen import OpenAIWrapper
from autogen.llm_config import LLMConfig
from pydantic import ValidationError

from turnloom.adapters.autogen.asking import ModelAsker
from turnloom.adapters.autogen.clients import BRIDGED, Clients, Config
from turnloom.adapters.autogen.forms import answer_of, request_of
from turnloom.agents.logic.dialogues import spelled
from turnloom.agents.logic.model_errors import reason_of, unset
from turnloom.agents.spec import Answer, Patience, Task
from turnloom.errors import UsageError

# The provider prefix for OpenAI's chat protocol, as in other engines.
CHAT = "openai-chat"

# Provider prefixes of model names: values of `api_type`.
PROVIDERS = (
    *BRIDGED,
    *("anthropic", "bedrock", "cerebras", "cohere", "google", "groq", "mistral"),
    *("ollama", "together"),
)


class AutogenModels:
    """The models of one engine. The default model is created at once.

    A name includes the provider, as in `openai:gpt-5`, unless all models share one `base_url`.
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
        """The clients of the model with this name, or of the default model.

        Raises:
            UsageError: the model is unknown or not configured.
        """
        if name not in self._found:  # creating one is as expensive as a call
            self._found[name] = self._create(name or self._default)
        return self._found[name]

    def _create(self, chosen: str | dict[str, Any] | LLMConfig | None) -> Clients:
        if chosen is None:
            raise UsageError(
                "No model is configured. Set `model` for the agent or the orchestrator, as in "
                "'openai:gpt-5', or pass one to the engine."
            )
        entry = self._entry(chosen) if isinstance(chosen, str) else chosen
        try:
            entries = LLMConfig.ensure_config(entry).config_list
            found = [without_retries(each.model_dump(exclude_none=True)) for each in entries]
            OpenAIWrapper(config_list=found)
        except Exception as error:  # provider libraries raise any kind for missing settings
            raise UsageError(f"Cannot use model {str(chosen)!r}. {_reason(error)}") from error
        return Clients(found)

    def _entry(self, name: str) -> dict[str, Any]:
        """The `config_list` entry for a name."""
        provider, _, model = (CHAT, "", name) if self._common else name.partition(":")
        if provider not in (CHAT, *PROVIDERS) or not model:
            raise UsageError(
                f"Cannot use model {name!r}. Name its provider, as in 'openai:gpt-5'. Providers of "
                f"AutoGen: {', '.join(PROVIDERS)}."
            )
        kind = "openai" if provider == CHAT else provider
        return {"api_type": kind, "model": model, **self._common}


def _reason(error: Exception) -> str:
    """Why a model cannot be used, in plain words if its client has none."""
    if isinstance(error, ValidationError):
        missing = ", ".join(str(each["loc"][-1]) for each in error.errors() if each["loc"])
        return (
            f"It needs settings that are not part of its name: {missing}. Pass them to "
            "`AutogenEngine` as an entry of a `config_list`."
        )
    if isinstance(error, ValueError) and "Anthropic API" in str(error):
        return unset("ANTHROPIC_API_KEY")
    return reason_of(error)


def without_retries(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration with the client's own retries turned off: the engine retries."""
    return config | {"max_retries": 0} if config["api_type"] in BRIDGED else config


class AutogenEngine:
    """Calls the model of the agent, or else the default model.

    A model is a name with its `api_type`, as in `openai:gpt-5`, or a configuration of AutoGen: a
    `config_list` entry, or an `LLMConfig`. With `base_url`, every model is on that one server,
    which speaks OpenAI's protocol. With `keep_open`, connections stay open between calls, until
    `aclose`.
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
        """The model's answer to a task; transient failures are retried.

        Raises:
            ContextTooLarge: the task exceeds the model's context window.
            EngineError: the model fails or refuses the request.
            UsageError: the model is unknown, or none is configured.
        """
        clients = self._models.named(task.model)
        names = spelled(tool.name for tool in task.tools)
        ask = partial(clients.ask, request_of(task, names))
        return answer_of(task, names, await self._asking(task, clients.model, ask))

    async def aclose(self) -> None:
        """Close the connections to providers."""
        await self._asking.aclose()
