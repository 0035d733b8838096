"""AG2's message hooks: functions that change what an agent reads, and what it says."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from turnloom.agents.spec import USER, WORKFLOW, PreparedRequest, ToolSchema
from turnloom.assembly.spec import Message
from turnloom.hooks.events import MessageHookCalled, MessageHooked, MessageHookFailed
from turnloom.hooks.spec import MessageHook
from turnloom.kernel.contained import error_name
from turnloom.kernel.digests import digest
from turnloom.kernel.marks import neutral
from turnloom.kernel.values import Json, as_array, as_data, as_object, error_text, preview
from turnloom.log.spec import Fact
from turnloom.runtime.calls import Call, Caller, Parked, as_json, park
from turnloom.runtime.journal import Journal
from turnloom.runtime.user_code import stack_of
from turnloom.variables.spec import Context

# Seconds that a message hook may take.
DEADLINE = 60.0

log = logging.getLogger("turnloom.lifecycle")

# Calls a function of the workflow's code, on the loop or in a thread.
Function = Callable[..., Awaitable[Any]]


class HookedAgent:
    """An agent as `update_agent_state` sees it."""

    def __init__(self, name: str, system_message: str, context_variables: Context) -> None:
        self.name = name
        self.system_message = system_message
        self.context_variables = context_variables

    def update_system_message(self, system_message: str) -> None:
        """Replace the agent's system message in this turn."""
        self.system_message = system_message


class MessageHooks:
    """Runs the message hooks of one run."""

    def __init__(self, journal: Journal, functions: Mapping[int, Function]) -> None:
        self._journal = journal
        self._functions = functions

    async def prepare(self, turn: int, agent: str) -> PreparedRequest:
        """The system message and the messages of the agent in this turn."""
        instructions, messages = None, None
        for kind in ("update_agent_state", *_READING):
            for number, hook in self._of(agent, kind):
                key = f"t{turn}/message_hook.{number}"
                if kind == "update_agent_state":
                    given = await self._update(key, turn, agent, hook, instructions=instructions)
                    instructions = given if isinstance(given, str) else instructions
                else:
                    current = self._messages() if messages is None else messages
                    read = await self._read(key, (turn, agent), hook, current)
                    messages = messages if read == current else read
        return PreparedRequest(instructions, messages)

    async def outgoing(self, key: str, turn: int, agent: str, text: str) -> str:
        """The text that the agent says instead of another."""
        for number, hook in self._of(agent, "process_message_before_send"):
            arguments = (agent, text, "", False)

            def args(context: Context, given: tuple[Any, ...] = arguments) -> tuple[Any, ...]:
                return given

            place = f"{key}/message_hook.{number}"
            given = await self._call(place, (turn, agent), hook, args, about=text)
            text = withheld(hook) if given is FAILED else str(_content(given))
        return text

    def has(self, agent: str, kind: str) -> bool:
        """Whether an agent has hooks of a kind."""
        return any(True for _ in self._of(agent, kind))

    def _of(self, agent: str, kind: str) -> list[tuple[int, MessageHook]]:
        hooks = enumerate(self._journal.workflow.message_hooks)
        return [(n, h) for n, h in hooks if h.hook_type == kind and h.goes_with(agent)]

    def _messages(self) -> tuple[Message, ...]:
        return tuple(self._journal.state.messages)

    async def _update(
        self, key: str, turn: int, agent: str, hook: MessageHook, instructions: str | None
    ) -> Json:
        system = instructions or self._journal.workflow.agents[agent].instructions
        read = [_shown(message, agent) for message in self._messages()]
        seen: list[HookedAgent] = []

        def args(context: Context) -> tuple[Any, ...]:
            seen.append(HookedAgent(agent, system, context))
            return seen[-1], read

        return await self._call(
            key,
            (turn, agent),
            hook,
            args,
            about=[system, [dict[str, Json](each) for each in read]],
            outcome=lambda given: seen[-1].system_message,
        )

    async def _read(
        self, key: str, who: tuple[int, str], hook: MessageHook, current: Sequence[Message]
    ) -> tuple[Message, ...]:
        """The messages that a hook returned; if it failed, without those that it had to process."""
        if not current:
            return ()
        last_only = hook.hook_type == "process_last_received_message"
        shown: Any = current[-1].text if last_only else [_shown(each, who[1]) for each in current]
        given = await self._call(key, who, hook, lambda context: (shown,), about=shown)
        if last_only:
            if given == neutral(shown):  # unchanged: the result of a hook holds no marks
                return tuple(current)
            text = withheld(hook) if given is FAILED else str(given)
            return (*current[:-1], current[-1]._replace(text=text))
        if given is FAILED:
            return (Message(0, WORKFLOW, withheld(hook)),)
        return tuple(map(_message, as_array(given) or ()))

    async def _call(
        self,
        key: str,
        who: tuple[int, str],
        hook: MessageHook,
        args: Callable[[Context], tuple[Any, ...]],
        *,
        about: Json,
        outcome: Callable[[Any], Any] = lambda given: given,
    ) -> Json:
        """The result of a hook, from the log or by calling it with arguments that are `about`
        something; `FAILED` if it failed, or returned what a hook of its kind cannot return.

        Raises:
            Waiting: a person is asked whether to call it.
        """
        turn, agent = who
        which = (turn, agent, hook.hook_type, hook.function, hook.filename)
        number = self._journal.workflow.message_hooks.index(hook)
        callee = _Callee(self._functions[number], args, outcome)

        async def effect() -> Sequence[Fact]:
            caller = Caller(key, f"hook:{hook.function}", DEADLINE, effect=key)
            call = Call(self._journal, caller, callee)
            try:
                given = as_json(await call.carry_out({}))
                _refuse_misfit(hook, given)
                fact: Fact = MessageHooked(*which, given)
            except Exception as error:  # noqa: BLE001 - logged, and recorded
                log.error("message hook %s failed\n%s", hook.function, call.stack(error))
                stack = stack_of(error, self._journal.secrets)
                fact = MessageHookFailed(*which, error_name(error), error_text(error), stack)
            return [*call.facts(), fact]

        intent = MessageHookCalled(digest(as_data([hook.function, about])), *which)
        try:
            fact = (await self._journal.once(key, effect, intent=intent))[-1]
        except Parked as parked:
            park(self._journal, parked.question)
        if isinstance(fact, MessageHooked) and _fits(hook, fact.result):
            return fact.result
        return FAILED


