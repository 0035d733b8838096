"""Calls of providers: their nesting and duration, and one instance per audience."""

import asyncio
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
from turnloom.assembly.logic.slices import CheckedSlice, KnownArtifacts, settle
from turnloom.assembly.spec import ContextProvider, ContextRequest, ContextSlice
from turnloom.board.spec import Artifact, Audience
from turnloom.errors import ContextUnavailable
from turnloom.kernel.values import error_text

# Maximum audiences per provider; the least recently used one starts anew.
MOST = 256

# The tenant and the user of the run; the agent, its labels and its tenant.
_Key = tuple[str, str, str, frozenset[str], str]


class Instance:
    """The instance of a provider for one audience; `seen` is the visibility of everything it
    received."""

    __slots__ = ("provider", "seen")

    def __init__(self, provider: ContextProvider | None) -> None:
        self.provider = provider
        self.seen: Audience = ()

    def see(self, visibility: Audience) -> Audience:
        """Add the visibility of something it receives, which it may keep and show later."""
        self.seen = together((*self.seen, *visibility))
        return self.seen


class _Instances:
    """The instances of a provider. The first audience gets the provider itself, others get copies
    of its initial state."""

    def __init__(self, provider: ContextProvider) -> None:
        self._by_audience: OrderedDict[_Key, Instance] = OrderedDict()
        self._fresh: ContextProvider | None = None
        self._copy_error = ""
        try:
            self._fresh = _copied(provider)
        except Exception as error:  # noqa: BLE001 - reported when a second audience needs a copy
            self._copy_error = f"{type(error).__name__}: {error_text(error)}"
        self.is_stateless = self._fresh is provider  # a function

    def of(self, audience: _Key, provider: ContextProvider) -> Instance:
        """The instance of an audience; one without a provider means the original."""
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
                f"Provider {name_of(provider)!r} serves several audiences and cannot be copied "
                f"for each: {self._copy_error}. Give each agent its own instance, or, if it keeps "
                "no data between requests, set `stateless = True` in its class."
            )
        return _copied(self._fresh)


def _copied(provider: ContextProvider) -> ContextProvider:
    """A copy of a provider. It has the same event loop: a copied one could not run, and half a copy
    of one reports an error when it is collected."""
    loop = asyncio.get_running_loop()
    return deepcopy(provider, {id(loop): loop})


# By identity: a provider may be unhashable, and equal providers are distinct.
_instances: dict[int, tuple[object, _Instances]] = {}


def instance_for(provider: ContextProvider, request: ContextRequest) -> Instance:
    """The instance of a provider for the audience of a request.

    Raises:
        ContextUnavailable: the audience needs a copy, and the provider cannot be copied.
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
    """A reference that prevents the reuse of a provider's id."""
    # Bound here because globals may be gone at interpreter exit.
    forget, key = _instances.pop, id(provider)
    try:
        return ref(provider, lambda _: forget(key, None))
    except TypeError:  # no weak references
        return provider


P = TypeVar("P")


class Trail:
    """The calls and failures of one gathering; `witnessed` are the artifacts that the board
    returned so far."""

    def __init__(self, inputs: Sequence[Artifact] = (), witnessed: Sequence[Artifact] = ()) -> None:
        self._inputs = inputs
        self._witnessed = witnessed
        self.calls: list[ProviderCall] = []
        self.failures: list[ProviderFailed] = []

    def known(self, instance: Instance | None = None) -> KnownArtifacts:
        """The artifacts that providers received so far, unchanged; and the visibility of what an
        instance makes of them and of earlier ones."""
        known = KnownArtifacts([*self._inputs, *self._witnessed])
        if instance is not None:
            known.visibility = instance.see(known.visibility)
        return known


class TrailPosition(NamedTuple):
    """The position of a call in a trail."""

    trail: Trail
    provider: ContextProvider | None = None
    path: str = ""


# The current call, inherited by tasks and threads that a provider starts.
HERE: ContextVar[TrailPosition] = ContextVar("turnloom_provider")


async def ask(provider: ContextProvider, request: ContextRequest, name: str = "") -> CheckedSlice:
    """Call a provider, validate its slice, and record the call on the trail.

    Raises:
        ContextUnavailable: it does not return a slice.
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
    """Wrap the `__call__` of a provider so that every call is on the trail."""

    @wraps(call)
    async def asked(provider: P, request: ContextRequest) -> ContextSlice:
        here = HERE.get(None)
        if here is not None and here.provider is provider:
            return await call(provider, request)
        items, metadata, inputs = await ask(cast(ContextProvider, provider), request)
        return ContextSlice([*items], metadata, inputs)

    return asked
