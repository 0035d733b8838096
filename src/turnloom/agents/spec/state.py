"""What a run knows, and what can be decided next."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import msgspec

from turnloom.agents.spec.agents import Agent
from turnloom.agents.spec.outputs import OutputModel
from turnloom.agents.spec.products import Products
from turnloom.agents.spec.tools import Toolkit, ToolSchema
from turnloom.assembly.events import Segment, Span, Withheld
from turnloom.assembly.logic import EMPTY
from turnloom.assembly.spec import Message, Piece
from turnloom.board.spec import Artifact
from turnloom.kernel.values import Json
from turnloom.lifecycle.spec import Hooks, MessageHook
from turnloom.log.events import CancelRequested
from turnloom.log.spec import Fact
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.spec import Variables


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
    """A turn being taken, with what is already on record for it, by id, and its last event. The ids
    of its events begin with `prefix`, but for that of its beginning."""

    number: int
    agent: str
    recorded: dict[str, Fact] = {}
    last: int = 0
    prefix: str = ""


class Failure(msgspec.Struct, frozen=True):
    """Why a run cannot go on."""

    error: str
    message: str


class RunState(msgspec.Struct):
    """What a run knows: a fold of its log, owned by its driver.

    `form` says what decides whose turn it is: a conversation, reactions or a flow. `veiled` says
    that not everybody may read all that was said. `open` has the turns being taken, by number, and
    `steps` those of a flow; `chat` what is on record of calls outside turns, by id; `ephemeral`
    which values live in memory only, and which call wrote each; `ending` what hooks after the chat
    were told first; `guards` what guards know of it, if there are any.
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
    history: Span = Span(0, 0, 0, 0, EMPTY)
    texts: dict[str, str] = {}
    views: dict[str, tuple[int, tuple[Segment, ...]]] = {}
    turns: int = 0
    turns_of: dict[str, int] = {}
    calls_of: dict[str, int] = {}
    ephemeral: dict[str, str] = {}
    chat: dict[str, Any] = {}
    offered: dict[str, tuple[ToolSchema, ...]] = {}
    failure: Failure | None = None
    ending: str = ""
    open: dict[int, OpenTurn] = {}
    steps: dict[int, OpenTurn] = {}
    question: Question | None = None
    cancel: CancelRequested | None = None
    progress: Any = None
    guards: Any = None


class TakeTurn(msgspec.Struct, frozen=True):
    """It is this agent's turn."""

    agent: str
    facts: tuple[tuple[str, Fact], ...] = ()


class Ask(msgspec.Struct, frozen=True):
    """A person is asked, and the run waits."""

    question: Question
    facts: tuple[tuple[str, Fact], ...] = ()


class Finish(msgspec.Struct, frozen=True):
    """The run is done."""

    reason: str
    facts: tuple[tuple[str, Fact], ...] = ()


class Draw(msgspec.Struct, frozen=True):
    """Chance picks one of these."""

    id: str
    among: tuple[str, ...]
    facts: tuple[tuple[str, Fact], ...] = ()


class Pick(msgspec.Struct, frozen=True):
    """A model picks one of these agents."""

    id: str
    among: tuple[str, ...]
    facts: tuple[tuple[str, Fact], ...] = ()


class Select(msgspec.Struct, frozen=True):
    """A turn would go to this agent, and a guard says which of its candidates gets it."""

    id: str
    agent: str
    facts: tuple[tuple[str, Fact], ...] = ()


class Judge(msgspec.Struct, frozen=True):
    """Those who subscribe to an artifact's type are to say whether it is for them."""

    artifact: str
    only: str = ""
    facts: tuple[tuple[str, Fact], ...] = ()


class Spawn(msgspec.Struct, frozen=True):
    """An agent is given artifacts in a run of their own; `depth` is how many turns in a row led to
    them."""

    run: str
    agent: str
    subscription: str
    artifacts: tuple[Artifact, ...]
    depth: int = 0
    facts: tuple[tuple[str, Fact], ...] = ()


class Proceed(msgspec.Struct, frozen=True):
    """A line of work in a flow goes on with what it has come to."""

    strand: str
    facts: tuple[tuple[str, Fact], ...] = ()


class MakeUp(msgspec.Struct, frozen=True):
    """A step that was completed at a place of a flow is made up for."""

    place: str
    facts: tuple[tuple[str, Fact], ...] = ()


class Rest(msgspec.Struct, frozen=True):
    """There is nothing to do until something ends, comes, or is due."""

    facts: tuple[tuple[str, Fact], ...] = ()


Decision = TakeTurn | Ask | Finish | Draw | Pick | Select | Judge | Spawn | Proceed | MakeUp | Rest


class Prepared(NamedTuple):
    """What a turn is shown beside what the agent always is: other instructions or messages, as
    whoever is named left them; pieces of context, and what was left out of those. With
    `holds_context`, the messages have the context in them."""

    instructions: str | None = None
    messages: tuple[Message, ...] | None = None
    pieces: tuple[Piece, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    left_by: str = "hooks"
    holds_context: bool = False


UNPREPARED = Prepared()


class Given(NamedTuple):
    """What a turn is about when artifacts woke the agent: those, and what becomes of its own.

    `root` is the publish from outside that it all goes back to.
    """

    inputs: tuple[Artifact, ...]
    subscription: str
    root: str
    correlation: str
    publish: bool = True


class Transfer(NamedTuple):
    """A handoff that the model of an agent may choose, offered to it as a tool."""

    schema: ToolSchema
    rule: int
    target: str


class Workflow(Protocol):
    """What decides whose turn it is: a conversation, a set of reactions or a flow.

    `progress` is the type of its own part of the state, and `folds` how facts change that part.
    """

    form: str
    name: str
    version: str
    agents: Mapping[str, Agent]
    variables: Variables
    triggers: Triggers
    toolkit: Toolkit
    outputs: Mapping[str, OutputModel]
    products: Mapping[str, Products]
    hooks: Hooks
    message_hooks: tuple[MessageHook, ...]
    progress: type
    folds: Mapping[type, Callable[[Any, Any], None]]

    def begin(self) -> Any:
        """The workflow's own part of a fresh state."""
        ...

    def decide(self, state: RunState) -> Decision:
        """What comes next, from the state alone."""
        ...

    def due(self, state: RunState) -> datetime | None:
        """When something is overdue next, of what the workflow itself waits for."""
        ...

    def overdue(self, state: RunState, now: datetime) -> Sequence[tuple[str, Fact]]:
        """What is to be put on record because its time has come."""
        ...

    def alternatives(self, state: RunState) -> Sequence[str]:
        """The agents that could take a turn in place of one another."""
        ...

    def transfers(self, agent: str, state: RunState) -> Sequence[Transfer]:
        """The handoffs that the agent's model may choose at this moment."""
        ...

    def shows(self, agent: str) -> bool:
        """Whether the user sees what this agent says."""
        ...
