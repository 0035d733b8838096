"""The suite of engines sees what reaches a model without being the task's or said to be added."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest

from tests.support.raising import raising
from turnloom.adapters.pydantic_ai import PydanticAIEngine
from turnloom.agents.spec import Answer, Engine, Task, ToolSchema
from turnloom.testing import LoopbackModel
from turnloom.testing.contracts.engines.tools import ShowingContract
from turnloom.testing.contracts.facts import PATIENCE

HELPER = ToolSchema("help", "Ask for help.", {"type": "object", "properties": {}})


class Meddling(ShowingContract):
    """An engine that changes tasks before it asks, or answers after."""

    def __init__(
        self,
        before: Callable[[Task], Task] = lambda task: task,
        after: Callable[[Answer], Answer] = lambda answer: answer,
    ) -> None:
        self._before = before
        self._after = after

    @asynccontextmanager
    async def fresh(
        self, model: LoopbackModel, *, silence: float = PATIENCE
    ) -> AsyncIterator[Engine]:
        inner = PydanticAIEngine("any", base_url=model.url)

        async def ask(task: Task) -> Answer:
            return self._after(await inner(self._before(task)))

        yield ask


def kinder(task: Task) -> Task:
    return msgspec.structs.replace(task, system=f"{task.system} Be kind.")


def helped(task: Task) -> Task:
    return msgspec.structs.replace(task, tools=(*task.tools, HELPER))


def silent(answer: Answer) -> Answer:
    return msgspec.structs.replace(answer, added=())


def boasting(answer: Answer) -> Answer:
    return msgspec.structs.replace(answer, added=(*answer.added, "Be kind."))


@pytest.mark.parametrize(
    ("suite", "values"),
    [
        (Meddling(kinder), ["Be kind"]),
        (Meddling(helped), ["help", "Ask for help"]),
        (Meddling(after=silent), ["Go on"]),
        (Meddling(after=boasting), ["Be kind"]),
    ],
)
async def test_what_is_not_accounted_for_is_told(suite: ShowingContract, values: list[str]) -> None:
    with raising(AssertionError, *values):
        await suite.test_no_message_yet()


async def test_what_is_accounted_for_passes() -> None:
    await Meddling(
        kinder,
        lambda it: msgspec.structs.replace(it, added=(*it.added, "You add numbers. Be kind.")),
    ).test_no_message_yet()
