"""`turnloom store`: update, copy, verify and prune stores."""

import asyncio
from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
import typer
from rich.progress import Progress

from turnloom.app import Loom
from turnloom.cli.command import Command, as_text
from turnloom.cli.stored import Json, StoredRunsCommand, StoreFile, find_run, present_store
from turnloom.cli.tables import lay_out
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.cli.times import instant
from turnloom.errors import UsageError
from turnloom.explain.spec.text import moment
from turnloom.log.spec import LOCAL
from turnloom.runtime.copying import CopiedRun
from turnloom.runtime.pruning import ErasedPerson
from turnloom.runtime.spec import PrunedRun, Removal, VerifiedRun
from turnloom.wiring import missing_store, settings

SUMMARY = "Update a store, copy runs between stores, verify or prune it."

AnyAppId = Annotated[
    str | None,
    typer.Option(
        "--app-id", metavar="ID", callback=as_text, help="Only this app; without it, all of them."
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")
]


class EndStatus(StrEnum):
    """How a run can end."""

    finished = "finished"
    failed = "failed"
    cancelled = "cancelled"


# The scheduler of commands that drive nothing: they work on any store, whatever drives its runs.
NO_WORKERS = "inline"


@dataclass(frozen=True, kw_only=True)
class StoreMigrateCommand(Command):
    """Bring the schema of a store to the one of this release, step by step. Back the store up
    first, and stop the processes that use it."""

    store: StoreFile = None
    dry_run: DryRun = False
    json: Json = False

    def carry_out(self, terminal: Terminal) -> int:
        """Take the missing steps, and print each."""
        return asyncio.run(self._migrate(terminal))

    async def _migrate(self, terminal: Terminal) -> int:
        missing = missing_store(self.store)
        if missing is not None and missing.origin == "default":
            self._tell([], terminal)
            return 0
        steps: list[dict[str, Any]] = []
        async with Loom(store=present_store(self.store)) as app:
            if self.dry_run:
                steps = [asdict(each) for each in await app.upkeep.pending_migrations()]
            else:
                async for taken in app.upkeep.migrate():
                    steps.append(asdict(taken))
                    if not self.json:
                        terminal.show(safe(f"{taken.version} {taken.name}"))
        self._tell(steps, terminal)
        return 0

    def _tell(self, steps: Sequence[dict[str, Any]], terminal: Terminal) -> None:
        if self.json:
            terminal.emit(msgspec.json.encode({"steps": steps, "dry_run": self.dry_run}))
        elif not steps:
            terminal.show(safe("Nothing to do: the store has the schema of this release."))
        elif self.dry_run:
            for each in steps:
                terminal.show(safe(f"{each['version']} {each['name']}"))
            terminal.show(safe(f"Steps to take: {len(steps)}."))
        else:
            terminal.show(safe(f"Steps taken: {len(steps)}."))


@dataclass(frozen=True, kw_only=True)
class StoreCopyCommand(Command):
    """Copy runs from one store to another, and verify each copy. It can be repeated: what is there
    already stays. A run that is driven, or that is another one there, is refused."""

    source: Annotated[
        str, typer.Argument(metavar="FROM", callback=as_text, help="The store with the runs.")
    ]
    target: Annotated[
        str, typer.Argument(metavar="TO", callback=as_text, help="The store that gets them.")
    ]
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="Only this run, and those it branches off: its id, or the beginning; may be "
            "repeated.",
        ),
    ] = None
    before: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only runs that started before it, as 2026-01-31."),
    ] = None
    status: Annotated[
        list[str] | None,
        typer.Option(metavar="STATUS", help="Only runs that stand so; may be repeated."),
    ] = None
    app_id: AnyAppId = None
    json: Json = False

    def carry_out(self, terminal: Terminal) -> int:
        """Copy the runs; 1 if one was refused."""
        self._check()
        return asyncio.run(self._copy(terminal))

    def _check(self) -> None:
        for place in (self.source, self.target):
            if settings({"store": place}).store == "memory":
                raise UsageError(
                    "A store in memory ends with its process, so that there is nothing to copy. "
                    "Name a file or a database."
                )
        if self.source == self.target:
            raise UsageError("Both stores are the same. Name another one to copy to.")
        if self.run and (self.before or self.status):
            raise UsageError("Choose runs by `--run`, or by `--before` and `--status`.")

    async def _copy(self, terminal: Terminal) -> int:
        counts, events = Counter[str](), 0
        refused: list[CopiedRun] = []
        async with (
            Loom(store=present_store(self.source), scheduler=NO_WORKERS) as app,
            Loom(store=self.target, scheduler=NO_WORKERS) as target,
        ):
            with _bar(terminal) as bar:
                task = bar.add_task("copying", total=None)
                async for each in app.upkeep.copy_to(
                    target.upkeep,
                    await self._runs(app),
                    before=instant(self.before, "--before"),
                    statuses=self.status or (),
                    app_id=self.app_id,
                ):
                    counts[each.status] += 1
                    events += each.events
                    refused += [each] if each.status == "refused" else []
                    bar.advance(task)
        self._tell(counts, events, refused, terminal)
        return 1 if refused else 0

    async def _runs(self, app: Loom) -> list[str] | None:
        if not self.run:
            return None
        return [await find_run(app, each, self.app_id or LOCAL) for each in self.run]

    def _tell(
        self, counts: Counter[str], events: int, refused: Sequence[CopiedRun], terminal: Terminal
    ) -> None:
        named = ("copied", "continued", "same", "ahead")
        if self.json:
            result = {name: counts[name] for name in named}
            terminal.emit(msgspec.json.encode({**result, "events": events, "refused": refused}))
            return
        for each in refused:
            terminal.tell(joined((each.run, "bold"), f" of {each.tenant}: {each.reason}"))
        there = counts["same"] + counts["ahead"]
        terminal.show(
            safe(
                f"Copied: {counts['copied']}, continued: {counts['continued']}, there before: "
                f"{there}, refused: {len(refused)}. Events: {events}."
            )
        )


