"""Where a flow goes on one way or another: what its own code, or a person, says to the state."""

from typing import Any

from turnloom.agents.spec import Question
from turnloom.flow.events import BranchTaken, ForkJoined, LoopEnded, LoopPassed, PathEnded
from turnloom.flow.logic.approvals import APPROVAL, asking_of, payload_of, schema_of
from turnloom.flow.logic.flowing import Flowing
from turnloom.flow.logic.folding import APPROVALS
from turnloom.flow.logic.joining import clash
from turnloom.flow.logic.walking import children, loop_of, place_of
from turnloom.flow.spec.nodes import ApprovalNode, BranchNode, ForkNode
from turnloom.flow.spec.progress import Strand
from turnloom.kernel.durations import later
from turnloom.kernel.values import Json, said, writable
from turnloom.runtime.service.calls import as_json, ask
from turnloom.runtime.service.exposing import opened
from turnloom.runtime.service.journal import Journal
from turnloom.runtime.service.steps import Steps
from turnloom.runtime.service.users import ask_condition, ask_user_code

# Seconds that a condition, a choice or what an approver is told may take.
DEADLINE = 60.0


class Crossings:
    """Puts on record which way one run of a flow goes on."""

    def __init__(self, journal: Journal, workflow: Flowing, steps: Steps) -> None:
        self._journal = journal
        self._workflow = workflow
        self._plan = workflow.plan
        self._steps = steps

    async def pass_loop(self, strand: Strand) -> None:
        """A loop's body was walked: again, or not."""
        loop, frame = loop_of(self._plan, strand)
        place = frame.prefix.rpartition("[")[0]
        held = await self.holds(loop.until, strand)
        passed = LoopPassed(loop.name, place, frame.number, held, strand.id)
        key = f"{place}[{frame.number}]"
        self._journal.record(f"{key}/passed", passed)
        if held or frame.number >= loop.max_iterations:
            reason = "the condition holds" if held else "max_iterations"
            ended = LoopEnded(loop.name, place, frame.number, reason, strand.id)
            self._journal.record(f"{key}/ended", ended)

    async def branch(self, strand: Strand, node: BranchNode) -> None:
        """The path of the value that the state has is walked."""
        place, frame = place_of(self._plan, strand), strand.frames[-1]
        value = await self.ask(node.on, strand)
        path = f"{frame.path}/{frame.at}"
        label, taken = "", ""
        for number, (case, _) in enumerate(node.cases):
            if case == value and type(case) is type(value):
                label, taken = _word(case), f"{path}.{number}"
                break
        else:
            if node.otherwise is not None:
                label, taken = "otherwise", f"{path}.otherwise"
            elif not self._rejoins(strand):
                raise LookupError(f"No path of {node.name!r} is for {value!r}.")
        fact = BranchTaken(node.name, place, _shown(value), taken, label, strand.id)
        self._journal.record(f"{place}/branch", fact)

    def _rejoins(self, strand: Strand) -> bool:
        """Whether something comes after what a strand has come to."""
        frame = strand.frames[-1]
        return frame.at + 1 < len(self._plan.paths[frame.path].line.nodes)

    def join(self, strand: Strand, node: ForkNode) -> None:
        """What the paths of a fork changed is one state again.

        Raises:
            InvalidUpdate: two of them set one field, or the state cannot be what comes of it.
        """
        place, progress = place_of(self._plan, strand), self._journal.state.progress
        found = children(progress, strand, place)
        clash(self._workflow.states, found)
        deltas = [delta for child in found for delta in child.deltas]
        reduced = self._steps.reduce(strand.state, opened(self._journal, deltas))
        ends = tuple(_ended(child) for child in found)
        fact = ForkJoined(node.name, place, ends, reduced, strand.id)
        self._journal.record(f"{place}/join", fact)

    async def approve(self, strand: Strand, node: ApprovalNode) -> None:
        """Ask the approver; a question asked again is due when it was at first."""
        asked, place = strand.asking, place_of(self._plan, strand)
        asking = asking_of(node, asked.level if asked else 0)
        words = (
            await self.ask(asking.context, strand) if callable(asking.context) else asking.context
        )
        until = asked.due if asked else None
        if until is None and asking.timeout is not None:
            until = later(self._journal.clock.now(), asking.timeout)
        number = (asked.number if asked else 0) + 1
        told = writable(str(words)) or f"Do you approve {node.name!r}?"
        question = Question(
            f"{APPROVALS}{place}#{number}",
            told,
            asking.approver,
            APPROVAL,
            payload_of(node, asking, told),
            schema=schema_of(asking),
            due=until,
        )
        ask(self._journal, question)

    async def ask(self, function: Any, strand: Strand) -> Any:
        """What a function of the flow says to the state."""
        state = self._steps.state(strand.state)
        return await ask_user_code(function, state, deadline=DEADLINE)

    async def holds(self, condition: Any, strand: Strand) -> bool:
        """Whether a condition of the flow holds for the state."""
        state = self._steps.state(strand.state)
        return await ask_condition(condition, state, deadline=DEADLINE)


def _ended(child: Strand) -> PathEnded:
    failed = child.failed
    status = "recovered" if failed else "completed"
    return PathEnded(child.id, status, f"{failed.error}: {failed.message}" if failed else "")


def _word(value: Any) -> str:
    return str(getattr(value, "value", value))


def _shown(value: Any) -> Json:
    """A value that a branch went by, as JSON where it can be said."""
    try:
        return as_json(value)
    except TypeError:
        return said(value)
