"""Calls of providers: who is asked inside whom, for how long, and one instance per audience."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from copy import deepcopy
from functools import wraps
from typing import NamedTuple, TypeVar, cast
from weakref import ref

import anyio

from turnloom.assembly.events import ProviderCall, ProviderFailed
from turnloom.assembly.logic.descriptions import name_of
from turnloom.assembly.logic.labels import together
from turnloom.assembly.logic.slices import KnownArtifacts, Settled, settle
from turnloom.assembly.spec import ContextProvider, ContextRequest, ContextSlice
from turnloom.board.spec import Artifact, Audience
from turnloom.errors import ContextUnavailable
from turnloom.kernel.values import said

# How many audiences of a provider are remembered; one that was not asked for longest begins anew.
MOST = 256

# The tenant and the user of the run; the agent, its labels and its tenant.
_Key = tuple[str, str, str, frozenset[str], str]


class Instance:
    """A provider as one audience has it; `seen` is who may see all that it was given so far."""

    __slots__ = ("provider", "seen")

    def __init__(self, provider: ContextProvider | None) -> None:
        self.provider = provider
        self.seen: Audience = ()

    def see(self, visibility: Audience) -> Audience:
        """Take notice of what it is given, which it may keep and show later."""
        self.seen = together((*self.seen, *visibility))
        return self.seen


class _Instances:
    """The instances of a provider. The first audience has the provider itself, and others have
    copies of what it was before it was first asked."""

    def __init__(self, provider: ContextProvider) -> None:
        self._by_audience: OrderedDict[_Key, Instance] = OrderedDict()
        self._fresh: ContextProvider | None = None
        self._trouble = ""
        try:
            self._fresh = deepcopy(provider)
        except Exception as error:  # noqa: BLE001 - told when another audience asks
            self._trouble = f"{type(error).__name__}: {said(error)}"
        self.is_stateless = self._fresh is provider  # a function

    def of(self, audience: _Key, provider: ContextProvider) -> Instance:
        """What an audience has; nothing in it stands for the provider itself."""
        found = self._by_audience.pop(audience, None)
        if found is None:
            found = Instance(self._copy(provider) if self._by_audience else None)
        self._by_audience[audience] = found
        if len(self._by_audience) > MOST:
            self._by_audience.popitem(last=False)
        return found

    def _copy(self, provider: ContextProvider) -> ContextProvider:
        if self._fresh is None:
            raise ContextUnavailable(
                f"Provider {name_of(provider)!r} is asked for several audiences, and cannot be "
                f"copied for each: {self._trouble}. Give each agent its own, or say that it keeps "
                "nothing of what it is asked: `stateless = True` in its class."
            )
        return deepcopy(self._fresh)


# By identity: a provider need not be hashable, and two that are equal are two.
_instances: dict[int, tuple[object, _Instances]] = {}


def instance_for(provider: ContextProvider, request: ContextRequest) -> Instance:
    """The instance of a provider that answers a request: that of the request's audience.

    Raises:
        ContextUnavailable: it is another audience's, and cannot be copied.
    """
    if getattr(provider, "stateless", False) is True:
        return Instance(None)
    known = _instances.get(id(provider))
    if known is None:
        known = _instances[id(provider)] = (_held(provider), _Instances(provider))
    if known[1].is_stateless:
        return Instance(None)
    run, agent = request.ctx.run, request.agent
    audience = run.tenant, run.user, agent.name, frozenset(agent.labels), agent.tenant
    return known[1].of(audience, provider)


def _held(provider: ContextProvider) -> object:
    """What keeps the identity of a provider from being taken for that of another."""
    # What is to be called is bound here: globals may be gone when the program ends.
    forget, key = _instances.pop, id(provider)
    try:
        return ref(provider, lambda _: forget(key, None))
    except TypeError:  # it cannot be referred to weakly
        return provider


P = TypeVar("P")


class Trail:
    """The calls of one gathering, and those who failed; `witnessed` is what the board gave out in
    it so far."""

    def __init__(self, inputs: Sequence[Artifact] = (), witnessed: Sequence[Artifact] = ()) -> None:
        self._inputs = inputs
        self._witnessed = witnessed
        self.calls: list[ProviderCall] = []
        self.failures: list[ProviderFailed] = []

    def known(self, instance: Instance | None = None) -> KnownArtifacts:
        """The artifacts that providers were given until now, as they were; and who may see what an
        instance makes of them and of what it was given before."""
        known = KnownArtifacts([*self._inputs, *self._witnessed])
        if instance is not None:
            known.visibility = instance.see(known.visibility)
        return known


class TrailPosition(NamedTuple):
    """Where in a trail a call stands."""

    trail: Trail
    provider: ContextProvider | None = None
    path: str = ""


# The call that is going on; tasks and threads that a provider starts belong to it.
HERE: ContextVar[TrailPosition] = ContextVar("turnloom_provider")


async def ask(provider: ContextProvider, request: ContextRequest, name: str = "") -> Settled:
    """What a provider gives, checked, each item with its origin; the call is on the trail.

    Raises:
        ContextUnavailable: what it gives is no slice.
    """
    outside = HERE.get(None) or TrailPosition(Trail())
    trail, path = outside.trail, "/".join(filter(None, (outside.path, name or name_of(provider))))
    number, begun = len(trail.calls), anyio.current_time()
    trail.calls.append(ProviderCall(path, 0, 0))
    count, error = 0, ""
    instance = instance_for(provider, request)
    own = instance.provider or provider
    token = HERE.set(TrailPosition(trail, own, path))
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
