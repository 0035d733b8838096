"""What a form can decide: the next thing to begin, one at a time."""

import msgspec

from turnloom.agents.spec import Question
from turnloom.board.spec import Artifact
from turnloom.log.spec import Fact

# Facts by id; each action records its own before anything else.
Facts = tuple[tuple[str, Fact], ...]


class Record(msgspec.Struct, frozen=True):
    """Record facts that need nothing else."""

    facts: Facts


class Begin(msgspec.Struct, frozen=True):
    """Begin a turn or a step: reserve what it is charged to (nothing, if that is empty), then
    record that it is open. `of` is the name of the step or the agent."""

    charge: str
    opens: Facts
    of: str
    facts: Facts = ()


class Ask(msgspec.Struct, frozen=True):
    """Ask a person."""

    question: Question
    facts: Facts = ()


class Finish(msgspec.Struct, frozen=True):
    """End the run: once nothing runs any more, or at once."""

    status: str = "finished"
    reason: str = ""
    at_once: bool = False
    facts: Facts = ()


class Draw(msgspec.Struct, frozen=True):
    """Let chance pick one of these."""

    id: str
    among: tuple[str, ...]
    facts: Facts = ()


class Pick(msgspec.Struct, frozen=True):
    """Let a model pick one of these agents."""

    id: str
    among: tuple[str, ...]
    facts: Facts = ()


class Select(msgspec.Struct, frozen=True):
    """Let a guard choose among its candidates, as a turn would go to one of them."""

    id: str
    agent: str
    facts: Facts = ()


class Judge(msgspec.Struct, frozen=True):
    """Offer an artifact to the subscriptions to its type, or to one only."""

    artifact: str
    only: str = ""
    facts: Facts = ()


class Cross(msgspec.Struct, frozen=True):
    """Ask the code of a flow how a strand continues: at a branch, a loop, a join, an approval, or
    before a step that is validated or cached."""

    strand: str
    facts: Facts = ()


class OpenRun(msgspec.Struct, frozen=True):
    """Open a run in which an agent is given artifacts; `depth` turns in a row led to them, from the
    publish of `root` on."""

    run: str
    agent: str
    subscription: str
    artifacts: tuple[Artifact, ...]
    depth: int = 0
    facts: Facts = ()
    root: str = ""


class Forward(msgspec.Struct, frozen=True):
    """Hand an artifact to the run that collects for a subscription."""

    artifact: Artifact
    subscription: str
    depth: int
    facts: Facts = ()
    root: str = ""


Action = Record | Begin | Ask | Finish | Draw | Pick | Select | Judge | Cross | OpenRun | Forward


class Work(msgspec.Struct, frozen=True):
    """A turn or a step that is open.

    The ids of its events begin with `key`. `is_over` says that it is to be cut off, and `is_alone`
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
