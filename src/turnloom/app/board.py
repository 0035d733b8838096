"""Handles of boards."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Set
from typing import TYPE_CHECKING, cast

from turnloom.errors import InvalidArtifact, PlanChanged, ReactionFailed, UsageError
from turnloom.kernel.arguments import (
    as_flag,
    as_function,
    as_name,
    as_one_of,
    as_seconds,
    as_string,
    wrong,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

    from turnloom.agents.spec import Publication
    from turnloom.board.spec import (
        Artifact,
        ArtifactItems,
        BoardHandle,
        FilterConfig,
        Reader,
        Visibility,
    )
    from turnloom.board.spec.queries import BoardSummary
    from turnloom.kernel.values import Json
    from turnloom.reaction.spec.builder import AgentBuilder
    from turnloom.runtime.boards import BoardRuns
    from turnloom.runtime.runs import Runs
    from turnloom.runtime.spec import LoadedWorkflow
    from turnloom.wiring import Parts
    from turnloom.wiring.boards import BoardDeclaration


class Readable:
    """A tenant's board, for reading: what is public in the tenant, or with `read_as` what one
    reader may see."""

    def __init__(self, parts: "Parts", tenant: str) -> None:
        self._parts = parts
        self.app_id = tenant

    def read_as(self, reader: "Reader") -> "BoardHandle":
        """The board as one reader sees it."""
        return self._parts.bind(reader)

    async def query_artifacts(
        self,
        filter: "FilterConfig | None" = None,
        *,
        embed_meta: bool = False,
        cursor: str | None = None,
        count: bool = False,
    ) -> "tuple[ArtifactItems, int | None]":
        """One page of the public artifacts that match the filter, and their total if `count`. While
        the items have a cursor, there may be more."""
        handle = self._public()
        return await handle.query_artifacts(
            filter, embed_meta=embed_meta, cursor=cursor, count=count
        )

    def iter_artifacts(
        self, filter: "FilterConfig | None" = None, *, embed_meta: bool = False
    ) -> "AsyncIterator[Artifact]":
        """All public artifacts that match the filter, read page by page."""
        return self._public().iter_artifacts(filter, embed_meta=embed_meta)

    async def get(self, id: str) -> "Artifact | None":
        """The public artifact of this id, if there is one."""
        return await self._public().get(id)

    async def summary(self, filter: "FilterConfig | None" = None) -> "BoardSummary":
        """The number of public artifacts, by type, producer, visibility and tag."""
        return await self._public().summary(filter)

    def _public(self) -> "BoardHandle":
        from turnloom.board.spec import Reader

        return self.read_as(Reader(tenant=self.app_id))


class Board(Readable):
    """A board of an app: published artifacts trigger the agents that subscribe to them."""

    def __init__(
        self,
        declared: "BoardDeclaration",
        runs: "BoardRuns",
        parts: "Parts",
        serve: "Callable[[], Runs]",
    ) -> None:
        super().__init__(parts, runs.tenant)
        self.name = declared.name
        self._declared = declared
        self._runs = runs
        self._serve = serve

    def agent(self, name: str) -> "AgentBuilder":
        """Declare a new agent on the board.

        Raises:
            UsageError: the name is taken, or invalid.
        """
        if as_name(name, "The name of an agent") in self._declared.builders:
            raise UsageError(f"Board {self.name!r} has an agent {name!r} already. Name another.")
        from turnloom.reaction.spec.builder import AgentBuilder

        changed = self._changed
        builder = AgentBuilder(name, self._declared.types, changed)
        self._declared.builders[name] = builder
        changed()
        return builder

    def register(self, *types: "type[BaseModel]") -> None:
        """Register types of artifacts that no agent of this app declares.

        Raises:
            UsageError: one was not marked with `@artifact_type`, or another has its name.
        """
        for each in types:
            self._declared.types.register(each)

    def value(self, type: str, payload: "Json") -> "BaseModel":
        """A value to publish, from JSON: of a registered type, by its full or simple name.

        Raises:
            UnknownType: the type is unknown, or its name is ambiguous.
            InvalidArtifact: the type refuses the payload.
        """
        return self._declared.types.read(as_string(type, "`type`"), payload)

    def _changed(self) -> None:
        self._parts.boards.change(self.name)

    async def publish(
        self,
        value: "BaseModel",
        *,
        tags: "Set[str] | Iterable[str]" = frozenset(),
        visibility: "Visibility | None" = None,
        correlation_id: str | None = None,
        partition: str | None = None,
        id: str | None = None,
    ) -> "Artifact":
        """Publish a value: it triggers the agents that subscribe to its type.

        Without a `correlation_id` it starts a new run; with one, it belongs to the run of that
        correlation. With an `id`, publishing the same value again changes nothing.

        Raises:
            InvalidArtifact: it cannot be written as JSON.
            ArtifactExists: an artifact of this id exists, with other content.
        """
        self._go()
        about = _named(correlation_id, "`correlation_id`")
        thing = _publication(value, tags, visibility, _named(partition, "`partition`"))
        return await self._runs.publish(thing, about, _named(id, "`id`"))

    async def publish_many(
        self,
        values: "Iterable[BaseModel]",
        *,
        tags: "Set[str] | Iterable[str]" = frozenset(),
        visibility: "Visibility | None" = None,
        correlation_id: str | None = None,
    ) -> "list[Artifact]":
        """Publish values, each as `publish` does; if one is invalid, none is published."""
        self._go()
        if not isinstance(cast(object, values), Iterable):
            raise wrong("`values`", values, "Give a list of values.")
        about = _named(correlation_id, "`correlation_id`")
        things = [_publication(value, tags, visibility, None) for value in values]
        return await self._runs.publish_many(things, about)

    async def invoke(
        self, agent: str, value: "BaseModel", *, publish: bool = True
    ) -> "list[Artifact]":
        """Give an agent a value directly, and return what it makes.

        The value itself is not published; what the agent makes is, unless `publish` is false.

        Raises:
            ReactionFailed: the agent failed.
        """
        runs = self._go()
        agent, shares = as_name(agent, "`agent`"), as_flag(publish, "`publish`")
        run = await self._runs.give(agent, _publication(value), shares)
        from turnloom.runtime.outcomes import invoked

        return await invoked(runs, self._runs.key(run))

    async def run_until_idle(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the field's name for it
        *,
        raise_errors: bool = True,
    ) -> "ExceptionGroup[Exception] | None":
        """Wait until the runs that this program started here are idle, and no batch is about to
        time out. Where workers drive the runs, wait until all runs of the board are idle.

        Raises:
            ExceptionGroup: what failed since the last call, unless `raise_errors` is false; then
                the failures are returned.
            TimeoutError: it is not idle in time; the runs continue.
        """
        idleness = self._runs.idleness
        await idleness.until(idleness.is_idle, as_seconds(timeout, "`timeout`"))
        failures = await idleness.take_failures()
        if not failures:
            return None
        group = ExceptionGroup(f"On board {self.name!r}, not everything went well", failures)
        if raise_errors:
            raise group
        return group

    async def run_until(
        self,
        condition: "Callable[[], bool | Awaitable[bool]]",
        timeout: float | None = None,  # noqa: ASYNC109 - the field's name for it
    ) -> None:
        """Wait until a condition holds: a function, plain or async, that is called again after each
        stored event, or every tenth of a second where workers drive the runs.

        Raises:
            TimeoutError: it does not hold in time.
        """
        ask = as_function(condition, "The condition")

        async def holds() -> bool:
            verdict = ask()
            held = await verdict if isinstance(verdict, Awaitable) else verdict
            if cast(object, held) is None:
                raise UsageError("The condition gives nothing. Return True or False.")
            return bool(held)

        await self._runs.idleness.until(holds, as_seconds(timeout, "`timeout`"))

    async def retry(self, failed: "ReactionFailed | Artifact | str", agent: str = "") -> int:
        """Retry failed turns: one failure, or all of a run or an artifact, optionally of one agent.
        Returns the number of turns.

        Raises:
            UsageError: nothing of that kind failed, or its run has ended.
        """
        self._go()
        from turnloom.board.spec import Artifact

        if isinstance(failed, ReactionFailed):
            return await self._runs.retry(failed.run, failed.agent, turn=failed.turn)
        of = failed.id if isinstance(failed, Artifact) else as_name(failed, "What failed")
        return await self._runs.retry(of, as_string(agent, "`agent`"))

    async def cancel(self, run: str | None = None, *, reason: str = "") -> int:
        """Cancel a run of the board, or all that are open in this program; returns how many."""
        runs = self._go()
        reason = as_string(reason, "`reason`")
        ids = [as_name(run, "`run`")] if run is not None else self._runs.idleness.runs
        by, keys = self._runs.user, [self._runs.key(each) for each in ids]
        return sum([await runs.cancel(key, by=by, reason=reason) for key in keys])

    async def resume(self) -> list[str]:
        """Continue the interrupted and waiting runs of this board, and serve the board from now on:
        its runs are driven here also when other processes send them mail or give them back.

        Raises:
            PlanChanged: one of them is pinned to another plan of the board; none is continued.
        """
        self._go()
        found = await self._runs.unfinished()
        for first, last in found:
            try:
                await self._parts.definitions.restore(first.data)
            except PlanChanged as error:
                message = f"Run {last.run!r} cannot continue. {error}"
                raise PlanChanged(f"{message}\nTo cancel it: board.cancel({last.run!r})") from None
        self._runs.is_served = True
        for _, last in found:
            await self._runs.resume(last.run, last)
        return [last.run for _, last in found]

    async def close(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the field's name for it
    ) -> None:
        """Close all batches, wait until nothing runs, and refuse further publishing.

        Raises:
            ExceptionGroup: what failed since the last call.
        """
        seconds = as_seconds(timeout, "`timeout`")
        self._declared.is_closed = True
        self._serve()
        await self._runs.close(seconds)
        await self.run_until_idle(seconds)

    def _go(self) -> "Runs":
        """Start driving runs in this program."""
        if self._declared.is_closed:
            raise UsageError(
                f"Board {self.name!r} is closed. Open another app to continue with it."
            )
        return self._serve()


def _publication(
    value: "BaseModel | Publication",
    tags: "Iterable[str]" = (),
    visibility: "Visibility | None" = None,
    partition: str | None = None,
) -> "Publication":
    from pydantic import BaseModel

    from turnloom.agents.spec import Publication
    from turnloom.board.spec.artifacts import names

    if isinstance(value, Publication):
        return value
    model = as_one_of(value, BaseModel, "The value")
    return Publication(model, names(tags, "`tags`"), visibility, partition)


def _named(name: str | None, what: str) -> str | None:
    try:
        return None if name is None else as_name(name, what)
    except UsageError as error:
        raise InvalidArtifact(str(error)) from None


def loaded_board(board: Board) -> "LoadedWorkflow":
    """A board as it is declared now."""
    return board._parts.boards.load(board.name)  # pyright: ignore[reportPrivateUsage]
