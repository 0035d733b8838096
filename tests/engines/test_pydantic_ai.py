"""Models of real providers, by the suite that every engine passes."""

from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.support.engines import ByAddress, ByName
from turnloom.adapters.pydantic_ai import PydanticAIEngine


class TestPydanticAI(ByAddress):
    kind = PydanticAIEngine


class TestPydanticAIByName(ByName):
    kind = PydanticAIEngine


def test_it_knows_the_windows_that_pydantic_ai_knows() -> None:
    provider = OpenAIProvider(api_key="none")
    own = OpenAIChatModel("mine", provider=provider, profile={"context_window": 8000})
    known = OpenAIChatModel("gpt-4o", provider=provider)
    assert PydanticAIEngine(own).context_window(None) == 8000
    assert PydanticAIEngine(known).context_window(None) == 128_000
    assert PydanticAIEngine("mine", base_url="http://127.0.0.1:1/v1").context_window(None) is None
