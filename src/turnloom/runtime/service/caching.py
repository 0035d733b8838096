"""Steps that would come to what they came to before."""

import logging
import math
from collections.abc import Mapping
from typing import Any

from turnloom.errors import TurnloomError
from turnloom.flow.logic.flowing import Flowing
from turnloom.flow.logic.plans import step_text
from turnloom.flow.logic.states import Change
from turnloom.flow.ports import Results
from turnloom.flow.spec.nodes import StepNode
from turnloom.kernel.digests import digest
from turnloom.kernel.durations import later
from turnloom.kernel.values import Json, as_data, as_object
from turnloom.runtime.service.journal import Journal

log = logging.getLogger("turnloom.flows")


class Caching:
    """What the steps of one run may take from others, and leave to them. A store that fails keeps
    nobody from anything."""

    def __init__(self, journal: Journal, workflow: Flowing, results: Results) -> None:
        self._journal = journal
        self._workflow = workflow
        self._results = results

    def key(self, node: StepNode, written: Mapping[str, Json]) -> str:
        """What a result goes by: whose it is, the step as it is declared and coded, and all that it
        may read: the state and the variables."""
        state, definitions = self._journal.state, self._workflow.variables.definitions
        variables = {name: state.values.get(name) for name in sorted(definitions)}
        who = [state.tenant, state.user if self._journal.secrets else ""]
        plan = [self._workflow.name, self._workflow.version, step_text(node)]
        return digest(as_data([*who, *plan, dict(sorted(written.items())), variables]))

    async def find(self, key: str) -> Change | None:
        """What the step came to before, if that counts still."""
        try:
            found = as_object(
                await self._results.find(self._journal.run.tenant, key, self._journal.clock.now())
            )
        except TurnloomError as error:
            log.warning("a result cannot be looked for: %s", error)
            return None
        if found is None:
            return None
        update: Any = found["update"]
        confidence: Any = found["confidence"]
        return Change(update, confidence)

    async def keep(self, key: str, change: Change, seconds: float) -> None:
        """Let others have what a step came to."""
        now = self._journal.clock.now()
        until = None if math.isinf(seconds) else later(now, seconds)
        value: dict[str, Json] = {"update": change.fields, "confidence": change.confidence}
        try:
            await self._results.keep(self._journal.run.tenant, key, value, now=now, until=until)
        except TurnloomError as error:
            log.warning("a result cannot be kept: %s", error)