def _bar(terminal: Terminal) -> Progress:
    """A bar on standard error for eyes; nothing for programs."""
    return Progress(console=terminal.err, transient=True, disable=not terminal.err.is_terminal)


@dataclass(frozen=True, kw_only=True)
class StoreCommand(Command):
    """A command on a store that is there."""

    store: StoreFile = None

    def carry_out(self, terminal: Terminal) -> int:
        """Run the command with the store open, and return the exit code."""
        return asyncio.run(self._with_app(terminal))

    async def _with_app(self, terminal: Terminal) -> int:
        async with Loom(store=present_store(self.store), scheduler=NO_WORKERS) as app:
            return await self.act(app, terminal)

    @abstractmethod
    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Run the command, and return the exit code."""


@dataclass(frozen=True, kw_only=True)
class StoreVerifyCommand(StoreCommand):
    """Verify that a store still holds what was stored: the positions and digests of all runs."""

    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="Only this run: its id, the beginning, or `last`."),
    ] = None
    app_id: AnyAppId = None
    json: Json = False

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Verify runs, and list those that are damaged; 1 if there are any."""
        runs, events = 0, 0
        damaged: list[tuple[str, VerifiedRun]] = []
        for tenant, run in await self._chosen(app):
            async for verified in app.history.verify(run, app_id=tenant):
                runs += 1
                events += verified.events
                if verified.problems:
                    damaged.append((tenant, verified))
        if self.json:
            listed = [{"app_id": tenant, **asdict(each)} for tenant, each in damaged]
            terminal.emit(msgspec.json.encode({"runs": runs, "events": events, "damaged": listed}))
            return 1 if damaged else 0
        for _, each in damaged:
            for problem in each.problems:
                terminal.show(joined((each.run, "bold"), f": {problem}"))
        if damaged:
            terminal.fail(f"Damaged runs: {len(damaged)} of {runs}. Restore them from a backup.")
            return 1
        terminal.show(safe(f"All as stored. Runs: {runs}, events: {events}."))
        return 0

    async def _chosen(self, app: Loom) -> list[tuple[str, str | None]]:
        """The tenants to verify, each with the run of it that is named."""
        if self.run is not None:
            tenant = self.app_id or LOCAL
            return [(tenant, await find_run(app, self.run, tenant))]
        if self.app_id is not None:
            return [(self.app_id, None)]
        return [(tenant, None) for tenant in await app.upkeep.tenants()]


