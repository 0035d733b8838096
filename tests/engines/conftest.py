"""A model on loopback where OpenAI's is looked for."""

from collections.abc import AsyncIterator

import pytest

from turnloom.testing import LoopbackModel, ModelRequest


@pytest.fixture
async def echoing(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LoopbackModel]:
    """A model that says its name, for `openai-chat:NAME`."""

    def name(request: ModelRequest) -> str:
        return f"I am {request.body['model']}."

    async with LoopbackModel(name) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        yield model
