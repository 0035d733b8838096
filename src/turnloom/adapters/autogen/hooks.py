"""Lifecycle hooks in a group chat, which waits for them."""

import logging
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import anyio
from anyio.from_thread import start_blocking_portal

from turnloom.adapters.autogen.confidence import Confidence
from turnloom.adapters.autogen.diaries import Ended, HookDiary
from turnloom.agents.spec import Callee
from turnloom.errors import UsageError
from turnloom.kernel.contained import contained
from turnloom.kernel.values import Json, writable
from turnloom.lifecycle.logic import skipped
from turnloom.lifecycle.spec import Hook
from turnloom.variables.logic.types import is_json
from turnloom.variables.logic.writing import Draft, Held
from turnloom.variables.spec import Context, Definition

# Seconds before the first retry of a hook; each further one waits twice as long.
BACKOFF = 0.1

# Who holds the values of a chat that are not JSON.
CHAT = "chat"

log = logging.getLogger("turnloom.lifecycle")


class HookCalls:
    """Calls hooks one after another, none of which stops the chat.

    A chat awaits nothing at the moments that hooks are for, so it waits for them: they run in a
    thread and an event loop of their own.
    """

    def __init__(
        self,
        callees: Mapping[int, Callee],
        definitions: Mapping[str, Definition],
        confidence: Confidence,
    ) -> None:
        self._callees = callees
        self._definitions = definitions
        self._confidence = confidence

    def run(
        self,
        hooks: Sequence[Hook],
        values: Callable[[], dict[str, Any]],
        write: Callable[[Draft, str], int],
        shown: Mapping[str, Json],
        diary: HookDiary,
    ) -> None:
        """Call hooks on the values of their moment; what one writes is there for the next."""
        if not hooks:
            return
        succeeded: set[str] = set()
        with start_blocking_portal() as portal:
            for hook in hooks:
                held = _held(values(), shown, self._definitions)
                if why := skipped(hook, held.values, {}, succeeded):
                    log.info("hook %s is skipped: %s", hook.name, why)
                    diary.skipped(hook, why)
                    continue
                diary.begun(hook)
                ended = portal.call(self._attempt, hook, held)
                diary.ended(hook, ended, write(ended.draft, diary.key(hook)))
                if ended.problem is None:
                    succeeded.add(hook.name)

    async def _attempt(self, hook: Hook, held: Held) -> Ended:
        """Call a hook, and again if it fails and may be; what it wrote stays."""
        began, attempts = anyio.current_time(), 1
        draft = Draft(held, f"hook:{hook.name}")
        problem = await self._call(hook, draft)
        while problem is not None and attempts <= hook.declared.retries:
            await anyio.sleep(BACKOFF * 2 ** (attempts - 1))
            attempts, draft = attempts + 1, Draft(held, f"hook:{hook.name}", draft)
            problem = await self._call(hook, draft)
        return Ended(draft, problem, (anyio.current_time() - began) * 1000, attempts)

    async def _call(self, hook: Hook, draft: Draft) -> Exception | None:
        """How a hook failed, if it did."""
        try:
            await self._enter(hook, draft)
        except Exception as error:  # noqa: BLE001 - told in the program's log, and recorded
            lines = "".join(traceback.format_exception(error)).rstrip()
            log.error("hook %s failed\n%s", hook.name, self._confidence.masked(writable(lines)))
            return error
        return None

    async def _enter(self, hook: Hook, draft: Draft) -> None:
        try:
            with anyio.fail_after(hook.declared.timeout_s), contained():
                await self._callees[hook.number]({}, Context(draft, DESK))
        finally:
            refused = draft.close()
        if refused is not None:
            raise refused


class _Desk:
    """What a hook has in runs only, which go on after a crash; a chat does not."""

    @property
    def idempotency_key(self) -> NoReturn:
        raise UsageError(
            "A chat is not gone on with: it has no `idempotency_key`. Use one of your own."
        )

    async def once(self, name: str, effect: Callable[[], Any]) -> NoReturn:
        raise UsageError("A chat is not gone on with after a crash, so `once` cannot be kept.")


DESK: Any = _Desk()


def _held(
    values: dict[str, Any], shown: Mapping[str, Json], definitions: Mapping[str, Definition]
) -> Held:
    """The values of a chat as hooks see them; what is not JSON is an object in memory."""
    objects = {(name, CHAT): value for name, value in values.items() if not is_json(value)}
    return Held(values, dict(objects.keys()), objects, shown, definitions)
