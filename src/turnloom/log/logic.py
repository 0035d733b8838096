"""Encode events as JSON and decode them, upgrading old versions of events on reading."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from turnloom.errors import Conflict, UnknownKind, UsageError
from turnloom.kernel.values import as_object
from turnloom.log.events import ENDS, Pin, RunForked, RunPaused, RunRetried, RunStarted
from turnloom.log.spec import UNREADABLE, Event, Fact, RunFilter, Unreadable

# Converts the data of an event from one version to the next.
Upcast = Callable[[dict[str, Any]], dict[str, Any]]


class _Stored(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    id: str
    run: str
    seq: int
    at: datetime
    kind: str
    actor: str
    data: msgspec.Raw
    cause: int | None = None
    v: int = 1


class _Seen(NamedTuple):
    """The readable fields of an event that cannot be decoded."""

    id: str
    run: str
    seq: int
    kind: str
    at: datetime | None


def _look(line: bytes) -> _Seen:
    """The readable fields of an event that cannot be decoded."""
    try:
        found = as_object(msgspec.json.decode(line)) or {}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = dict[str, Any]()
    id, run, kind = (
        value if isinstance(value := found.get(name), str) else "" for name in ("id", "run", "kind")
    )
    seq = found.get("seq")
    try:
        at = msgspec.convert(found.get("at"), datetime)
    except msgspec.ValidationError:
        at = None
    return _Seen(id, run, seq if type(seq) is int else 0, kind, at=at if at and at.tzinfo else None)


def started_of(events: Sequence[Event]) -> RunStarted:
    """The first fact of a run, with the definition that the run continues with now."""
    started = events[0].data
    assert isinstance(started, RunStarted)
    for event in events:
        if isinstance(event.data, RunRetried | RunForked) and event.data.pin is not None:
            started = repinned(started, event.data.pin)
    return started


def repinned(started: RunStarted, pin: Pin) -> RunStarted:
    """The first fact of a run, with another definition."""
    return msgspec.structs.replace(started, **msgspec.structs.asdict(pin))


# Separates an id from the number of the retry after which its event was recorded.
LIFE = "~"


def in_life(id: str, life: int) -> str:
    """The id of an event or a question after so many retries: the ids of a run are unique."""
    return f"{id}{LIFE}{life}" if life else id


def plain_id(id: str, life: int) -> str:
    """An id without the mark of a life."""
    return id.removesuffix(f"{LIFE}{life}") if life else id


def standing(events: Sequence[Event], life: int = 0) -> Sequence[Event]:
    """The events that count after the retries of a run, under their plain ids; `life` is the number
    of retries before the first of them."""
    retries = [event.data for event in events if isinstance(event.data, RunRetried)]
    if not retries and not life:
        return events
    voided = {
        seq for each in retries for first, last in each.voided for seq in range(first, last + 1)
    }
    found: list[Event] = []
    for event in events:
        if event.seq not in voided or isinstance(event.data, RunRetried):
            plain = plain_id(event.id, life)
            found.append(event if plain == event.id else msgspec.structs.replace(event, id=plain))
        life += isinstance(event.data, RunRetried)
    return found


def ranges(positions: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Positions as ranges, each with its first and its last."""
    found: list[tuple[int, int]] = []
    for seq in sorted(positions):
        if found and seq == found[-1][1] + 1:
            found[-1] = (found[-1][0], seq)
        else:
            found.append((seq, seq))
    return tuple(found)


# The status of a run that cannot be read.
BROKEN = "broken"

# Every status of a run.
STATUSES = (
    *sorted(kind.removeprefix("run.") for kind in ENDS),
    "waiting",
    "collecting",
    "unfinished",
    BROKEN,
)


def status_of(last: Event) -> str:
    """The status of a run with this last event: one of `STATUSES`."""
    if last.kind in ENDS:
        return last.kind.removeprefix("run.")
    match last.data:
        case Unreadable():
            return BROKEN
        case RunPaused(collected=None):
            return "waiting"
        case RunPaused():
            return "collecting"
        case _:
            return "unfinished"


def check_batch(run: str, events: Sequence[Event], after: int) -> None:
    """Check that events belong to a run, at the positions after `after`.

    Raises:
        UsageError: one of them does not.
    """
    for seq, event in enumerate(events, after + 1):
        if event.seq != seq or event.run != run:
            raise UsageError(
                f"Event {event.id!r} has run {event.run!r} and seq {event.seq}, but is appended to "
                f"run {run!r} at {seq}. Create it for the right run and seq."
            )


def check_branch(run: str, events: Sequence[Event], at: int) -> None:
    """Check the own events of a branch.

    Raises:
        UsageError: there are none, or they have another run or other positions.
    """
    if not events:
        raise UsageError(f"Branch {run!r} needs at least one event of its own.")
    check_batch(run, events, at)


def check_cut(run: str, at: int, batch_end: int) -> None:
    """Check that a run can be cut after a position.

    Raises:
        UsageError: the position is inside a batch.
    """
    if batch_end != at:
        raise UsageError(
            f"Event {at} of run {run!r} was appended together with those up to {batch_end}. Branch "
            f"after event {batch_end}."
        )