# Stands for the result of a failed hook.
FAILED: Any = object()


def withheld(hook: MessageHook) -> str:
    """The placeholder for a message that a hook failed to change."""
    return f"[withheld: message hook {hook.function!r} failed]"


def _fits(hook: MessageHook, given: Json) -> bool:
    """Whether a hook of this kind can return that value."""
    match hook.hook_type:
        case "process_all_messages_before_reply":
            listed = as_array(given)
            return listed is not None and all(_content(each) is not None for each in listed)
        case "process_message_before_send":
            return isinstance(_content(given), str)
        case _:
            return isinstance(given, str)


def _refuse_misfit(hook: MessageHook, given: Json) -> None:
    """Refuse what a hook of this kind cannot give.

    Raises:
        TypeError: it is that; most often, a `return` was forgotten.
    """
    if not _fits(hook, given):
        raise TypeError(f"It gave {preview(given)}. Let it return {_RETURNED[hook.hook_type]}.")


_RETURNED = {
    "update_agent_state": "nothing, and set a text as the system message",
    "process_all_messages_before_reply": "the list of messages",
    "process_last_received_message": "the text of the message",
    "process_message_before_send": "the message: a text, or an object with its `content`",
}
_READING = ("process_all_messages_before_reply", "process_last_received_message")
_NOTHING = ToolSchema("", "", {})


class _Callee:
    """A message hook with the arguments that AG2 gives it."""

    schema = _NOTHING
    may_ask = False

    def __init__(
        self,
        function: Function,
        args: Callable[[Context], tuple[Any, ...]],
        outcome: Callable[[Any], Any],
    ) -> None:
        self._function = function
        self._args = args
        self._outcome = outcome

    async def __call__(self, arguments: Mapping[str, Json], context: Context) -> Any:
        return self._outcome(await self._function(*self._args(context)))


def _shown(message: Message, agent: str) -> dict[str, str]:
    """A message in AG2's form: the agent's own are the assistant's."""
    role = "assistant" if message.author == agent else "user"
    return {"content": message.text, "role": role, "name": message.author}


def _message(value: Json) -> Message:
    content, name = _content(value), (as_object(value) or {}).get("name")
    text = content if isinstance(content, str) else as_data(content)
    return Message(0, name if isinstance(name, str) else USER, text)


def _content(value: Json) -> Json:
    """The content of a message: a string is the message itself, an object has a content."""
    given = as_object(value)
    if given is not None:
        return given.get("content")
    return value if isinstance(value, str) else None
