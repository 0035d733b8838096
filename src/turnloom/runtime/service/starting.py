"""How runs begin."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from turnloom.log.events import RunStarted
from turnloom.log.ports import Clock, EventLog
from turnloom.log.spec import Fact
from turnloom.runtime.logic import base_context, fresh
from turnloom.runtime.service.components import observed
from turnloom.runtime.service.journal import Journal, Tell
from turnloom.runtime.spec import Loaded
from turnloom.variables.logic.secrets import Secrets
from turnloom.variables.service import ContextSource


@dataclass(frozen=True, slots=True)
class Starter:
    """Begins runs: what they are pinned to and what they know at first is on record."""

    log: EventLog
    clock: Clock
    context: ContextSource
    watch: Callable[[str], Tell | None]

    async def begin(
        self,
        run: str,
        loaded: Loaded,
        started: RunStarted,
        facts: Sequence[tuple[str, Fact, str]] = (),
    ) -> Journal:
        """A run whose first facts are recorded, but not stored yet.

        Raises:
            MissingContext: a variable that it requires has no value.
        """
        base = base_context(run, started)
        context = await self.context.load(loaded.workflow.variables, base, loaded.database)
        tell = self.watch(run)
        journal = Journal(
            observed(loaded.staff, self.log, *([] if tell is None else [tell])),
            self.clock,
            loaded,
            fresh(run, loaded.workflow, loaded.guards),
            Secrets(context.secrets),
            verbose=self.context.is_verbose,
        )
        journal.record("start", started)
        journal.record("context", context.loaded)
        for number, each in enumerate((*context.suppressed, *loaded.suppressed)):
            journal.record(f"context/suppressed.{number}", each)
        for id, fact, actor in facts:
            journal.record(id, fact, actor)
        return journal
