"""Ask providers for context, and the fallback in place of one that fails."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from turnloom.assembly.events import ProviderCall, ProviderFailed
from turnloom.assembly.logic.descriptions import name_of
from turnloom.assembly.logic.labels import together
from turnloom.assembly.logic.slices import (
    GatheredSlice,
    Settled,
    SliceItem,
    check_given,
    described,
    shown_inputs,
    with_payload,
)
from turnloom.assembly.service.providers import DefaultCorrelationProvider, compose
from turnloom.assembly.service.trail import HERE, Trail, TrailPosition, ask, traced
from turnloom.assembly.spec import ChosenProvider, ContextProvider, ContextRequest, ContextSlice
from turnloom.board.spec import Artifact
from turnloom.errors import ContextUnavailable
from turnloom.kernel.contained import contained, named
from turnloom.kernel.deadlines import TimeLimit, in_time
from turnloom.kernel.values import said


async def gather(
    chosen: ChosenProvider, request: ContextRequest, *, witnessed: Sequence[Artifact]
) -> GatheredSlice:
    """What the chosen provider gives for a turn, or its fallback.

    `witnessed` grows with what the board of the request gives out; a slice may show that and the
    inputs, and no other artifact.

    Raises:
        ContextUnavailable: neither gave a slice.
    """
    if type(chosen.provider) is DefaultCorrelationProvider:
        gathered = await _gather_own(chosen, chosen.provider, request)
        if gathered is not None:
            return gathered
    trail = Trail(request.inputs, witnessed)
    token = HERE.set(TrailPosition(trail))
    try:
        given = await ask_chosen(chosen, request, trail)
    finally:
        HERE.reset(token)
    return _gathered(request, given, trail)


async def _gather_own(
    chosen: ChosenProvider, provider: DefaultCorrelationProvider, request: ContextRequest
) -> GatheredSlice | None:
    """What our own default provider gives: artifacts as the board has them, so there is nothing to
    check or compare. Nothing where it fails; it is asked once more then, as others are."""
    time = asyncio.get_running_loop().time
    name, begun = chosen.name or name_of(provider), time()
    try:
        async with asyncio.timeout(chosen.timeout):
            found, cut = await provider.find(request)
    except Exception:  # noqa: BLE001 - asked again, where failures are told
        return None
    items = tuple(
        SliceItem(described(each), name, each.id, (), visibility=together((each.visibility,)))
        for each in found
    )
    micros = round((time() - begun) * 1_000_000)
    calls = (ProviderCall(name, len(items), micros),)
    turn, agent = request.ctx.turn, request.agent.name
    return GatheredSlice(
        turn,
        agent,
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


class ChoiceResult(NamedTuple):
    """What one provider of a choice gave; `instead` says that it is the fallback."""

    provider: str
    settled: Settled
    instead: bool


async def ask_chosen(chosen: ChosenProvider, request: ContextRequest, trail: Trail) -> ChoiceResult:
    """What the chosen provider gives, or its fallback, and who did; failures are on the trail.

    Raises:
        ContextUnavailable: neither gave a slice.
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
                raise  # a choice inside has said it all
            failures.append(_failed(request, name, error, instead))
            trail.failures.append(failures[-1])
    raise _unavailable(failures, trail)


async def _asked(
    provider: ContextProvider,
    name: str,
    chosen: ChosenProvider,
    request: ContextRequest,
    trail: Trail,
) -> Settled:
    """What one provider gives in its time."""
    own = replace(
        request,
        inputs=tuple(with_payload(each, each.payload) for each in request.inputs),
        config={**request.config, **chosen.config},
    )
    try:
        settled = await in_time(_contained(provider, own, name), chosen.timeout)
    except TimeLimit as error:
        raise ContextUnavailable(
            f"{name!r} took over {chosen.timeout:g} s. Let it ask for less, or raise its `timeout`."
        ) from error
    check_given(settled.items, name, trail.known())
    return settled


async def _contained(provider: ContextProvider, request: ContextRequest, name: str) -> Settled:
    with contained():
        return await ask(provider, request, name)


def _failed(request: ContextRequest, name: str, error: Exception, fallback: str) -> ProviderFailed:
    turn, agent, kind = request.ctx.turn, request.agent.name, named(error)
    return ProviderFailed(turn, agent, name, kind, message=said(error), fallback=fallback)


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
    told = " ".join(map(_told, failures))
    remedy = "" if len(failures) > 1 else " Or give the agent a fallback."
    return ContextUnavailable(
        f"Agent {failures[0].agent!r} got no context. {told}{remedy}", trail.failures
    )


def _told(failed: ProviderFailed) -> str:
    """What went wrong, and what to do."""
    if failed.error == ContextUnavailable.__name__:
        return failed.message
    message = failed.message.rstrip(".")
    return f"Provider {failed.provider!r} raised {failed.error}: {message}. Correct it."


class Choices:
    """Gives what several choices come to, one after the other, as CompositeProvider does; each has
    its own time, and its own fallback.

    It says who failed, so it belongs around providers that redact, never inside of one.
    """

    stateless = True

    def __init__(self, *choices: ChosenProvider) -> None:
        self.choices = choices

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        return await compose([partial(_given, each) for each in self.choices], request)


async def _given(chosen: ChosenProvider, request: ContextRequest) -> Settled:
    return (await ask_chosen(chosen, request, HERE.get().trail)).settled
