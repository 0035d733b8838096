"""The state of a run."""

from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from turnloom.agents.spec.tools import ToolSchema
from turnloom.assembly.events import Segment, Span, Withheld
from turnloom.assembly.logic import EMPTY
from turnloom.assembly.spec import Message, Piece
from turnloom.kernel.values import Json
from turnloom.log.events import CancelRequested, Pin
from turnloom.log.spec import Event


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question to a person: a prompt, or a tool with a payload.

    `to` is the person who is asked, or a role, as in `role:admin`. Several are `among`; then `to`
    names them all. The first valid answer counts. `schema` is the JSON Schema of the answer
    (without one: any JSON for a tool, otherwise a text); `due` is the deadline.
    """

    id: str
    prompt: str = ""
    to: str = ""
    tool: str = ""
    payload: Json = None
    component: str = ""
    display: str = "inline"
    schema: Json = None
    due: datetime | None = None
    seq: int = 0
    among: tuple[str, ...] = ()


class QueuedMessage(msgspec.Struct, frozen=True):
    """A message of the user that the run has not taken in, by the id of its event."""

    id: str
    text: str
    by: str


class OpenTurn(msgspec.Struct):
    """A turn or flow step in progress, with its events by id and the position of the last one;
    `life` is the number of retries of the run before it began."""

    number: int
    agent: str
    recorded: dict[str, Event] = {}
    last: int = 0
    life: int = 0


class Failure(msgspec.Struct, frozen=True):
    """The error that stops a run."""

    error: str
    message: str


class RunState(msgspec.Struct):
    """The state of a run: a fold of its log, owned by its driver.

    - `form`: what decides the next turn: `conversation`, `reaction` or `flow`
    - `veiled`: some messages are not public
    - `crowded`: agents that fill most of their model's window
    - `open`: turns in progress, by number
    - `scopes`: turns and flow steps in progress, by the prefix of their event ids
    - `chat`: recorded calls outside turns, by id
    - `ephemeral`: values kept in memory only, with the call that wrote each
    - `ending`: the reason first passed to the hooks after the chat
    - `questions`: open questions, by id; `paused_for` is the one that last paused the run
    - `queue`: messages that wait for the end of the open turn; `interrupted` is the turn that a
      message ends
    - `begun`: a turn or step has begun
    - `unguarded`: guards no longer apply
    - `life`: how often the run was retried; `pin` and `budget` are what retries and forks changed
    - `tools`: what becomes of calls that touch the world; `origin` is the run whose results are
      used, and the position of the cut; in a retried run, itself and the position of the retry
    - `guards`: the state of the guards, if there are any
    """

    run: str
    form: str = "conversation"
    correlation: str = ""
    workflow: str = ""
    tenant: str = ""
    user: str = ""
    status: str = "new"
    position: int = 0
    values: dict[str, Json] = {}
    revision: int = 0
    absent: dict[str, str] = {}
    fired: set[str] = set()
    timers: dict[str, datetime] = {}
    messages: list[Message] = []
    veiled: bool = False
    history: Span = Span(0, 0, 0, 0, digest=EMPTY)
    texts: dict[str, str] = {}
    views: dict[str, tuple[int, tuple[Segment, ...]]] = {}
    turns: int = 0
    turns_of: dict[str, int] = {}
    calls_of: dict[str, int] = {}
    crowded: set[str] = set()
    ephemeral: dict[str, str] = {}
    chat: dict[str, Any] = {}
    offered: dict[str, tuple[ToolSchema, ...]] = {}
    failure: Failure | None = None
    ending: str = ""
    open: dict[int, OpenTurn] = {}
    scopes: dict[str, OpenTurn] = {}
    questions: dict[str, Question] = {}
    paused_for: str = ""
    queue: tuple[QueuedMessage, ...] = ()
    interrupted: int = 0
    cancel: CancelRequested | None = None
    begun: bool = False
    unguarded: bool = False
    life: int = 0
    pin: Pin | None = None
    budget: dict[str, float] = {}
    tools: str = "live"
    origin: tuple[str, int] | None = None
    progress: Any = None
    guards: Any = None

    @property
    def question(self) -> Question | None:
        """The oldest open question."""
        return next(iter(self.questions.values()), None)


class PreparedRequest(NamedTuple):
    """Changes to the request of a turn: replaced instructions or messages (`left_by` names who
    replaced them), pieces of context, and what was withheld. With `holds_context`, the messages
    already contain the context."""

    instructions: str | None = None
    messages: tuple[Message, ...] | None = None
    pieces: tuple[Piece, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    left_by: str = "hooks"
    holds_context: bool = False


UNPREPARED = PreparedRequest()


class Transfer(NamedTuple):
    """A handoff, offered to an agent's model as a tool."""

    schema: ToolSchema
    rule: int
    target: str
