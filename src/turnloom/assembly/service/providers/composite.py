"""Several providers as one."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from turnloom.assembly.logic.items import Item, with_payload
from turnloom.assembly.logic.slices import Settled
from turnloom.assembly.service.trail import ask, traced
from turnloom.assembly.spec import ContextProvider, ContextRequest, ContextSlice
from turnloom.assembly.spec.providers import check_provider
from turnloom.errors import UsageError


class CompositeProvider:
    """Gives what its providers give, one after the other; of each artifact the first item.

    What one of them shows of the inputs is what the next one is given of them.
    """

    stateless = True

    def __init__(self, *providers: ContextProvider) -> None:
        if not providers:
            raise UsageError("CompositeProvider() has nobody to ask. Give it providers.")
        for number, each in enumerate(providers, 1):
            check_provider(each, f"Provider {number} of CompositeProvider")
        self._providers = providers
        self.declared: Mapping[str, object] = {"providers": providers}

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        return await compose([partial(ask, each) for each in self._providers], request)


async def compose(
    asks: Iterable[Callable[[ContextRequest], Awaitable[Settled]]], request: ContextRequest
) -> ContextSlice:
    """What is given for a request, one after the other; of each artifact the first item."""
    items: list[Item] = []
    metadata: dict[str, Any] = {}
    inputs: list[dict[str, Any]] | None = None
    for asked in asks:
        given = await asked(request)
        items += given.items
        metadata = {**given.metadata, **metadata}
        if given.inputs is not None:
            inputs = given.inputs
            shown = zip(request.inputs, inputs, strict=True)
            left = tuple(with_payload(artifact, each["payload"]) for artifact, each in shown)
            request = replace(request, inputs=left)
    return ContextSlice([*_once(items)], metadata, inputs)


def _once(items: Iterable[Item]) -> Iterator[Item]:
    """The items without those of an artifact that came before."""
    seen: set[str] = set()
    for each in items:
        if each.artifact not in seen:
            yield each
        if each.artifact:
            seen.add(each.artifact)
