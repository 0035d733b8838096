"""Lifecycle hooks: run in order, each once, and none of them stops the run."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import anyio

from turnloom.agents.spec import Callee
from turnloom.hooks.events import LifecycleToolCall, LifecycleToolError, LifecycleToolResult
from turnloom.hooks.logic import hooks_after, hooks_at, skip_reason
from turnloom.hooks.spec import TRIGGERS, Hook, Hooks
from turnloom.kernel.contained import error_name
from turnloom.kernel.digests import digest
from turnloom.kernel.marks import neutral
from turnloom.kernel.values import Json, as_data, error_text, preview
from turnloom.log.spec import Fact
from turnloom.runtime.calls import Call, Caller, Parked, as_json, park
from turnloom.runtime.journal import Journal
from turnloom.runtime.user_code import stack_of
from turnloom.variables.spec import RUN_STATUS

# Seconds before the first retry of a hook; each further one waits twice as long.
BACKOFF = 0.1

# Characters of a result or an error that are recorded.
SHOWN = 2000

CHAT = "chat"

log = logging.getLogger("turnloom.lifecycle")


class Occasion(NamedTuple):
    """When hooks run: their scope, the agent's turn, and values that only they see."""

    scope: str
    agent: str | None = None
    shown: Mapping[str, Json] = {}

    def key(self, hook: Hook) -> str:
        """The key of the hook's call on this occasion."""
        return f"{self.scope}/{hook.declared.trigger}.{hook.number}"


