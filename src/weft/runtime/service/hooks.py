"""Lifecycle hooks: run in order, each once, and none of them stops the run."""

import logging
from collections.abc import Iterable, Mapping, Sequence

import anyio

from weft.agents.spec import Callee, Question
from weft.kernel.digests import digest
from weft.kernel.values import Json, as_data, said
from weft.lifecycle.events import LifecycleToolCall, LifecycleToolError, LifecycleToolResult
from weft.lifecycle.logic import hooks_after, hooks_at, skipped
from weft.lifecycle.spec import Hook, Hooks
from weft.log.spec import Fact
from weft.runtime.service.calls import Call, Caller, Parked, park
from weft.runtime.service.journal import Journal
from weft.variables.logic.writing import RUN_STATUS

# Seconds before the first retry of a hook; each further one waits twice as long.
BACKOFF = 0.1

# How many characters of a result are recorded.
RESULT = 2000

CHAT = "chat"

log = logging.getLogger("weft.lifecycle")


class HookRunner:
    """Runs the hooks of one run."""

    def __init__(self, journal: Journal, functions: Mapping[int, Callee]) -> None:
        self._journal = journal
        self._functions = functions

    async def before_chat(self) -> None:
        """What runs before the first turn."""
        await self._run(hooks_at(self._hooks, "before_chat", None), CHAT, None)

    async def after_chat(self, status: str) -> None:
        """What runs when the run ended so."""
        hooks = hooks_after(self._hooks, status)
        await self._run(hooks, CHAT, None, {RUN_STATUS: status})

    async def before_agent(self, turn: int, agent: str) -> None:
        """What runs when an agent's go began."""
        await self._run(hooks_at(self._hooks, "before_agent", agent), f"t{turn}", agent)

    async def after_agent(self, turn: int, agent: str) -> None:
        """What runs when an agent's go is over."""
        await self._run(hooks_at(self._hooks, "after_agent", agent), f"t{turn}", agent)

    @property
    def _hooks(self) -> Hooks:
        return self._journal.workflow.hooks

    async def _run(
        self,
        hooks: Iterable[Hook],
        scope: str,
        agent: str | None,
        shown: Mapping[str, Json] | None = None,
    ) -> None:
        succeeded: set[str] = set()
        for hook in hooks:
            key = f"{scope}/{hook.declared.trigger}.{hook.number}"
            outcome = self._journal.outcome(key) or self._skip(hook, key, agent, succeeded)
            if not outcome:
                outcome = await self._call(hook, key, agent, shown or {})
            if isinstance(outcome[-1], LifecycleToolResult) and outcome[-1].status == "success":
                succeeded.add(hook.name)

    def _skip(self, hook: Hook, key: str, agent: str | None, succeeded: set[str]) -> list[Fact]:
        if self._journal.recorded(f"{key}?") is not None:
            return []  # it has begun: what made it begin is not asked again
        state = self._journal.state
        reason = skipped(hook, state.values, state.absent, succeeded)
        if not reason:
            return []
        fact = LifecycleToolResult(*_about(hook, agent), "skipped", 0.0, reason, 0)
        return self._journal.complete(key, [fact])

    async def _call(
        self,
        hook: Hook,
        key: str,
        agent: str | None,
        shown: Mapping[str, Json],
        mark: str = "",
    ) -> Sequence[Fact]:
        journal, restored = self._journal, bool(mark)
        told = hook.declared.description
        intent = LifecycleToolCall(digest(hook.name), *_about(hook, agent), told, restored)
        waits: list[Question] = []

        async def effect() -> Sequence[Fact]:
            caller = Caller(key, f"hook:{hook.name}", hook.declared.timeout_s, shown)
            return await self._attempt(hook, caller, agent, restored, waits)

        try:
            return await journal.once(key + mark, effect, intent=intent)
        except Parked:
            park(journal, waits[0])

    async def _attempt(
        self, hook: Hook, caller: Caller, agent: str | None, restored: bool, waits: list[Question]
    ) -> Sequence[Fact]:
        """Call the hook, again if it fails and may be; what it wrote comes before its result."""
        clock = self._journal.clock
        began, attempt = clock.now(), 1
        call, result, problem = await self._try(hook, caller, waits)
        while problem is not None and attempt <= hook.declared.retries:
            await anyio.sleep(BACKOFF * 2 ** (attempt - 1))
            attempt += 1
            call, result, problem = await self._try(hook, caller, waits)
        took = (clock.now() - began).total_seconds() * 1000
        return [*call.facts(), _outcome(hook, agent, problem, result, (took, attempt, restored))]

    async def _try(
        self, hook: Hook, caller: Caller, waits: list[Question]
    ) -> tuple[Call, Json, Exception | None]:
        """One call of the hook: what it gave, or how it failed."""
        call = Call(self._journal, caller, self._functions[hook.number])
        try:
            return call, await call.carry_out({}), None
        except Parked:
            assert call.question is not None
            waits.append(call.question)
            raise
        except Exception as error:
            log.error("hook %s failed", hook.name, exc_info=error)
            return call, None, error

    async def restore(self) -> None:
        """Run again the hooks whose objects were lost with another process, while they count."""
        journal, state = self._journal, self._journal.state
        lost = {key for name, key in state.ephemeral.items() if name not in journal.objects}
        if not lost:
            return
        turn = state.open
        for hooks in self._hooks.values():
            for hook in hooks:
                place = f"{hook.declared.trigger}.{hook.number}"
                if f"{CHAT}/{place}" in lost:
                    await self._again(hook, f"{CHAT}/{place}", None)
                elif turn is not None and f"t{turn.number}/{place}" in lost:
                    await self._again(hook, f"t{turn.number}/{place}", turn.agent)

    async def _again(self, hook: Hook, key: str, agent: str | None) -> None:
        await self._call(hook, key, agent, {}, f"@{self._journal.state.position}")


def _about(hook: Hook, agent: str | None) -> tuple[str, str | None, str, str, str]:
    declared = hook.declared
    return declared.trigger, agent, declared.function, declared.file, hook.name


def _outcome(
    hook: Hook,
    agent: str | None,
    problem: Exception | None,
    result: Json,
    how: tuple[float, int, bool],
) -> Fact:
    took, attempts, restored = how
    about = _about(hook, agent)
    if problem is None:
        shown = _bounded(result)
        return LifecycleToolResult(*about, "success", took, shown, attempts, restored)
    error, message = type(problem).__name__, said(problem)
    return LifecycleToolError(*about, "error", took, error, message, attempts, restored)


def _bounded(result: Json) -> Json:
    """A result as it is recorded: whole, or the beginning of its text."""
    text = as_data(result)
    return result if len(text) <= RESULT else f"{text[: RESULT - 1]}…"
