"""How answers end, as OpenAI's client reads it and AG2 does not tell."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from turnloom.agents.logic.endings import note


def tap(client: Any) -> Any:
    """A client of AG2 whose answers are noted, if it asks by one of OpenAI's protocols."""
    inner = getattr(client, "_client", None)
    for name in ("chat.completions", "responses"):
        asks: Any = inner
        for part in name.split("."):
            asks = getattr(asks, part, None)
        create = getattr(asks, "create", None)
        if create is not None and not hasattr(create, "is_noting"):
            asks.create = _noting(create)
    return client


def _noting(create: Any) -> Any:
    async def noted(**request: Any) -> Any:
        given = await create(**request)
        if hasattr(given, "_iterator"):  # a stream, which AG2 knows by its class
            given._iterator = _streamed(given._iterator)
        else:
            note(given)
        return given

    noted.is_noting = True  # pyright: ignore[reportFunctionMemberAccess]
    return noted


async def _streamed(pieces: Any) -> AsyncGenerator[Any]:
    async with aclosing(pieces):
        async for piece in pieces:
            note(piece)
            yield piece