class HookRunner:
    """Runs the hooks of one run."""

    def __init__(self, journal: Journal, functions: Mapping[int, Callee]) -> None:
        self._journal = journal
        self._functions = functions
        self._tried: set[str] = set()

    @property
    def any(self) -> bool:
        """Whether there are hooks."""
        return bool(self._hooks)

    async def before_chat(self) -> None:
        """Run the hooks before the first turn."""
        await self._run(hooks_at(self._hooks, "before_chat", None), Occasion(CHAT))

    async def after_chat(self, status: str) -> None:
        """Run the hooks after the run ended."""
        await self._run(hooks_after(self._hooks, status), Occasion(CHAT, None, _run_status(status)))

    async def before_agent(self, turn: int, agent: str) -> None:
        """Run the hooks before an agent's turn."""
        hooks = hooks_at(self._hooks, "before_agent", agent)
        await self._run(hooks, Occasion(f"t{turn}", agent))

    async def after_agent(self, turn: int, agent: str) -> None:
        """Run the hooks after an agent's turn."""
        hooks = hooks_at(self._hooks, "after_agent", agent)
        await self._run(hooks, Occasion(f"t{turn}", agent))

    @property
    def _hooks(self) -> Hooks:
        return self._journal.workflow.hooks

    async def _run(self, hooks: Iterable[Hook], occasion: Occasion) -> None:
        succeeded: set[str] = set()
        for hook in hooks:
            outcome = self._journal.outcome(occasion.key(hook))
            outcome = outcome or self._skip(hook, occasion, succeeded)
            if not outcome:
                outcome = await self._call(hook, occasion)
            if isinstance(outcome[-1], LifecycleToolResult) and outcome[-1].status == "success":
                succeeded.add(hook.name)

    def _skip(self, hook: Hook, occasion: Occasion, succeeded: set[str]) -> list[Fact]:
        key = occasion.key(hook)
        if self._journal.recorded(f"{key}?") is not None:
            return []  # it has begun: its conditions are not checked again
        state = self._journal.state
        reason = skip_reason(hook, state.values, state.absent, succeeded)
        if not reason:
            return []
        fact = LifecycleToolResult(*_about(hook, occasion), "skipped", 0.0, reason, 0)
        return self._journal.complete(key, [fact])

    def give_up(self) -> None:
        """Record that hooks which had begun are given up."""
        for hook, occasion in self._open("before_chat", "before_agent"):
            key = occasion.key(hook)
            if self._journal.recorded(f"{key}?") is not None and not self._journal.outcome(key):
                why = ("Cancelled", "The run was cancelled.")
                fact = LifecycleToolError(*_about(hook, occasion), "error", 0.0, *why)
                self._journal.complete(key, [fact])

    async def _call(self, hook: Hook, occasion: Occasion, mark: str = "") -> Sequence[Fact]:
        """The outcome of a hook, from the log or by calling it; a marked call restores objects."""
        journal, key = self._journal, occasion.key(hook)
        description = hook.declared.description
        intent = LifecycleToolCall(
            digest(hook.name), *_about(hook, occasion), description, bool(mark)
        )

        async def effect() -> Sequence[Fact]:
            seconds, effect = hook.declared.timeout_s, "" if mark else key
            caller = Caller(key, f"hook:{hook.name}", seconds, occasion.shown, effect=effect)
            call, ended = await self._attempt(hook, caller)
            outcome = self._outcome(_about(hook, occasion), ended, bool(mark))
            if mark:
                call.recover()
                return [outcome]
            return [*call.facts(), outcome]

        try:
            return await journal.once(key + mark, effect, intent=intent)
        except Parked as parked:
            park(journal, parked.question)

    async def _attempt(self, hook: Hook, caller: Caller) -> tuple[Call, "HookEnd"]:
        """Call the hook, and retry it if it fails and may be retried; its writes stay."""
        clock, callee = self._journal.clock, self._functions[hook.number]
        began, attempts, call = clock.now(), 1, Call(self._journal, caller, callee)
        result, problem = await self._try(hook, call)
        while problem is not None and attempts <= hook.declared.retries:
            await anyio.sleep(BACKOFF * 2 ** (attempts - 1))
            attempts, call = attempts + 1, Call(self._journal, caller, callee, call)
            result, problem = await self._try(hook, call)
        took = (clock.now() - began).total_seconds() * 1000
        return call, HookEnd(result, problem, took, attempts)

    async def _try(self, hook: Hook, call: Call) -> tuple[Json, Exception | None]:
        """One call of the hook: its result, or its error."""
        try:
            return neutral(_shown(await call.carry_out({}))), None
        except Exception as error:  # noqa: BLE001 - logged, and recorded
            log.error("hook %s of run %s failed\n%s", hook.name, call.run, call.stack(error))
            return None, error

    def _outcome(self, about: "About", ended: "HookEnd", restored: bool) -> Fact:
        mask = self._journal.secrets.masked
        how = (ended.attempts, restored)
        if ended.problem is None:
            text = mask(as_data(ended.result))
            shown = ended.result if len(text) <= SHOWN else _cut(text)
            return LifecycleToolResult(*about, "success", ended.took, shown, *how)
        name, message = error_name(ended.problem), mask(error_text(ended.problem))
        stack = stack_of(ended.problem, self._journal.secrets)
        return LifecycleToolError(*about, "error", ended.took, name, _cut(message), *how, stack)

    async def restore(self) -> None:
        """Run again the hooks whose objects were lost with another process, while their scope is
        open."""
        journal, state = self._journal, self._journal.state
        lost = {each[1] for each in state.ephemeral.items() if each not in journal.objects}
        for hook, occasion in self._open(*TRIGGERS):
            key = occasion.key(hook)
            if key in lost - self._tried:
                self._tried.add(key)
                await self._call(hook, occasion, f"@{state.position}")

    def _open(self, *triggers: str) -> Iterator[tuple[Hook, Occasion]]:
        """The hooks of some triggers whose scope is open, and on which occasion."""
        state = self._journal.state
        for trigger in triggers:
            for hook in self._hooks.get(trigger, ()):
                if trigger == "before_chat":
                    yield hook, Occasion(CHAT)
                elif trigger == "after_chat":
                    yield hook, Occasion(CHAT, None, _run_status(state.ending))
                else:
                    for turn in state.open.values():
                        yield hook, Occasion(f"t{turn.number}", turn.agent)


class HookEnd(NamedTuple):
    """How a call ended: its result or its error, its duration and its attempts."""

    result: Json
    problem: Exception | None
    took: float
    attempts: int


# The first fields of every fact of a hook: trigger, agent, function, file, name.
About = tuple[str, str | None, str, str, str]


def _about(hook: Hook, occasion: Occasion) -> About:
    declared = hook.declared
    return declared.trigger, occasion.agent, declared.function, declared.file, hook.name


def _run_status(status: str) -> Mapping[str, Json]:
    return {RUN_STATUS: status} if status else {}


def _shown(given: Any) -> Json:
    """The recorded result of a hook. It is for reading only, so what is not JSON is shown as
    text."""
    try:
        return as_json(given)
    except TypeError:
        return preview(given)


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
