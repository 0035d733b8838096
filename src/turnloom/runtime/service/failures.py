"""What fails in a flow: another attempt, or a failure on record and the path that handles it."""

import traceback

from turnloom.flow.events import StepCompensated, StepFailed, StepRetried
from turnloom.flow.logic.folding import RETRY
from turnloom.flow.logic.walking import decided_by, place_of, step_of
from turnloom.flow.spec.nodes import FlowPlan, StepNode
from turnloom.flow.spec.progress import Step, Strand
from turnloom.flow.spec.steps import Retry
from turnloom.kernel.durations import later
from turnloom.kernel.values import writable
from turnloom.runtime.ports import Entropy
from turnloom.runtime.service.journal import Journal
from turnloom.runtime.service.stacks import without_callers
from turnloom.runtime.service.steps import Steps, told
from turnloom.variables.events import TimerSet


class Failures:
    """Puts on record what fails in one run of a flow."""

    def __init__(self, journal: Journal, plan: FlowPlan, steps: Steps, entropy: Entropy) -> None:
        self._journal = journal
        self._plan = plan
        self._steps = steps
        self._entropy = entropy

    def refuse(self, strand: Strand, node: StepNode, message: str) -> None:
        """A step is not taken, since the state is not as it has to be."""
        self._record(strand, node, "ValidationFailed", message, "")

    def attempt(self, step: Step, node: StepNode, error: Exception) -> None:
        """An attempt failed: there is another one, or the step did."""
        name, message = told(error)
        message = self._journal.secrets.masked(message)
        if step.undoes:
            self._undoing_failed(step, node, name, message)
            return
        self._steps.settle(step)
        self._steps.cut_off(step, "failed", f"{name}: {message}")
        if step.attempt <= node.retry.n and self._journal.state.failure is None:
            self._retry(step, node, name, message)
            return
        strand = self._journal.state.progress.strands[step.strand]
        stack = self._stack(error)
        self._record(strand, node, name, message, stack, step, error)

    def _undoing_failed(self, step: Step, node: StepNode, name: str, message: str) -> None:
        fact = StepCompensated(
            node.name, step.undoes, step.number, step.node, error=name, message=message
        )
        self._journal.record(f"s{step.number}/a{step.attempt}.0", fact)

    def _retry(self, step: Step, node: StepNode, name: str, message: str) -> None:
        seconds = self._delay(node.retry, step.attempt)
        at = later(self._journal.clock.now(), seconds) if seconds else None
        fact = StepRetried(node.name, step.place, step.number, step.attempt, name, message, at)
        self._journal.record(f"s{step.number}/a{step.attempt}/again", fact)
        if at is not None:
            timer = f"{RETRY}{step.number}"
            self._journal.record(f"s{step.number}/a{step.attempt}/timer", TimerSet(timer, at))

    def _delay(self, retry: Retry, attempt: int) -> float:
        """Seconds until the next attempt; chance takes off up to half of them."""
        seconds = min(retry.delay, retry.max_delay)
        for _ in range(1, attempt):  # step by step: the power itself can be beyond all floats
            seconds = min(seconds * retry.factor, retry.max_delay)
        if not retry.jitter:
            return seconds
        return seconds * (1 - self._entropy.below(1000) / 2000)

    def _stack(self, error: Exception) -> str:
        """Where an error of the program came from, without the way to its code."""
        whole = without_callers(error.__traceback__) or error.__traceback__
        lines = "".join(traceback.format_exception(error.with_traceback(whole)))
        return self._journal.secrets.received(writable(lines)).rstrip()

    def crossing(self, strand: Strand, error: Exception) -> None:
        """What a flow decides by failed, not a step."""
        name, message = told(error)
        node = step_of(self._plan, strand)
        masked = self._journal.secrets.masked(message)
        self._record(strand, node, name, masked, self._stack(error), error=error)

    def _record(
        self,
        strand: Strand,
        node: StepNode | None,
        name: str,
        message: str,
        stack: str,
        step: Step | None = None,
        error: Exception | None = None,
    ) -> None:
        place = place_of(self._plan, strand)
        number, attempt = (step.number, step.attempt) if step else (0, 0)
        frame = f"t{step.turn}/frame" if step and step.turn else ""
        fact = StepFailed(
            node.name if node else place.rpartition("/")[2],
            place,
            number,
            attempt,
            name,
            message,
            stack,
            frame,
            strand.id,
            self._handler(strand, node, name, error),
            self._journal.clock.now(),
            decided_by(self._plan, strand),
        )
        id = f"s{number}/failed" if number else f"{place}/wrong"
        self._journal.record(id, fact)

    def _handler(
        self, strand: Strand, node: StepNode | None, name: str, error: Exception | None
    ) -> str:
        """The path that handles a failure: the first whose kind of error it is, by its class, or,
        where a turn failed, by its name."""
        frame = strand.frames[-1]
        for number, (kind, _) in enumerate(node.on_failure if node else ()):
            is_own = error is not None and isinstance(error, kind)
            if is_own or kind is Exception or kind.__name__ == name:
                return f"{frame.path}/{frame.at}.failed.{number}"
        return ""
