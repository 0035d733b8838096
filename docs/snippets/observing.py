"""Count the events of all runs of an app, by tenant."""

import asyncio
from collections import Counter

from turnloom import Event, Loom, ObservedRun


class Meter:
    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def observe(self, event: Event, run: ObservedRun) -> None:
        if event.kind in ("turn.finished", "run.finished"):
            self.counts[run.tenant, event.kind] += 1


async def main() -> None:
    meter = Meter()
    async with Loom(store="memory", observers=[meter]) as app:
        for tenant in ("acme", "globex", "acme"):
            run = await app.start("docs/snippets/Advice", app_id=tenant)
            await run.finished()
    for (tenant, kind), count in sorted(meter.counts.items()):
        print(tenant, kind, count)
    print("dropped:", app.observers[0].dropped)


asyncio.run(main())
