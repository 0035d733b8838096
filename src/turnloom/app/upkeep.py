"""The upkeep of an app's store."""

from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, cast

from turnloom.errors import UnknownRun, UsageError
from turnloom.kernel.arguments import as_count, as_name, as_names
from turnloom.kernel.values import preview
from turnloom.log.spec import LOCAL

if TYPE_CHECKING:
    from turnloom.log.spec import RunKey
    from turnloom.runtime.copying import CopiedRun
    from turnloom.runtime.ports import Migrator, Removals, TenantList
    from turnloom.runtime.pruning import ErasedPerson
    from turnloom.runtime.retention import Retention, RetentionBatch
    from turnloom.runtime.spec import Migration, Removal
    from turnloom.wiring import Parts


class Upkeep:
    """The upkeep of an app's store: its schema, copies of its runs, what was removed from it, and
    how long runs stay. What the store lacks a port for is refused."""

    def __init__(self, parts: "Callable[[], Parts]") -> None:
        self._parts = parts
        self._retention: Retention | None = None

    async def pending_migrations(self) -> "Sequence[Migration]":
        """The steps that lead from the schema of the store, and of its scheduler, to that of this
        release.

        Raises:
            StoreUnavailable: the schema is of a later release, or too old.
        """
        return [step for each in self._migrators() for step in await each.pending()]

    async def migrate(self) -> "AsyncGenerator[Migration]":
        """Bring the schema of the store, and of its scheduler, to that of this release; yields each
        step once it is stored. A repeated call takes the rest.

        Raises:
            StoreUnavailable: the schema is of a later release, or too old, or a step failed.
        """
        for each in self._migrators():
            async for taken in each.migrate():
                yield taken

    def _migrators(self) -> "list[Migrator]":
        """That of the store, and that of the scheduler if it has tables."""
        from turnloom.wiring.doors import port_of

        parts = self._parts()
        own: Migrator | None = getattr(parts.world.scheduler, "migrator", None)
        return [port_of(parts.store, "migrator"), *([own] if own else [])]

    async def tenants(self) -> "Sequence[str]":
        """The tenants that have runs, sorted."""
        from turnloom.wiring.doors import port_of

        tenants: TenantList = port_of(self._parts().store, "tenants")
        return await tenants.names()

    async def copy_to(
        self,
        target: "Upkeep",
        runs: "Sequence[str] | None" = None,
        *,
        before: "datetime | None" = None,
        statuses: Collection[str] = (),
        app_id: str | None = None,
    ) -> "AsyncGenerator[CopiedRun]":
        """Copy runs to the store of another app, given by its `upkeep`, with their plans,
        artifacts, branches and open messages; yields each once it was read back and is equal, or
        was refused. Runs that are there already are not copied again.

        Without `runs`, all of a tenant, or of all tenants: those that started before an instant, or
        have one of some statuses. A run that a branch begins with comes with it.

        Raises:
            UnknownRun: there is no such run.
            StoreUnavailable: the yielded runs are copied; the rest may be copied later.
        """
        from turnloom.runtime.copying import Copying
        from turnloom.wiring.upkeep import copy_end

        if not isinstance(cast(object, target), Upkeep):
            raise UsageError(f"`target` is {preview(target)}. Pass the `upkeep` of another app.")
        parts, other = self._parts(), target._parts()
        if parts.store is other.store:
            raise UsageError("Both apps have the same store. Copy runs to another one.")
        chosen = await self._chosen(runs, before, statuses, app_id)
        async with aclosing(Copying(copy_end(parts), copy_end(other)).copy(chosen)) as copying:
            async for copied in copying:
                yield copied

    async def _chosen(
        self,
        runs: "Sequence[str] | None",
        before: "datetime | None",
        statuses: Collection[str],
        app_id: str | None,
    ) -> "list[RunKey]":
        """The runs to copy, the oldest first."""
        from turnloom.app.choosing import run_filter
        from turnloom.log.service import all_runs
        from turnloom.log.spec import RunKey

        parts = self._parts()
        log = parts.store.log
        if runs is not None:
            tenant = as_name(LOCAL if app_id is None else app_id, "`app_id`")
            keys = [RunKey(tenant, run) for run in sorted(as_names(runs, "`runs`"))]
            for key in keys:
                if [*await log.named(key.tenant, key.id, 1)] != [key.id]:
                    raise UnknownRun(key.id)
            return keys
        which = run_filter({"status": statuses or None, "until": before}, parts.clock.now())
        names = await self.tenants() if app_id is None else [as_name(app_id, "`app_id`")]
        found: list[RunKey] = []
        for tenant in names:
            listed = [last.run async for _, last in all_runs(log, tenant, which=which)]
            found += [RunKey(tenant, run) for run in reversed(listed)]
        return found

    async def erase(
        self, user: str, *, by: str = LOCAL, dry_run: bool = False, app_id: str = LOCAL
    ) -> "ErasedPerson":
        """Remove everything that is kept of a person of a tenant: their runs with artifacts and
        messages, cached step results, feedback, jobs, API keys and planned starts; and record that
        `by` asked for it. A dry run removes nothing.

        Runs of others that took their artifacts stay, with what they recorded of them.

        Raises:
            UsageError: a run of the person is open, the store has no `pruner` or `removals`, or
                artifacts are kept elsewhere.
            StoreUnavailable: the record says what is removed; call it again.
        """
        from turnloom.runtime.pruning import erase
        from turnloom.runtime.spec import Removal
        from turnloom.wiring.doors import personal_data
        from turnloom.wiring.upkeep import pruning_ports

        parts, tenant = self._parts(), as_name(app_id, "`app_id`")
        person = as_name(user, "`user`")
        record = Removal(parts.clock.now(), as_name(by, "`by`"), f"user {person!r}")
        await self._removals().recent(tenant, 1)  # refused before anything is removed
        ports, personal = pruning_ports(parts), personal_data(parts.store)
        return await erase(ports, tenant, person, personal, record=record, dry_run=dry_run)

    async def removals(self, limit: int = 100, *, app_id: str = LOCAL) -> "Sequence[Removal]":
        """The record of what was removed from a tenant, the latest first."""
        most = as_count(limit, "`limit`", 0)
        return await self._removals().recent(as_name(app_id, "`app_id`"), most)

    def _removals(self) -> "Removals":
        from turnloom.wiring.doors import port_of

        return port_of(self._parts().store, "removals")

    async def apply_retention(self, limit: int = 100) -> "RetentionBatch":
        """Look at no more than `limit` runs that ended, and remove those whose time is over, as the
        settings `retention`, `keep_failed` and `tenants` say. The next call continues.

        Raises:
            UsageError: the settings keep every run, or the store has no `pruner` or `tenants`.
            StoreUnavailable: the record says what is removed; the next call continues.
        """
        most, retention = as_count(limit, "`limit`"), self._retaining()
        if retention is None:
            raise UsageError(
                "No `retention` is set, so that every run is kept. Set it in turnloom.toml, as in "
                '`retention = "90d"`.'
            )
        return await retention.apply(most)

    async def keep_retention(self) -> None:
        """Remove runs whose time is over in small batches, until cancelled; returns at once if the
        settings keep every run. For processes that run long."""
        retention = self._retaining()
        if retention is not None:
            await retention.keep()

    def _retaining(self) -> "Retention | None":
        from turnloom.wiring.upkeep import retention_of

        if self._retention is None:
            self._retention = retention_of(self._parts())
        return self._retention
