"""What was said."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from turnloom.assembly.service.providers.reading import check_count
from turnloom.assembly.service.trail import traced
from turnloom.assembly.spec import ContextRequest, ContextSlice, Message
from turnloom.errors import UsageError


class TranscriptProvider:
    """Gives the conversation as the agent may see it: all of it, or the last messages, of all or of
    the agents that are named."""

    stateless = True

    def __init__(self, last: int | None = None, agents: Iterable[str] | None = None) -> None:
        check_count(last, "last")
        if isinstance(agents, str):
            raise UsageError(f"`agents` is {agents!r}. Give a set, as in {{{agents!r}}}.")
        self._last = last
        said = {"last": last, "agents": None if agents is None else sorted(agents)}
        self.declared: Mapping[str, object] = {
            name: value for name, value in said.items() if value is not None
        }
        self._agents = None if agents is None else frozenset(agents)
        if self._agents is not None and not self._agents:
            raise UsageError("`agents` names nobody. Name some, or leave it out for all.")

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        said = (each for each in reversed(request.ctx.run.transcript) if self._wants(each))
        return ContextSlice([_item(each) for each in [*islice(said, self._last)][::-1]])

    def _wants(self, message: Message) -> bool:
        return self._agents is None or message.author in self._agents


def _item(message: Message) -> dict[str, Any]:
    payload = {"author": message.author, "text": message.text}
    return {"type": "message", "payload": payload, "produced_by": message.author}
