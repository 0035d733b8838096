"""States of runs at their events, looked at while a scene is played."""

from collections.abc import Sequence
from typing import Any

from tests.support.world import TENANTS, World
from turnloom import Loom, UsageError
from turnloom.log.spec import RunKey


class InspectedWorld(World):
    """A world whose programs, before they end, look at states of the runs in the store: at one
    event of each, or with `every` at all."""

    every = False

    def open(self, **settings: Any) -> Loom:
        """An app that looks at states before it is closed."""
        app = super().open(**settings)
        close = app.aclose

        async def inspect_and_close() -> None:
            for tenant in TENANTS:
                for _, last in await self.store.log.runs(tenant, 1000):
                    await self._inspect(app, RunKey(tenant, last.run))
            await close()

        app.aclose = inspect_and_close
        return app

    async def _inspect(self, app: Loom, run: RunKey) -> None:
        length = len(await self.store.log.read(run))
        for at in range(1, length + 1) if self.every else (length - length // 3,):
            await check_state(app, run, at, most=None if self.every else 1)


async def check_state(app: Loom, run: RunKey, at: int, most: int | None = None) -> None:
    """The state at an event has the variables that explanations have there, `most` of them."""
    state = await app.history.state(run.id, at=at, app_id=run.tenant)
    assert (state.run, state.at) == (run.id, at) and str(state)
    for each in state.variables[:most]:
        explained = await app.explain.variable(run.id, each.name, at=at, app_id=run.tenant)
        assert (explained.present, explained.value) == (True, each.value)
        assert explained.ephemeral == each.ephemeral
        changes: Sequence[Any] = explained.changes
        assert not changes or changes[-1].seq == each.since
    for each in state.absent[:most]:
        try:
            explained = await app.explain.variable(run.id, each.name, at=at, app_id=run.tenant)
        except UsageError:
            assert not each.since  # no event names it
        else:
            assert not explained.present
