"""Lifecycle hooks in a group chat, which waits for them."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import anyio
from anyio.from_thread import start_blocking_portal

from weft.agents.spec import Callee
from weft.errors import UsageError
from weft.kernel.contained import contained
from weft.kernel.values import Json
from weft.lifecycle.logic import skipped
from weft.lifecycle.spec import Hook
from weft.variables.logic.types import is_json
from weft.variables.logic.writing import Draft, Held
from weft.variables.spec import Context, Definition

# Seconds before the first retry of a hook; each further one waits twice as long.
BACKOFF = 0.1

# Who holds the values of a chat that are not JSON.
CHAT = "chat"

log = logging.getLogger("weft.lifecycle")


class HookCalls:
    """Calls hooks one after another, none of which stops the chat.

    A chat awaits nothing at the moments that hooks are for, so it waits for them: they run in a
    thread and an event loop of their own.
    """

    def __init__(
        self, callees: Mapping[int, Callee], definitions: Mapping[str, Definition]
    ) -> None:
        self._callees = callees
        self._definitions = definitions

    def run(
        self,
        hooks: Sequence[Hook],
        values: Callable[[], dict[str, Any]],
        write: Callable[[Draft], None],
        shown: Mapping[str, Json],
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
                    continue
                draft, is_done = portal.call(self._attempt, hook, held)
                write(draft)
                if is_done:
                    succeeded.add(hook.name)

    async def _attempt(self, hook: Hook, held: Held) -> tuple[Draft, bool]:
        """Call a hook, and again if it fails and may be; what it wrote stays."""
        draft = Draft(held, f"hook:{hook.name}")
        is_done = await self._call(hook, draft)
        for attempt in range(hook.declared.retries):
            if is_done:
                break
            await anyio.sleep(BACKOFF * 2**attempt)
            draft = Draft(held, f"hook:{hook.name}", draft)
            is_done = await self._call(hook, draft)
        return draft, is_done

    async def _call(self, hook: Hook, draft: Draft) -> bool:
        """Whether a hook ended well."""
        try:
            with anyio.fail_after(hook.declared.timeout_s), contained():
                await self._callees[hook.number]({}, Context(draft, DESK))
        except Exception:
            log.exception("hook %s failed", hook.name)
            return False
        finally:
            draft.close()
        return True


class _Desk:
    """What a hook has in runs only: nothing of a chat is on record."""

    @property
    def idempotency_key(self) -> NoReturn:
        raise UsageError("A chat is no run: it has no `idempotency_key`. Use one of your own.")

    async def once(self, name: str, effect: Callable[[], Any]) -> NoReturn:
        raise UsageError("A chat is no run: nothing is recorded, so `once` cannot be kept.")


DESK: Any = _Desk()


def _held(
    values: dict[str, Any], shown: Mapping[str, Json], definitions: Mapping[str, Definition]
) -> Held:
    """The values of a chat as hooks see them; what is not JSON is an object in memory."""
    objects = {(name, CHAT): value for name, value in values.items() if not is_json(value)}
    return Held(values, dict(objects.keys()), objects, shown, definitions)
