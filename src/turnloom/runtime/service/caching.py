"""Step result cache."""

import logging
import math
from typing import Any

from turnloom.errors import TurnloomError
from turnloom.flow.logic.flowing import Flowing
from turnloom.flow.logic.plans import step_text
from turnloom.flow.logic.states import Change
from turnloom.flow.logic.walking import children, place_of
from turnloom.flow.ports import Results
from turnloom.flow.spec.nodes import StepNode
from turnloom.flow.spec.progress import Progress, StepFailure, Strand
from turnloom.kernel.digests import digest
from turnloom.kernel.durations import later
from turnloom.kernel.values import Json, as_object, canonical
from turnloom.runtime.service.journal import Journal

log = logging.getLogger("turnloom.flows")


class Caching:
    """What the steps of one run take from runs before, and keep for later ones. If the store
    fails, steps are taken."""

    def __init__(self, journal: Journal, workflow: Flowing, results: Results) -> None:
        self._journal = journal
        self._workflow = workflow
        self._results = results

    def key(self, node: StepNode, strand: Strand) -> str:
        """What the result of a step goes by, if it is kept: whose it is, the step as it is declared
        and coded, and all that it may read. Only the run's own id is not part of it."""
        if node.cache is None:
            return ""
        state, shared = self._journal.state, node.cache.shared
        own = {"chat_id", "user_id"} if shared else {"chat_id"}
        variables = {name: value for name, value in state.values.items() if name not in own}
        who = [state.tenant, "" if shared else state.user, shared]
        if state.ephemeral:  # objects of this process cannot be compared with those of others
            who.append(state.run)
        plan = [self._workflow.name, self._workflow.version, step_text(node)]
        return digest(canonical([*who, *plan, strand.state, variables, self._about(node, strand)]))

    def _about(self, node: StepNode, strand: Strand) -> Json:
        """What a step may read of its run beside the state and the variables: what was decided, how
        the paths ended that it joins, what failed before it, and what was said in its thread."""
        progress: Progress = self._journal.state.progress
        paths = children(progress, strand, place_of(self._workflow.plan, strand))
        joined = [[path.state, _failed(path.failed)] for path in paths]
        failures = [_failed(each) for each in strand.failures[-1:]]
        thread = getattr(node.step, "thread", None)
        return [progress.approvals, joined, failures, progress.threads.get(thread or "", ())]

    async def find(self, key: str) -> Change | None:
        """What the step came to before, if that still counts."""
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
        """Keep what a step came to."""
        now = self._journal.clock.now()
        until = None if math.isinf(seconds) else later(now, seconds)
        value: dict[str, Json] = {"update": change.fields, "confidence": change.confidence}
        try:
            await self._results.keep(self._journal.run.tenant, key, value, now=now, until=until)
        except TurnloomError as error:
            log.warning("a result cannot be kept: %s", error)


def _failed(failure: StepFailure | None) -> Json:
    """What a failure says; when and where it happened differs from run to run."""
    return failure and [failure.step, failure.error, failure.message, failure.what]
