"""What guards know of a run: a part of its state, folded from its log."""

from datetime import datetime

import msgspec

from turnloom.guards.spec.budgets import Amounts


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """A turn as far as loops are concerned: the digest of what was done in it, the beginning of
    what was said, whether anything came of it, and whether something went wrong or a person had to
    be asked."""

    turn: int
    agent: str
    action: str
    output: str = ""
    progress: bool = True
    frustrated: bool = False


class Hint(msgspec.Struct, frozen=True):
    """What an agent is told in its next turn, and why."""

    text: str
    reason: str


class Escalation(msgspec.Struct, frozen=True):
    """What a person is asked about a loop, and whose loop it is."""

    question: str
    prompt: str
    agents: tuple[str, ...]


class Watch(msgspec.Struct):
    """What guards know of a run.

    `held` has what calls that are going on have reserved, by key; `seconds` how long the run went
    on until the instant `at`, without the time in which it waited. Of loops: the last `entries`,
    how often each loop was recovered from, what agents are to be told in their next turn, and are
    told in turns that are open, whose turn it is not to be, and what a person is asked.
    """

    spent: Amounts = Amounts()
    held: dict[str, Amounts] = {}
    seconds: float = 0.0
    at: datetime | None = None
    level: str = "abundant"
    entries: list[Entry] = []
    recoveries: dict[str, int] = {}
    hints: dict[str, Hint] = {}
    told: dict[int, Hint] = {}
    avoided: tuple[str, ...] = ()
    escalation: Escalation | None = None
