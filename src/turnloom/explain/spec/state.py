"""The state of a run at one of its events."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from turnloom.agents.spec import Question
from turnloom.explain.spec.board import ArtifactName
from turnloom.explain.spec.text import ReadableExplanation, moment, one_line, table
from turnloom.explain.spec.variable import shown
from turnloom.kernel.markup import visible
from turnloom.kernel.values import Json, preview

# A section of a state: its title, the names of its columns, and its rows.
Section = tuple[str, Sequence[str], Sequence[Sequence[str]]]


class VariableValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """The value of a variable, the event that it is from, and its writer; a first value has its
    source instead. An `ephemeral` value lived only in the memory of a process."""

    name: str
    value: Json
    since: int
    writer: str = ""
    ephemeral: bool = False


class AbsentVariable(msgspec.Struct, frozen=True):
    """A variable without a value, and why; `since` is 0 if no event says so."""

    name: str
    reason: str
    since: int = 0


class OpenWork(msgspec.Struct, frozen=True, omit_defaults=True):
    """A turn or a step that has begun and not ended: its number, its agent or place, and the event
    that began it."""

    what: str
    number: int
    who: str
    since: int
    attempt: int = 0


class StrandState(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of execution of a flow: where it is, what it does, and its state.

    The flow itself has the id `""`, the paths of forks have others. `passes` are the current passes
    of the loops around its place, the outer loop first. `failure` is why it failed.
    """

    id: str
    place: str
    status: str
    passes: tuple[int, ...] = ()
    failure: str = ""
    state: Mapping[str, Json] = {}

    @property
    def cells(self) -> tuple[str, ...]:
        """Table cells: strand, place, status; the place says the passes."""
        status = f"{self.status}: {one_line(self.failure)}" if self.failure else self.status
        return self.id or "(flow)", self.place or "(end)", status


class QueuedArtifacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Artifacts of a board's run that are still in use: who uses them, how, and which."""

    use: str
    who: str
    artifacts: tuple[str, ...]
    until: datetime | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        """Table cells: use, agent or subscription, artifacts."""
        use = f"{self.use} until {moment(self.until)}" if self.until else self.use
        return use, self.who, ", ".join(self.artifacts)


class SpeakerState(msgspec.Struct, frozen=True):
    """The position of a conversation: who spoke last, and who is next and why, if that is
    decided."""

    last: str = ""
    next: str = ""
    reason: str = ""

    @property
    def says(self) -> str:
        """The position as one line."""
        last = f"{self.last} spoke last" if self.last else "no message yet"
        why = f" ({one_line(self.reason)})" if self.reason else ""
        return f"{last}; next: {self.next or 'not decided'}{why if self.next else ''}"


class StateExplained(ReadableExplanation, frozen=True):
    """The state of a run right after one of its events, as the driver had it.

    - `at`, `kind`, `time`: the event; `events` is the number of all events of the run
    - `failure`: the error that stops the run
    - `variables`, `absent`: variables with and without a value
    - `speakers`: the position of a conversation
    - `strands`: the position in a flow, the flow itself first; each has its state
    - `queued`: artifacts of a board's run that are in use, such as waiting for others
    - `artifacts`: those of a board's run so far that `agent` may see then; without one, all
    - `spent`: the used budget; `timers`: the instants that the run waits for, by name
    - `missing`: what this program cannot tell, and why
    """

    run: str
    workflow: str
    form: str
    at: int
    kind: str
    time: datetime
    events: int
    status: str
    turns: int
    failure: str = ""
    variables: tuple[VariableValue, ...] = ()
    absent: tuple[AbsentVariable, ...] = ()
    questions: tuple[Question, ...] = ()
    work: tuple[OpenWork, ...] = ()
    timers: Mapping[str, datetime] = {}
    speakers: SpeakerState | None = None
    strands: tuple[StrandState, ...] = ()
    queued: tuple[QueuedArtifacts, ...] = ()
    agent: str = ""
    artifacts: tuple[ArtifactName, ...] = ()
    spent: str = ""
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.headline, *self.about]
        for title, columns, rows in self.sections:
            lines += [f"{title}:", *(f"  {line}" for line in table([columns, *rows]))]
        return visible("\n".join([*lines, *self.notes]))

    @property
    def headline(self) -> str:
        """The run and its status as one line."""
        return f"Run {self.run} of {self.workflow} as of seq {self.at}: {self.status}"

    @property
    def about(self) -> list[str]:
        """What is said in one line each: the event, the failure, the position of a conversation,
        the budget, and what there is none of."""
        lines = [f"Event: {self.kind}, {self.at} of {self.events}, {moment(self.time)}"]
        if self.failure:
            lines.append(f"Failure: {one_line(self.failure, 200)}")
        if self.speakers is not None:
            lines.append(f"Speakers: {self.speakers.says}")
        if self.spent:
            lines.append(f"Budget: used {self.spent}")
        if not self.variables and not self.absent:
            lines.append("Variables: none")
        if self.form == BOARD and not self.artifacts:
            lines.append(f"Artifacts{self._seen_by}: none")
        return lines

    @property
    def notes(self) -> list[str]:
        """What is missing, one line each."""
        return [f"Missing: {each}" for each in self.missing]

    @property
    def sections(self) -> list[Section]:
        """The parts that are tables, without empty ones."""
        return [section for section in self._sections() if section[2]]

    @property
    def _seen_by(self) -> str:
        return f" that {self.agent} may see" if self.agent else ""

    def _sections(self) -> Iterator[Section]:
        values = [
            (_since(each.since), each.name, shown(each.value, each.ephemeral), each.writer)
            for each in self.variables
        ]
        yield "Variables", ("seq", "name", "value", "from"), values
        absent = [(_since(each.since), each.name, each.reason) for each in self.absent]
        yield "Absent variables", ("seq", "name", "reason"), absent
        yield "Questions", ("seq", "id", "to", "question", "due"), [*map(_asked, self.questions)]
        yield "Open", ("seq", "what", "who", "attempt"), [*map(_open, self.work)]
        timers = [(name, moment(due)) for name, due in self.timers.items()]
        yield "Timers", ("timer", "due"), timers
        strands = [each.cells for each in self.strands]
        yield "Position", ("strand", "place", "status"), strands
        for strand in self.strands:
            title = f"State of strand {strand.id}" if strand.id else "State"
            fields = [(name, preview(value)) for name, value in strand.state.items()]
            yield title, ("field", "value"), fields
        queued = [each.cells for each in self.queued]
        yield "In use", ("use", "who", "artifacts"), queued
        artifacts = [*map(self._artifact, self.artifacts)]
        columns = ("seq", "id", "type", "produced by", "made from")
        yield f"Artifacts{self._seen_by}", columns, artifacts

    def _artifact(self, each: ArtifactName) -> tuple[str, ...]:
        elsewhere = f" in run {each.run}" if each.run != self.run else ""
        by, parents = f"{each.produced_by}{elsewhere}", ", ".join(each.parents) or "-"
        return _since(each.seq), each.id, each.type, by, parents


# The form of runs of boards.
BOARD = "reaction"


def _since(seq: int) -> str:
    return str(seq) if seq else "-"


def _asked(question: Question) -> tuple[str, ...]:
    said = question.prompt or (f"tool {question.tool}" if question.tool else "")
    due = moment(question.due) if question.due else "-"
    return _since(question.seq), question.id, question.to or "-", said or "-", due


def _open(each: OpenWork) -> tuple[str, ...]:
    attempt = str(each.attempt) if each.attempt else "-"
    return _since(each.since), f"{each.what} {each.number}", each.who, attempt
