"""`turnloom store`: verify and prune a store."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from turnloom.app import Loom
from turnloom.cli.stored import Json, StoredRunsCommand, find_run
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.cli.times import instant
from turnloom.errors import UsageError
from turnloom.runtime.spec import VerifiedRun
from turnloom.wiring import missing_store


class StoreAction(StrEnum):
    """The actions on a store."""

    verify = "verify"
    prune = "prune"


class EndStatus(StrEnum):
    """How a run can end."""

    finished = "finished"
    failed = "failed"
    cancelled = "cancelled"


@dataclass(frozen=True, kw_only=True)
class StoreCommand(StoredRunsCommand):
    """Verify that a store still holds what was stored, or prune runs that ended long ago."""

    deed: Annotated[StoreAction, typer.Argument(metavar="WHAT", help="`verify` or `prune`.")]
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="Only this run: its id, the beginning, or `last`."),
    ] = None
    older_than: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Prune runs that ended longer ago, as 30d or 12h."),
    ] = None
    before: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Prune runs that ended before it, as 2026-01-31 or with a time."
        ),
    ] = None
    status: Annotated[
        list[EndStatus] | None, typer.Option(help="Prune runs that ended so; may be repeated.")
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be pruned, and remove nothing.")
    ] = False
    json: Json = False

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Verify the runs of the tenant, or prune them."""
        self._check_options()
        if self.deed is StoreAction.prune:
            return await self._prune(app, terminal)
        return await self._verify(app, terminal)

    def _check_options(self) -> None:
        """Refuse options of the other action."""
        if self.deed is StoreAction.verify and self._prunes:
            raise UsageError(
                "`--older-than`, `--before`, `--status` and `--dry-run` are for `store prune`."
            )
        if self.deed is StoreAction.prune and (
            self.run or bool(self.older_than) == bool(self.before)
        ):
            raise UsageError(
                "`store prune` takes no run, and needs to know which ones: `--older-than 30d` or "
                "`--before 2026-01-31`."
            )

    @property
    def _prunes(self) -> bool:
        """Whether an option for pruning is given."""
        return bool(self.older_than or self.before or self.status or self.dry_run)

    async def _prune(self, app: Loom, terminal: Terminal) -> int:
        """Remove runs, and print what was removed."""
        counts = {"runs": 0, "events": 0, "artifacts": 0}
        statuses = [each.value for each in self.status or EndStatus]
        pruned = app.history.prune(
            self.older_than,
            before=instant(self.before, "--before"),
            statuses=statuses,
            dry_run=self.dry_run,
            app_id=self.app_id,
        )
        if missing_store(self.store) is None:  # a store that does not exist yet has none
            async for each in pruned:
                counts["runs"] += 1
                counts["events"] += each.events
                counts["artifacts"] += each.artifacts
        if self.json:
            terminal.emit(msgspec.json.encode({**counts, "dry_run": self.dry_run}))
            return 0
        said = ", ".join(f"{name}: {number}" for name, number in counts.items())
        done = "Would be removed" if self.dry_run else "Removed"
        terminal.show(safe(f"{done}. {said.capitalize()}."))
        return 0

    async def _verify(self, app: Loom, terminal: Terminal) -> int:
        """Verify the runs of the tenant, and list those that are damaged."""
        run = self.run and await find_run(app, self.run, self.app_id)
        runs, events = 0, 0
        damaged: list[VerifiedRun] = []
        async for verified in app.history.verify(run, app_id=self.app_id):
            runs += 1
            events += verified.events
            if verified.problems:
                damaged.append(verified)
        if self.json:
            result = {"runs": runs, "events": events, "damaged": damaged}
            terminal.emit(msgspec.json.encode(result))
            return 1 if damaged else 0
        for each in damaged:
            for problem in each.problems:
                terminal.show(joined((each.run, "bold"), f": {problem}"))
        if damaged:
            terminal.fail(f"Damaged runs: {len(damaged)} of {runs}. Restore them from a backup.")
            return 1
        terminal.show(safe(f"All as stored. Runs: {runs}, events: {events}."))
        return 0
