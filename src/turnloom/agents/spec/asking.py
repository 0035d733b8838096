"""Questions that tools and hooks ask of people."""

from contextvars import ContextVar
from typing import Protocol

from turnloom.agents.spec.tools import Display
from turnloom.errors import UsageError
from turnloom.kernel.values import Json


class Asker(Protocol):
    """The call that is going on, as far as it can ask."""

    run: str
    workflow: str

    async def ask(
        self, tool: str, payload: Json, seconds: float | None, display: Display | None
    ) -> Json:
        """The answer on record; if there is none, the call ends here and is entered again."""
        ...


# Who asks, in a tool or hook; set around its call and nowhere else.
ASKING: ContextVar[Asker] = ContextVar("turnloom_asking")


async def use_ui_tool(
    tool_id: str,
    payload: Json = None,
    *,
    timeout: float | None = None,  # noqa: ASYNC109 - it is not this call that times out
    display: Display | None = None,
    chat_id: str | None = None,
    workflow_name: str | None = None,
) -> Json:
    """The answer of the person that the run belongs to.

    Until it is there, the run waits, and the tool or hook ends here. When it has come, the tool
    is entered again from its top, and this call gives the answer.

    Raises:
        UsageError: it is not called inside a tool or hook, or for another run.
        QuestionExpired: nobody answered within `timeout` seconds.
    """
    asker = ASKING.get(None)
    if asker is None:
        raise UsageError("use_ui_tool() asks for a tool or hook of a run. Call it inside one.")
    for given, own in ((chat_id, asker.run), (workflow_name, asker.workflow)):
        if given not in (None, own):
            raise UsageError(f"use_ui_tool() was called for {given!r} inside {own!r}.")
    return await asker.ask(tool_id, payload, timeout, display)