@dataclass(frozen=True, kw_only=True)
class StorePruneCommand(StoreCommand):
    """Remove runs that ended long ago, or all of one person; the store records that it was done."""

    older_than: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Runs that ended longer ago, as 30d or 12h."),
    ] = None
    before: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Runs that ended before, as 2026-01-31 or with a time."),
    ] = None
    user: Annotated[
        str | None,
        typer.Option(
            metavar="USER",
            callback=as_text,
            help="All of one person: runs, artifacts, cached results, feedback, keys, planned "
            "starts.",
        ),
    ] = None
    retention: Annotated[
        bool,
        typer.Option(
            "--retention", help="Runs of all apps whose time is over, by the setting `retention`."
        ),
    ] = False
    status: Annotated[
        list[EndStatus] | None, typer.Option(help="Only runs that ended so; may be repeated.")
    ] = None
    by: Annotated[
        str,
        typer.Option(metavar="NAME", callback=as_text, help="Who asked for it; it is recorded."),
    ] = LOCAL
    app_id: Annotated[
        str | None,
        typer.Option(
            "--app-id", metavar="ID", callback=as_text, help="On behalf of which app: its tenant."
        ),
    ] = None
    dry_run: DryRun = False
    json: Json = False

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Remove runs, and print what was removed; 1 if something of a person stays."""
        self._check_options()
        if self.user is not None:
            erased = await app.upkeep.erase(
                self.user, by=self.by, dry_run=self.dry_run, app_id=self.app_id or LOCAL
            )
            return self._tell_person(erased, terminal)
        counts = {"runs": 0, "events": 0, "artifacts": 0}
        removed = self._by_retention(app) if self.retention else self._by_end(app)
        async for each in removed:
            counts["runs"] += 1
            counts["events"] += each.events
            counts["artifacts"] += each.artifacts
        self._tell(counts, terminal)
        return 0

    def _check_options(self) -> None:
        """Refuse options that do not go together."""
        chosen = [self.older_than, self.before, self.user, self.retention or None]
        if sum(each is not None for each in chosen) != 1:
            raise UsageError(
                "Say which runs to remove, in one way: `--older-than 30d`, `--before 2026-01-31`, "
                "`--user USER` or `--retention`."
            )
        if self.status and not (self.older_than or self.before):
            raise UsageError("`--status` goes with `--older-than` or `--before`.")
        if self.retention and (self.app_id or self.dry_run or self.by != LOCAL):
            raise UsageError(
                "`--retention` applies the settings to all apps, without `--app-id`, `--by` and "
                "`--dry-run`."
            )

    async def _by_end(self, app: Loom) -> AsyncGenerator[PrunedRun]:
        pruned = app.history.prune(
            self.older_than,
            before=instant(self.before, "--before"),
            statuses=[each.value for each in self.status or EndStatus],
            by=self.by,
            dry_run=self.dry_run,
            app_id=self.app_id or LOCAL,
        )
        async for each in pruned:
            yield each

    async def _by_retention(self, app: Loom) -> AsyncGenerator[PrunedRun]:
        while True:
            batch = await app.upkeep.apply_retention()
            for each in batch.runs:
                yield each
            if batch.is_done:
                return

    def _tell_person(self, erased: ErasedPerson, terminal: Terminal) -> int:
        it = erased.removal
        counts = {"runs": it.runs, "events": it.events, "artifacts": it.artifacts, **it.others}
        self._tell(counts, terminal, erased.kept)
        return 1 if erased.kept else 0

    def _tell(
        self,
        counts: Mapping[str, int],
        terminal: Terminal,
        kept: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        if self.json:
            stays = {"kept": dict(kept)} if self.user is not None else {}
            terminal.emit(msgspec.json.encode({**counts, **stays, "dry_run": self.dry_run}))
            return
        for run, reason in kept.items():
            terminal.tell(joined((run, "bold"), f" stays: {reason}"))
        said = ", ".join(f"{name}: {number}" for name, number in counts.items())
        done = "Would be removed" if self.dry_run else "Removed"
        terminal.show(safe(f"{done}. {said[:1].upper()}{said[1:]}."))


@dataclass(frozen=True, kw_only=True)
class StoreRemovalsCommand(StoredRunsCommand):
    """List what was removed from a store: when, by whom, and how much."""

    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many at most.")] = 100
    json: Json = False

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Print the records of the tenant, the latest first."""
        found = await app.upkeep.removals(self.limit, app_id=self.app_id)
        if self.json:
            terminal.emit(msgspec.json.encode(found))
            return 0
        if not found:
            terminal.show(safe("Nothing was removed."))
            return 0
        columns = ("at", "by", "what", "removed")
        for part in lay_out(columns, found, _removal_row, terminal.out.width, whole=columns[:2]):
            terminal.show(part)
        return 0


def _removal_row(each: Removal) -> tuple[str, str, str, str]:
    counts = {"runs": each.runs, "events": each.events, "artifacts": each.artifacts, **each.others}
    return (
        moment(each.at),
        each.by,
        each.what,
        ", ".join(f"{name}: {number}" for name, number in counts.items()),
    )
