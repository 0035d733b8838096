"""Runs that repeat a part of another one: what stands in for their effects, and their board."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from typing import NamedTuple

import anyio

from turnloom.agents.spec import Question
from turnloom.board.ports import ArtifactStore
from turnloom.board.spec import (
    Artifact,
    BoardSummary,
    Consumption,
    FilterConfig,
    Page,
    Reader,
)
from turnloom.board.spec.queries import StoredArtifact
from turnloom.kernel.values import Json, as_object
from turnloom.log.events import RunForked
from turnloom.log.logic import in_life, standing
from turnloom.log.ports import EventLog
from turnloom.log.spec import RunKey
from turnloom.runtime.calls import Parked, answer_to
from turnloom.runtime.journal import Journal
from turnloom.runtime.logic import scope_of
from turnloom.runtime.originals import (
    ASK,
    Original,
    RecordedCall,
    after_cut,
    asker_of,
    before_retry,
    deliveries,
    dialogues,
    published_after,
    recorded_calls,
    request_of,
    requests,
)
from turnloom.runtime.retrying import RECORDED
from turnloom.runtime.spec import ALLOW, EFFECT, REFUSE, REPLACE
from turnloom.runtime.world import CallResult, DeliveryVerdict, EffectRefused, GivenResult

# The answer to the question whether an effect may be performed.
_SCHEMA: Json = {
    "description": f'{ALLOW}, {REFUSE}, or {{"decision": "{REPLACE}", "result": …}}',
    "anyOf": [
        {"enum": [ALLOW, REFUSE]},
        {
            "type": "object",
            "properties": {"decision": {"enum": [ALLOW, REFUSE, REPLACE]}, "result": {}},
            "required": ["decision"],
            "additionalProperties": False,
        },
    ],
}


class RunBranch:
    """A run that was forked, or is done again from some point, and what its original did after that
    point. The original is read when it is first needed."""

    def __init__(self, journal: Journal, log: EventLog) -> None:
        self._journal = journal
        self._log = log
        assert journal.state.origin is not None
        self._of, self._at = journal.state.origin
        self._original: Original | None = None
        self._reading = anyio.Lock()
        self._is_read = False
        self._calls: list[RecordedCall] = []
        self._sent: list[str] = []
        self._assigned: dict[str, RecordedCall | None] = {}

    @property
    def is_fork(self) -> bool:
        """Whether the original is another run."""
        return self._of != self._journal.run.id

    async def judge(self, effect: str, what: str) -> CallResult | GivenResult | None:
        """What stands in for a call; None if the call is made.

        Raises:
            Parked: the run's user is asked.
            EffectRefused: it is not made, and nothing stands in for it.
        """
        state = self._journal.state
        intent = self._journal.recorded(f"{effect}?")
        request = request_of(intent, state.progress)
        await self._read()
        found = self._assign(effect, request)
        if found is not None and self._has_same_answers(found, effect):
            is_retried = found.result.error is not None and not self.is_fork
            return None if is_retried else found.result
        answer = self._permission(effect, what)
        if answer["decision"] == ALLOW:
            return None
        if answer["decision"] == REPLACE:
            return GivenResult(answer.get("result"))
        raise EffectRefused(f"{what!r} was not called. {self._why()}")

    async def judge_delivery(self, effect: str, request: str, what: str) -> DeliveryVerdict:
        """What becomes of a delivery to another run.

        Raises:
            Parked: the run's user is asked.
        """
        await self._read()
        if request in self._sent:
            self._sent.remove(request)
            return "recorded"
        is_allowed = self._permission(effect, what)["decision"] == ALLOW
        return "live" if is_allowed else "refused"

    async def original(self) -> Original:
        """The events of the original before and after the point."""
        if self._original is None:
            events = await self._log.read(RunKey(self._journal.run.tenant, self._of))
            split = after_cut if self.is_fork else before_retry
            self._original = split(events, self._at)
        return self._original

    async def _read(self) -> None:
        """Read the original's calls, and leave out those that stood in for others before this
        process."""
        async with self._reading:  # calls begin side by side
            if not self._is_read:
                await self._read_calls()
                self._is_read = True

    async def _read_calls(self) -> None:
        form, original = self._journal.workflow, await self.original()
        self._calls, self._sent = recorded_calls(form, original), deliveries(original)
        events = standing(await self._log.read(self._journal.run))
        begun = len(original.before) if self.is_fork else self._at
        own = {event.id for event in events if event.seq > begun}
        for key, request in requests(form, events):
            if f"{key}?" in own and f"{key}.0" in own:
                self._assign(key, request)
        for request in deliveries(after_cut(events, begun)):
            if request in self._sent:
                self._sent.remove(request)

    def _assign(self, effect: str, request: str) -> RecordedCall | None:
        """The recorded call that stands in for a call: the one of its key, or else the next one
        that requests the same."""
        if effect not in self._assigned:
            same = [each for each in self._calls if each.request == request]
            own = [each for each in same if each.key == effect]
            found = next(iter(own or same), None)
            if found is not None:
                self._calls.remove(found)
            self._assigned[effect] = found
        return self._assigned[effect]

    def _has_same_answers(self, found: RecordedCall, effect: str) -> bool:
        """Whether a call got the answers that the recorded one got, so far."""
        state, asker = self._journal.state, asker_of(effect)
        scope = scope_of(state, effect)
        facts = [each.data for each in scope.recorded.values()] if scope else state.chat.values()
        given = [answered.value for _, answered in dialogues(facts).get(asker, ())]
        known = [answered.value for _, answered in found.result.dialogue]
        return known[: len(given)] == given

    def _permission(self, effect: str, what: str) -> dict[str, Json]:
        """The answer to the question whether an effect may be performed.

        Raises:
            Parked: it is not answered yet.
        """
        journal, state = self._journal, self._journal.state
        if state.tools == RECORDED or state.cancel or not journal.workflow.has_people:
            return {"decision": REFUSE}
        is_kept = scope_of(state, effect) is not None or effect.startswith("chat/")
        key = effect if is_kept else f"chat/{effect}"
        id = in_life(f"{key}{ASK}{ALLOW}", state.life)
        answered = answer_to(journal, id)
        if answered is not None:
            return as_object(answered.value) or {"decision": answered.value}
        raise Parked(self._question(id, effect, what))

    def _question(self, id: str, effect: str, what: str) -> Question:
        intent = self._journal.recorded(f"{effect}?")
        payload: dict[str, Json] = {
            "prompt": f"{self._not_done()} Allow {what!r}?",
        }
        arguments = getattr(intent, "arguments", None)
        if arguments is not None:
            payload["arguments"] = arguments
        prompt = str(payload["prompt"])
        return Question(
            id, prompt, self._journal.state.user, EFFECT, payload=payload, schema=_SCHEMA
        )

    def _not_done(self) -> str:
        whose = f"Run {self._of!r}" if self.is_fork else "This run"
        return f"{whose} did not do this before."

    def _why(self) -> str:
        """Why nothing stands in for an effect, and what to do."""
        if self._journal.state.tools != RECORDED and self._journal.workflow.has_people:
            return "It was refused."
        return f"`--tools live` makes such calls. {self._not_done()}"

    def board(self, artifacts: ArtifactStore) -> ArtifactStore:
        """The board as the run sees it: a fork's is that of the cut, with what the fork
        publishes."""
        state = self._journal.state
        if not (self.is_fork and state.correlation):
            return artifacts
        return ForkedBoard(artifacts, self, state.run)


class ForkedBoard:
    """The board as a fork sees it: as it was at the cut, and what the fork published since."""

    def __init__(self, artifacts: ArtifactStore, branch: RunBranch, run: str) -> None:
        self._artifacts = artifacts
        self._branch = branch
        self._run = run

    @property
    def follows_log(self) -> bool:
        """Whether an append to the log updates this store."""
        return self._artifacts.follows_log

    async def put(self, tenant: str, artifacts: Sequence[Artifact]) -> None:
        """Add artifacts of a tenant."""
        await self._artifacts.put(tenant, artifacts)

    async def consume(self, tenant: str, consumptions: Sequence[Consumption]) -> None:
        """Add consumptions of a tenant."""
        await self._artifacts.consume(tenant, consumptions)

    async def find(self, tenant: str, id: str) -> Sequence[StoredArtifact]:
        """The rows of an id."""
        return await self._artifacts.find(tenant, id)

    async def get(self, id: str, reader: Reader, now: datetime) -> Artifact | None:
        """A copy of the artifact with this id; None if the reader may see none."""
        found = await self._artifacts.get(id, reader, now)
        if found is None or found.run == self._run:
            return found
        cut, hidden = (await self._lineage())[-1].until, await self._hidden()
        return None if found.created_at > cut or id in hidden else found

    async def query(
        self,
        filter: FilterConfig,
        reader: Reader,
        now: datetime,
        *,
        embed_meta: bool = False,
        cursor: str | None = None,
        count: bool = False,
    ) -> Page:
        """A page of what matches the filter: of one part of the board, the past or what the fork
        published."""
        parts = await self._parts(filter)
        if filter.order != "created_at":
            parts.reverse()
        place, _, inner = (cursor or "0:").partition(":")
        number = int(place) if place.isdigit() and int(place) < len(parts) else 0
        page = await self._artifacts.query(
            parts[number], reader, now, embed_meta=embed_meta, cursor=inner or None
        )
        onward = f"{number + 1}:" if number + 1 < len(parts) else None
        if page.cursor is not None:
            onward = f"{number}:{page.cursor}"
        hidden = await self._hidden()
        items = tuple(each for each in page.items if each.id not in hidden)
        total = (await self.summary(filter, reader, now)).total if count else None
        return Page(items, total, onward)

    async def newest(
        self,
        correlation: str,
        reader: Reader,
        now: datetime,
        most: int,
        *,
        without: Set[str] = frozenset(),
    ) -> Sequence[Artifact]:
        """Copies of the last artifacts of a correlation, newest first, without those of some
        ids."""
        limit = most + len(without)
        filter = FilterConfig(correlation_id=correlation, order="-created_at", limit=limit)
        found: list[Artifact] = []
        cursor: str | None = None
        while len(found) < most:
            page = await self.query(filter, reader, now, cursor=cursor)
            found += [each for each in page.items if each.id not in without]
            cursor = page.cursor
            if cursor is None:
                break
        return found[:most]

    async def summary(self, filter: FilterConfig, reader: Reader, now: datetime) -> BoardSummary:
        """Counts of the artifacts that match the filter."""
        parts = [
            await self._artifacts.summary(part, reader, now) for part in await self._parts(filter)
        ]
        return BoardSummary(
            total=sum(part.total for part in parts),
            by_type=_sum(part.by_type for part in parts),
            by_producer=_sum(part.by_producer for part in parts),
            by_visibility=_sum(part.by_visibility for part in parts),
            by_tag=_sum(part.by_tag for part in parts),
        )

    async def upcoming(self, tenant: str, now: datetime, limit: int) -> Sequence[datetime]:
        """The next instants at which artifacts become visible to a tenant."""
        return await self._artifacts.upcoming(tenant, now, limit)

    async def aclose(self) -> None:
        """Do nothing: the store closes with its owner."""

    async def _parts(self, filter: FilterConfig) -> list[FilterConfig]:
        """The filters of the parts of the board, in the order of time."""
        past = await self._lineage()
        if filter.correlation_id != self._run:
            past = [past[-1]._replace(correlation=filter.correlation_id)]
        parts = [
            filter.model_copy(
                update={
                    "correlation_id": each.correlation,
                    "until": min(each.until, filter.until or each.until),
                }
            )
            for each in past
        ]
        runs = {self._run} & {*(filter.runs if filter.runs is not None else (self._run,))}
        return [*parts, filter.model_copy(update={"runs": frozenset(runs)})]

    async def _lineage(self) -> "list[Ancestor]":
        """The correlations of the runs that the fork comes from, each up to its cut."""
        before = (await self._branch.original()).before
        found = [Ancestor(before[0].data.correlation, before[-1].at)]
        for event in before:
            if isinstance(event.data, RunForked):
                found[-1] = found[-1]._replace(until=event.data.since)
                found.append(Ancestor(event.run, before[-1].at))
        return found

    async def _hidden(self) -> frozenset[str]:
        """What the original published after the cut, maybe at the same instant."""
        return published_after(await self._branch.original())


class Ancestor(NamedTuple):
    """The correlation of a run that a fork comes from, and the time of the cut."""

    correlation: str | None
    until: datetime


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)
