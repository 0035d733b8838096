"""Models of real providers, by the suite that every engine passes."""

from tests.support.engines import ByAddress, ByName
from turnloom.adapters.pydantic_ai import PydanticAIEngine


class TestPydanticAI(ByAddress):
    kind = PydanticAIEngine


class TestPydanticAIByName(ByName):
    kind = PydanticAIEngine
