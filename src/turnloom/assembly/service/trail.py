"""Calls of providers: who is asked inside whom, for how long, and what came of it."""

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from functools import wraps
from typing import NamedTuple, TypeVar, cast

import anyio

from turnloom.assembly.events import ProviderCall, ProviderFailed
from turnloom.assembly.logic.descriptions import name_of
from turnloom.assembly.logic.origins import Known
from turnloom.assembly.logic.slices import Settled, settle
from turnloom.assembly.service.instances import Instance, instance_for
from turnloom.assembly.spec import ContextProvider, ContextRequest, ContextSlice
from turnloom.board.spec import Artifact

P = TypeVar("P")


class Trail:
    """The calls of one gathering, and those who failed; `witnessed` is what the board gave out in
    it so far."""

    def __init__(self, inputs: Sequence[Artifact] = (), witnessed: Sequence[Artifact] = ()) -> None:
        self._inputs = inputs
        self._witnessed = witnessed
        self.calls: list[ProviderCall] = []
        self.failures: list[ProviderFailed] = []

    def known(self, instance: Instance | None = None) -> Known:
        """The artifacts that providers were given until now, as they were; and who may see what an
        instance makes of them and of what it was given before."""
        known = Known([*self._inputs, *self._witnessed])
        if instance is not None:
            known.visibility = instance.see(known.visibility)
        return known


class Place(NamedTuple):
    """Where in a trail a call stands."""

    trail: Trail
    provider: ContextProvider | None = None
    path: str = ""


# The call that is going on; tasks and threads that a provider starts belong to it.
HERE: ContextVar[Place] = ContextVar("turnloom_provider")


async def ask(provider: ContextProvider, request: ContextRequest, name: str = "") -> Settled:
    """What a provider gives, checked, each item with its origin; the call is on the trail.

    Raises:
        ContextUnavailable: what it gives is no slice.
    """
    outside = HERE.get(None) or Place(Trail())
    trail, path = outside.trail, "/".join(filter(None, (outside.path, name or name_of(provider))))
    number, begun = len(trail.calls), anyio.current_time()
    trail.calls.append(ProviderCall(path, 0, 0))
    count, error = 0, ""
    instance = instance_for(provider, request)
    own = instance.provider or provider
    token = HERE.set(Place(trail, own, path))
    try:
        given = await own(request)
        settled = settle(given, request.inputs, path, trail.known(instance))
        count = len(settled.items)
        return settled
    except BaseException as caught:
        error = type(caught).__name__
        raise
    finally:
        HERE.reset(token)
        micros = round((anyio.current_time() - begun) * 1_000_000)
        trail.calls[number] = ProviderCall(path, count, micros, error)


def traced(
    call: Callable[[P, ContextRequest], Awaitable[ContextSlice]],
) -> Callable[[P, ContextRequest], Awaitable[ContextSlice]]:
    """The `__call__` of a provider such that the call is on the trail whoever makes it."""

    @wraps(call)
    async def asked(provider: P, request: ContextRequest) -> ContextSlice:
        here = HERE.get(None)
        if here is not None and here.provider is provider:
            return await call(provider, request)
        items, metadata, inputs = await ask(cast(ContextProvider, provider), request)
        return ContextSlice([*items], metadata, inputs)

    return asked