def no_position(run: str, seq: int, end: int) -> UsageError:
    """The refusal of a position that a run does not have."""
    return UsageError(f"Run {run!r} has no event {seq}. Choose one from 1 to {end}.")


def run_exists(run: str) -> Conflict:
    """The refusal to begin a run that exists."""
    return Conflict(f"Run {run!r} exists already. Choose another id.")


def listed_first(first: Event, run: str, begun: datetime) -> Event:
    """The first event of a run as a log lists it: that of a branch has the time at which the branch
    began."""
    return first if first.run == run else msgspec.structs.replace(first, at=begun)


def is_chosen(which: RunFilter, first: Event, last: Event) -> bool:
    """Whether a filter chooses the run that begins and ends with these events."""
    started = first.data if isinstance(first.data, RunStarted) else None
    status = BROKEN if isinstance(first.data, Unreadable) else status_of(last)
    return (
        (not which.statuses or status in which.statuses)
        and (which.workflow is None or started is not None and started.workflow == which.workflow)
        and (which.user is None or started is not None and started.user == which.user)
        and (which.since is None or first.at >= which.since)
        and (which.until is None or first.at <= which.until)
    )


class Codec:
    """Encodes and decodes the facts of this release as JSON lines."""

    def __init__(
        self,
        facts: Iterable[type[Fact]],
        upcasts: Mapping[tuple[str, int], Upcast] | None = None,
    ) -> None:
        self._types = {fact.kind: fact for fact in facts}
        self._decoders = {kind: msgspec.json.Decoder(fact) for kind, fact in self._types.items()}
        self._upcasts = dict(upcasts or {})
        self._envelope = msgspec.json.Decoder(_Stored)
        self._encoder = msgspec.json.Encoder()

    @property
    def kinds(self) -> tuple[str, ...]:
        """Every kind that this codec knows."""
        return tuple(self._types)

    def encode(self, event: Event) -> bytes:
        """The event as one JSON object.

        Raises:
            UnknownKind: the codec does not know the event's fact.
        """
        return self.encode_lines((event,))

    def encode_lines(self, events: Sequence[Event]) -> bytes:
        """The events as JSON objects, one per line.

        Raises:
            UnknownKind: the codec does not know the fact of an event.
        """
        types = self._types
        for event in events:
            if type(event.data) is not types.get(event.kind):
                raise UnknownKind(f"Event {event.id!r} has the unknown kind {event.kind!r}.")
        return self._encoder.encode_lines(events)[:-1]

    def show(self, line: bytes, run: str) -> Event:
        """Decode an event; one that cannot be read becomes an `Unreadable` with the reason."""
        try:
            return self.decode(line, run)
        except UnknownKind as error:
            seen = _look(line)
            at = seen.at or datetime.fromtimestamp(0, UTC)
            reason = Unreadable(str(error))
            return Event(seen.id, run, seen.seq, at, kind=UNREADABLE, actor="", data=reason)

    def decode(self, line: bytes, run: str = "", seq: int = 0) -> Event:
        """Decode an event into its current version; `run` and `seq` locate it in the error message.

        Raises:
            UnknownKind: this release does not know the kind, its version or its fields.
        """
        try:
            stored = self._envelope.decode(line)
            return Event(
                stored.id,
                stored.run,
                stored.seq,
                stored.at,
                kind=stored.kind,
                actor=stored.actor,
                data=self._data(stored),
                cause=stored.cause,
                v=self._types[stored.kind].version,
            )
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            seen = _look(line)
            which = f"Event {seen.seq or seq or '?'} of run {seen.run or run or '?'!r}"
            called = f" ({seen.kind} {seen.id!r})" if seen.id else ""
            raise UnknownKind(
                f"{which}{called} cannot be read: {error}. Read it with the release that wrote it, "
                "or restore the run from a backup of the store. Other runs are not affected."
            ) from error

    def _data(self, stored: _Stored) -> Fact:
        fact = self._types.get(stored.kind)
        if fact is None:
            raise UnknownKind(
                f"Run {stored.run!r} holds an event of kind {stored.kind!r} (seq {stored.seq}), "
                "which this release does not know. Read it with the release that wrote it."
            )
        if stored.v == fact.version:
            return self._decoders[stored.kind].decode(stored.data)
        return msgspec.convert(self._lift(stored, fact.version), fact)

    def _lift(self, stored: _Stored, version: int) -> dict[str, Any]:
        data: dict[str, Any] = msgspec.json.decode(stored.data)
        for v in range(stored.v, version):
            upcast = self._upcasts.get((stored.kind, v))
            if upcast is None:
                raise msgspec.ValidationError(f"this release cannot upgrade version {v} to {v + 1}")
            try:
                data = upcast(data)
            except (TypeError, KeyError, ValueError, AttributeError) as error:
                raise msgspec.ValidationError(
                    f"the data does not match {stored.kind!r} version {v}"
                ) from error
        if stored.v > version:
            raise msgspec.ValidationError(
                f"it has version {stored.v}; this release knows up to version {version}"
            )
        return data
