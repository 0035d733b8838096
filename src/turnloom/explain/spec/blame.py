"""Where a text is from: every place of a run that has it, and where it first entered."""

import msgspec

from turnloom.explain.spec.text import ReadableExplanation, counted, one_line, table
from turnloom.kernel.markup import visible

PLACES = ("seq", "event", "turn", "where", "entered", "text")


class TextOrigin(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event that brought a text into a run; `where` is its field.

    If it brought an artifact of another run, `artifact` and `from_run` name them, and `earlier` is
    where the text entered that run, and so on. `note` says why such a run could not be read.
    """

    run: str
    seq: int
    kind: str
    actor: str
    where: str
    says: str
    artifact: str = ""
    from_run: str = ""
    earlier: tuple["TextOrigin", ...] = ()
    note: str = ""

    @property
    def line(self) -> str:
        """The event as one line."""
        where = f" ({self.where})" if self.where else ""
        return f"seq {self.seq} {self.kind}{where}: {self.says}"

    @property
    def chain(self) -> list[str]:
        """The entries in other runs, and what could not be read, one line each."""
        lines = [f"← {each.line}, run {each.run}" for each in self.earlier]
        notes = [each.note for each in (self, *self.earlier) if each.note]
        return [*lines, *(f"← {note}" for note in notes)]


class TextPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """An occurrence of a text: in a segment of a frame, in its history, or in another event.

    `where` is the segment, or the field of the event. `origin` is the event behind a segment, and
    `entered` the one that brought the text into the run. Unless `exact`, white space or quotes
    differ. `messages` counts the messages of a history that have it.
    """

    seq: int
    kind: str
    where: str
    origin: int
    entered: int
    exact: bool
    excerpt: str
    turn: int = 0
    agent: str = ""
    reason: str = ""
    messages: int = 0

    @property
    def cells(self) -> tuple[str, ...]:
        """Table cells: the event, its turn, what has the text, which event brought it, the text."""
        whose = f"{self.turn} of {self.agent}" if self.turn else self.agent or "-"
        alike = "" if self.exact else "≈ "
        where = (
            f"{self.where}, {counted(self.messages, 'message')}" if self.messages else self.where
        )
        entered = f"seq {self.entered}" if self.entered != self.seq else "here"
        text = f"{alike}{one_line(self.excerpt.strip())}"
        return str(self.seq), self.kind, whose, where, entered, text


class BlameExplained(ReadableExplanation, frozen=True):
    """Every place of a run that has a text, and the events that brought it there, in log order."""

    run: str
    text: str
    places: tuple[TextPlace, ...]
    entries: tuple[TextOrigin, ...]

    def __str__(self) -> str:
        rows = [f"  {row}" for row in table([PLACES, *(each.cells for each in self.places)])]
        return visible("\n".join([self.headline, *self.entered, *(rows if self.places else [])]))

    @property
    def headline(self) -> str:
        """The text, and the number of places."""
        frames = len({each.seq for each in self.places if each.kind == "frame.assembled"})
        others = len(self.places) - sum(each.kind == "frame.assembled" for each in self.places)
        text = one_line(self.text, 60)
        if not self.places:
            return f"“{text}” occurs nowhere in run {self.run}"
        found = f"{counted(frames, 'frame')} and {counted(others, 'other event')}"
        return f"“{text}” occurs in {found}, run {self.run}"

    @property
    def entered(self) -> list[str]:
        """The events that brought the text into the run, one line each."""
        lines: list[str] = []
        for each in self.entries:
            lines += [f"  {each.line}", *(f"    {line}" for line in each.chain)]
        return ["Entered at:", *lines] if lines else []
