"""Calls of providers, with the fallback in place of one that fails."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import msgspec

from turnloom.assembly.events import ProviderCall, ProviderFailed
from turnloom.assembly.logic.descriptions import (
    by_agent,
    describe_assembly,
    describe_provider,
    name_of,
)
from turnloom.assembly.logic.labels import together
from turnloom.assembly.logic.slices import (
    CheckedSlice,
    GatheredSlice,
    SliceItem,
    check_given,
    described,
    shown_inputs,
    with_payload,
)
from turnloom.assembly.service.providers import (
    DefaultCorrelationProvider,
    ReadNewest,
    compose,
    newest_for,
)
from turnloom.assembly.service.trail import HERE, Trail, TrailPosition, ask, traced
from turnloom.assembly.spec import ChosenProvider, ContextProvider, ContextRequest, ContextSlice
from turnloom.assembly.spec.sources import Assembly
from turnloom.board.spec import Artifact
from turnloom.errors import ContextUnavailable
from turnloom.kernel.contained import contained, error_name
from turnloom.kernel.deadlines import TimeLimit, in_time
from turnloom.kernel.values import error_text


async def gather(
    chosen: ChosenProvider, request: ContextRequest, *, witnessed: Sequence[Artifact]
) -> GatheredSlice:
    """The slice of the chosen provider, or of its fallback, for a turn.

    `witnessed` grows with the artifacts that the board of the request returns; a slice may show
    only those and the inputs.

    Raises:
        ContextUnavailable: neither returned a slice.
    """
    if is_own(chosen):
        newest, agent = newest_for(request), request.agent.name
        asked = OwnRequest(
            request.ctx.turn, agent, request.correlation_id, request.inputs, read_newest=newest
        )
        gathered = await gather_own(chosen, asked)
        if gathered is not None:
            return gathered
    trail = Trail(request.inputs, witnessed)
    token = HERE.set(TrailPosition(trail))
    try:
        given = await ask_chosen(chosen, request, trail)
    finally:
        HERE.reset(token)
    return _gathered(request, given, trail)


class OwnRequest(msgspec.Struct, frozen=True):
    """A turn as our default provider needs to know it."""

    turn: int
    agent: str
    correlation: str | None
    inputs: Sequence[Artifact]
    read_newest: ReadNewest


def is_own(chosen: ChosenProvider) -> bool:
    """Whether the provider is our default one, and not a subclass of it."""
    return type(chosen.provider) is DefaultCorrelationProvider


async def gather_own(chosen: ChosenProvider, request: OwnRequest) -> GatheredSlice | None:
    """The slice of our default provider: whole artifacts of the board, which need no checks. None
    if it fails; it is then called like any provider."""
    provider = chosen.provider
    assert isinstance(provider, DefaultCorrelationProvider)
    time = asyncio.get_running_loop().time
    name, begun = chosen.name or _OWN, time()
    try:
        async with asyncio.timeout(chosen.timeout):
            found, cut = await provider.find(
                request.correlation, request.inputs, request.read_newest
            )
    except Exception:  # noqa: BLE001 - called again, where failures are reported
        return None
    items = tuple(
        [
            SliceItem(described(each), name, each.id, (), visibility=together((each.visibility,)))
            for each in found
        ]
    )
    micros = round((time() - begun) * 1_000_000)
    calls = (ProviderCall(name, len(items), micros),)
    return GatheredSlice(
        request.turn,
        request.agent,
        name,
        items,
        calls=calls,
        metadata={},
        inputs=None,
        fallback=False,
        failures=(),
        cut=cut,
        is_own=True,
    )


_OWN = name_of(DefaultCorrelationProvider)


class ChoiceResult(NamedTuple):
    """The slice of one provider of a choice; `instead` marks the fallback."""

    provider: str
    settled: CheckedSlice
    instead: bool


async def ask_chosen(chosen: ChosenProvider, request: ContextRequest, trail: Trail) -> ChoiceResult:
    """The slice of the chosen provider, or of its fallback; failures are on the trail.

    Raises:
        ContextUnavailable: neither returned a slice.
    """
    asked = [(chosen.name or name_of(chosen.provider), chosen.provider)]
    if chosen.fallback is not None:
        asked.append((name_of(chosen.fallback), chosen.fallback))
    failures: list[ProviderFailed] = []
    for number, (name, provider) in enumerate(asked):
        try:
            settled = await _asked(provider, name, chosen, request, trail=trail)
            return ChoiceResult(name, settled, number > 0)
        except Exception as error:
            instead = asked[number + 1][0] if number + 1 < len(asked) else ""
            if not instead and isinstance(error, ContextUnavailable) and error.failures:
                raise  # an inner choice has reported everything
            failures.append(_failed(request, name, error, instead))
            trail.failures.append(failures[-1])
    raise _unavailable(failures, trail)


async def _asked(
    provider: ContextProvider,
    name: str,
    chosen: ChosenProvider,
    request: ContextRequest,
    trail: Trail,
) -> CheckedSlice:
    """The slice of one provider, within its timeout."""
    own = replace(
        request,
        inputs=tuple(with_payload(each, each.payload) for each in request.inputs),
        config={**request.config, **chosen.config},
    )
    try:
        settled = await in_time(_contained(provider, own, name), chosen.timeout)
    except TimeLimit as error:
        raise ContextUnavailable(
            f"{name!r} exceeded its timeout of {chosen.timeout:g} s. "
            "Reduce its work, or raise its `timeout`."
        ) from error
    check_given(settled.items, name, trail.known())
    return settled


async def _contained(provider: ContextProvider, request: ContextRequest, name: str) -> CheckedSlice:
    with contained():
        return await ask(provider, request, name)


def _failed(request: ContextRequest, name: str, error: Exception, fallback: str) -> ProviderFailed:
    turn, agent, kind = request.ctx.turn, request.agent.name, error_name(error)
    return ProviderFailed(turn, agent, name, kind, message=error_text(error), fallback=fallback)


def _gathered(request: ContextRequest, given: ChoiceResult, trail: Trail) -> GatheredSlice:
    return GatheredSlice(
        request.ctx.turn,
        request.agent.name,
        given.provider,
        tuple(given.settled.items),
        calls=tuple(trail.calls),
        metadata=given.settled.metadata,
        inputs=shown_inputs(request.inputs, given.settled.inputs, given.provider),
        fallback=given.instead,
        failures=tuple(trail.failures),
    )


def _unavailable(failures: Sequence[ProviderFailed], trail: Trail) -> ContextUnavailable:
    reasons = " ".join(map(_failure_text, failures))
    remedy = "" if len(failures) > 1 else " Or declare a fallback."
    return ContextUnavailable(
        f"Agent {failures[0].agent!r} got no context. {reasons}{remedy}", trail.failures
    )


def _failure_text(failed: ProviderFailed) -> str:
    """A failure and its remedy."""
    if failed.error == ContextUnavailable.__name__:
        return failed.message
    message = failed.message.rstrip(".")
    return f"Provider {failed.provider!r} raised {failed.error}: {message}. Correct it."


class Choices:
    """Combines the slices of several choices in order, like CompositeProvider; each has its own
    timeout and fallback.

    Its errors name the failed provider, so use it around providers that redact, never inside one.
    """

    stateless = True

    def __init__(self, *choices: ChosenProvider) -> None:
        self.choices = choices

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Return the slice for this request."""
        return await compose([partial(_given, each) for each in self.choices], request)


async def _given(chosen: ChosenProvider, request: ContextRequest) -> CheckedSlice:
    return (await ask_chosen(chosen, request, HERE.get().trail)).settled


def describe_contexts(contexts: Mapping[str, ChosenProvider | Assembly | None]) -> str:
    """Describe the context of each agent as text."""
    return by_agent({agent: _described(each) for agent, each in contexts.items()})


def _described(context: ChosenProvider | Assembly | None) -> str:
    if context is None:
        return "nothing"
    if isinstance(context, Assembly):
        return describe_assembly(context)
    asked = context.provider
    choices = asked.choices if isinstance(asked, Choices) else (context,)
    return "\n".join(map(describe_provider, choices))
