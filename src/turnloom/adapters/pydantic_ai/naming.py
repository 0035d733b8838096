"""Models by their names."""

from functools import partial
from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from turnloom.agents.logic.trouble import reason_of
from turnloom.errors import UsageError


class Models:
    """The models that one engine asks, each made when it is first named, the default one at once.

    A name says its provider, as in `openai:gpt-5`, unless all are reached by one `base_url`.
    """

    def __init__(
        self, default: str | Model | None, base_url: str | None = None, api_key: str | None = None
    ) -> None:
        self._default = default
        self._made: dict[str, Model] = {}
        self._make = infer_model
        if base_url is not None:
            provider = OpenAICompatibleProvider(
                "openai-compatible", base_url=base_url, api_key=api_key or "none"
            )
            self._make = partial(OpenAIChatModel, provider=provider)
        if default is not None:
            self.named(None)

    def named(self, name: str | None) -> Model:
        """The model of that name, or the one that is asked when none is named.

        Raises:
            UsageError: there is none, or its provider cannot be asked.
        """
        chosen = name or self._default
        if isinstance(chosen, Model):
            return chosen
        if chosen is None:
            raise UsageError(
                "No model is named. Say `model` for the agent or the orchestrator, as in "
                "'openai:gpt-5', or give the engine one."
            )
        if chosen not in self._made:
            self._made[chosen] = self._open(chosen)
        return self._made[chosen]

    def _open(self, name: str) -> Model:
        make: Any = self._make
        try:
            return make(name)
        except (UserError, ImportError) as error:
            raise UsageError(f"Model {name!r} cannot be asked. {reason_of(error)}") from error
