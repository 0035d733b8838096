"""What a run knows."""

from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from turnloom.agents.spec.tools import ToolSchema
from turnloom.assembly.events import Segment, Span, Withheld
from turnloom.assembly.logic import EMPTY
from turnloom.assembly.spec import Message, Piece
from turnloom.kernel.values import Json
from turnloom.log.events import CancelRequested
from turnloom.log.spec import Event


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something asked of a person: in words, or by a tool with a payload.

    `schema` says what an answer must look like (without one, a text if nobody's tool asks), and
    `due` until when it counts.
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


class OpenTurn(msgspec.Struct):
    """A turn, or a step of a flow, being taken, with the events of it by id, and its last event."""

    number: int
    agent: str
    recorded: dict[str, Event] = {}
    last: int = 0


class Failure(msgspec.Struct, frozen=True):
    """Why a run cannot go on."""

    error: str
    message: str


class RunState(msgspec.Struct):
    """What a run knows: a fold of its log, owned by its driver.

    `form` says what decides whose turn it is: a conversation, reactions or a flow. `veiled` says
    that not everybody may read all that was said, and `crowded` which agents take most of the
    window of their model. `open` has the turns being taken, by number, and `scopes` those and the
    steps of a flow, by what their ids begin with; `chat` what is on record of calls outside turns,
    by id; `ephemeral` which values live in memory only, and which call wrote each; `ending` what
    hooks after the chat were told first; `questions` those that are open, by id, and `paused_for`
    the one that the run last paused for; `begun` that a turn or a step was begun; `unguarded` that
    guards have no say any more; `guards` what guards know of it, if there are any.
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
    cancel: CancelRequested | None = None
    begun: bool = False
    unguarded: bool = False
    progress: Any = None
    guards: Any = None

    @property
    def question(self) -> Question | None:
        """The question that was asked first of those that are open."""
        return next(iter(self.questions.values()), None)


class PreparedRequest(NamedTuple):
    """What a turn is shown beside what the agent always is: other instructions or messages, as
    whoever is named left them; pieces of context, and what was left out of those. With
    `holds_context`, the messages have the context in them."""

    instructions: str | None = None
    messages: tuple[Message, ...] | None = None
    pieces: tuple[Piece, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    left_by: str = "hooks"
    holds_context: bool = False


UNPREPARED = PreparedRequest()


class Transfer(NamedTuple):
    """A handoff that the model of an agent may choose, offered to it as a tool."""

    schema: ToolSchema
    rule: int
    target: str
