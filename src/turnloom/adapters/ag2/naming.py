"""Models by their names."""

from dataclasses import replace
from typing import Any

from ag2 import config as configs
from ag2.config import LLMClient, ModelConfig

from turnloom.adapters.ag2.endings import tap
from turnloom.agents.logic.trouble import reason_of
from turnloom.errors import UsageError

# The providers that names begin with, and what AG2 calls the configuration of each.
PROVIDERS = {
    "anthropic": "AnthropicConfig",
    "bedrock": "BedrockConfig",
    "dashscope": "DashScopeConfig",
    "gemini": "GeminiConfig",
    "mistral": "MistralConfig",
    "ollama": "OllamaConfig",
    "openai": "OpenAIResponsesConfig",
    "openai-chat": "OpenAIConfig",
    "vertexai": "VertexAIConfig",
    "xai": "XAIConfig",
    "zai": "ZAIConfig",
}


class Models:
    """The models that one engine asks, the default one looked for at once.

    A name says its provider, as in `openai:gpt-5`, unless all are reached by one `base_url`.
    """

    def __init__(
        self,
        default: str | ModelConfig | None,
        base_url: str | None = None,
        api_key: str | None = None,
    ) -> None:
        self._default = default
        self._common: dict[str, str] = {}
        if base_url is not None:
            self._common = {"base_url": base_url, "api_key": api_key or "none"}
        if default is not None:
            self.client(None)

    def named(self, name: str | None) -> ModelConfig:
        """The configuration of the model of that name, or of the one asked when none is named.

        Raises:
            UsageError: there is none, or its provider is not known.
        """
        chosen = name or self._default
        if chosen is None:
            raise UsageError(
                "No model is named. Say `model` for the agent or the orchestrator, as in "
                "'openai:gpt-5', or give the engine one."
            )
        return self._configured(chosen) if isinstance(chosen, str) else chosen

    def client(self, name: str | None) -> LLMClient:
        """What asks the model of that name.

        Raises:
            UsageError: it cannot be asked.
        """
        config = self.named(name)
        try:
            return tap(config.create())
        except Exception as error:  # whatever a provider's library says to a lack of settings
            raise UsageError(
                f"Model {config.model!r} cannot be asked. {reason_of(error)}"
            ) from error

    def _configured(self, name: str) -> ModelConfig:
        """A configuration that streams, and leaves trying again to us: two who do try often."""
        provider, _, model = ("openai-chat", "", name) if self._common else name.partition(":")
        if provider not in PROVIDERS or not model:
            known = ", ".join(PROVIDERS)
            raise UsageError(
                f"Model {name!r} cannot be asked. Say its provider, as in 'openai:gpt-5'. AG2 "
                f"knows: {known}."
            )
        wanted: dict[str, Any] = {"streaming": True, "max_retries": 0, **self._common}
        try:
            made: Any = getattr(configs, PROVIDERS[provider])(model=model)
        except ImportError as error:
            raise UsageError(f"Model {name!r} cannot be asked. {reason_of(error)}") from error
        return replace(made, **{key: wanted[key] for key in wanted if hasattr(made, key)})
