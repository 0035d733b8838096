"""Actions: what a form can decide to do next."""

from collections.abc import Mapping

import msgspec

from turnloom.agents.spec import Question
from turnloom.board.spec import Artifact
from turnloom.log.spec import Fact

# Facts by id; an action records its own first.
Facts = tuple[tuple[str, Fact], ...]


class Record(msgspec.Struct, frozen=True):
    """Record facts, and do nothing else."""

    facts: Facts


class Begin(msgspec.Struct, frozen=True):
    """Begin a turn or a step: reserve budget under `charge` (none if empty), then record `opens`.
    `of` is the name of the step or the agent."""

    charge: str
    opens: Facts
    of: str
    facts: Facts = ()


class Ask(msgspec.Struct, frozen=True):
    """Ask a person a question."""

    question: Question
    facts: Facts = ()


class Finish(msgspec.Struct, frozen=True):
    """End the run: once its open work has ended, or at once."""

    status: str = "finished"
    reason: str = ""
    at_once: bool = False
    facts: Facts = ()


class Draw(msgspec.Struct, frozen=True):
    """Pick one of these at random."""

    id: str
    among: tuple[str, ...]
    facts: Facts = ()


class Pick(msgspec.Struct, frozen=True):
    """Let a model pick one of these agents, or one of these handoffs of the user: `choices` says
    what each of them is for."""

    id: str
    among: tuple[str, ...]
    facts: Facts = ()
    choices: Mapping[str, str] = {}


class Select(msgspec.Struct, frozen=True):
    """Let the selection guard choose among its candidates, of which `agent` is one."""

    id: str
    agent: str
    facts: Facts = ()


class Judge(msgspec.Struct, frozen=True):
    """Offer an artifact to the subscriptions to its type, or to one only."""

    artifact: str
    only: str = ""
    facts: Facts = ()


class Cross(msgspec.Struct, frozen=True):
    """Call the flow's code to decide how a strand continues: at a branch, a loop, a join, an
    approval, or before a step that is validated or cached."""

    strand: str
    facts: Facts = ()


class OpenRun(msgspec.Struct, frozen=True):
    """Start a run in which an agent gets artifacts; `depth` is the number of turns in a row that
    led to them, counted from the publication of `root`."""

    run: str
    agent: str
    subscription: str
    artifacts: tuple[Artifact, ...]
    depth: int = 0
    facts: Facts = ()
    root: str = ""


class Forward(msgspec.Struct, frozen=True):
    """Forward an artifact to the run that collects for a subscription."""

    artifact: Artifact
    subscription: str
    depth: int
    facts: Facts = ()
    root: str = ""


Action = Record | Begin | Ask | Finish | Draw | Pick | Select | Judge | Cross | OpenRun | Forward


class Work(msgspec.Struct, frozen=True):
    """An open turn or step.

    The ids of its events start with `key`. `is_over` means that it must be cut off, and `is_alone`
    that nothing else can begin before it ends.
    """

    key: str
    number: int
    agent: str = ""
    turn: int = 0
    is_over: bool = False
    is_alone: bool = False

    def asked(self, question: str) -> bool:
        """Whether a question was asked inside this work."""
        return question.startswith((f"{self.key}/", f"t{self.turn}/"))
