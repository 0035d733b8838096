"""The fold of a flow's facts into its progress."""

from collections.abc import Callable, Mapping
from typing import Any

from turnloom.agents.events import (
    EffectDone,
    QuestionAnswered,
    QuestionAsked,
    QuestionExpiredFact,
    ToolReturned,
)
from turnloom.flow.events import (
    ApprovalDecided,
    BranchTaken,
    FlowRewound,
    FlowStopped,
    ForkFailed,
    ForkJoined,
    ForkOpened,
    LoopEnded,
    LoopPassed,
    StateGiven,
    StateMigrated,
    StepCompensated,
    StepCompleted,
    StepFailed,
    StepHandled,
    StepRecovered,
    StepRetried,
    StepSkipped,
    StepStarted,
)
from turnloom.flow.logic.approvals import APPROVED, DEFERRED, EXPIRED
from turnloom.flow.logic.endings import rescue, stop
from turnloom.flow.logic.states import StateModel
from turnloom.flow.logic.walking import (
    MAIN,
    advance,
    again,
    children,
    done_at,
    end,
    enter,
    fail,
    forget,
    leave_loop,
    loop_of,
    open_fork,
    place_of,
    reopen,
    settle,
    state_of,
    step_of,
)
from turnloom.flow.spec.nodes import FlowPlan
from turnloom.flow.spec.progress import (
    CompletedStep,
    DecisionRecord,
    Frame,
    OpenApproval,
    OpenNode,
    Progress,
    Step,
    StepFailure,
    Strand,
)
from turnloom.log.events import RunRetried
from turnloom.variables.events import TimerExpired

# The timer of a whole run, and the prefix of the timers of attempts.
TIMEOUT, RETRY = "flow/timeout", "flow/retry/"


class Folding:
    """Folds the facts of one flow's runs."""

    def __init__(self, plan: FlowPlan, states: StateModel) -> None:
        self._plan = plan
        self._states = states
        self.folds: Mapping[type, Callable[[Any, Any], None]] = {
            StateGiven: self._on_given,
            StateMigrated: self._on_migrated,
            StepStarted: self._on_started,
            EffectDone: self._on_effect,
            ToolReturned: self._on_tool,
            StepCompleted: self._on_completed,
            StepRetried: self._on_retried,
            StepFailed: self._on_failed,
            StepHandled: self._on_handled,
            StepRecovered: self._on_recovered,
            StepSkipped: self._on_skipped,
            StepCompensated: self._on_compensated,
            BranchTaken: self._on_branch,
            ForkOpened: self._on_opened,
            ForkFailed: self._on_fork_failed,
            ForkJoined: self._on_joined,
            LoopPassed: self._on_passed,
            LoopEnded: self._on_loop_ended,
            ApprovalDecided: self._on_decided,
            FlowStopped: self._on_stopped,
            FlowRewound: self._on_rewound,
            RunRetried: self._on_run_retried,
            QuestionAsked: self._on_asked,
            QuestionAnswered: self._on_answered,
            QuestionExpiredFact: self._on_expired,
            TimerExpired: self._on_timer,
        }

    def _on_given(self, progress: Progress, fact: StateGiven) -> None:
        root = progress.strands[""]
        root.state = {**fact.state}
        settle(self._plan, progress, root)

    def _on_migrated(self, progress: Progress, fact: StateMigrated) -> None:
        for id, state in fact.states.items():
            progress.strands[id].state = {**state}

    def _on_started(self, progress: Progress, fact: StepStarted) -> None:
        progress.begun = max(progress.begun, fact.number)
        before = progress.steps.get(fact.number)
        step = progress.steps[fact.number] = Step(
            fact.number,
            fact.place,
            fact.strand,
            fact.step,
            attempt=fact.attempt,
            turn=fact.turn,
            undoes=fact.undoes,
        )
        if before is not None:
            step.acted, step.spent = before.acted, before.spent
        if not fact.undoes:
            strand = progress.strands[fact.strand]
            strand.step, strand.attempt, strand.status = fact.number, fact.attempt, "busy"
            step.done = done_at(self._plan, strand, fact.number, fact.attempt)

    def _on_effect(self, progress: Progress, fact: EffectDone) -> None:
        scope = fact.call.partition("/")[0]
        for step in progress.steps.values():
            if scope in (f"s{step.number}", f"t{step.turn}"):
                step.acted = True

    def _on_tool(self, progress: Progress, fact: ToolReturned) -> None:
        for step in progress.steps.values():
            if fact.turn and step.turn == fact.turn:
                step.acted = True

    def _on_completed(self, progress: Progress, fact: StepCompleted) -> None:
        progress.steps.pop(fact.number, None)
        strand = progress.strands[fact.strand]
        self._states.apply(strand.state, fact.update, fact.reduced)
        if strand.id and fact.update:
            strand.deltas.append(fact.update)
        if fact.thread:
            progress.threads.setdefault(fact.thread, []).extend(fact.said)
        progress.kept.pop(fact.place, None)
        done = done_at(self._plan, strand, fact.number, fact.attempt)
        node = step_of(self._plan, strand)
        if done is not None and not fact.cached:  # a cached step did not run
            self._compensate_later(progress, done)
        forget(progress, strand)
        if fact.is_unsure and node is not None and node.on_low_confidence is not None:
            frame = strand.frames[-1]
            enter(
                self._plan,
                progress,
                strand,
                f"{frame.path}/{frame.at}.low",
                prefix=f"{fact.place}?/",
            )
        else:
            advance(self._plan, progress, strand)
        if progress.undoing is not None:
            rescue(self._plan, progress, progress.undoing)

    def _compensate_later(self, progress: Progress, done: CompletedStep) -> None:
        """Keep a step for compensation; in a stopped flow, it is the next one."""
        undoing = progress.undoing
        if undoing is None:
            progress.completed.append(done)
        elif not undoing.is_handled and done not in undoing.left:
            undoing.left.insert(0, done)

    def _on_retried(self, progress: Progress, fact: StepRetried) -> None:
        step = progress.steps[fact.number]
        progress.strands[step.strand].status = "ready" if fact.due is None else "waiting"

    def _on_failed(self, progress: Progress, fact: StepFailed) -> None:
        progress.steps.pop(fact.number, None)
        strand = progress.strands[fact.strand]
        progress.kept.pop(fact.place, None)
        done = done_at(self._plan, strand, fact.number, fact.attempt) if fact.attempt else None
        strand.broken = strand.broken or done
        strand.step = strand.attempt = 0
        failure = failure_of(fact)
        if fact.handler:
            strand.failures.append(failure)
            enter(self._plan, progress, strand, fact.handler, prefix=f"{fact.place}!/")
        else:
            fail(self._plan, progress, strand, failure)

    def _on_handled(self, progress: Progress, fact: StepHandled) -> None:
        strand = progress.strands[fact.strand]
        strand.frames.pop()
        fail(self._plan, progress, strand, strand.failures.pop())

    def _on_recovered(self, progress: Progress, fact: StepRecovered) -> None:
        strand = progress.strands[fact.strand]
        ends = self._plan.paths[strand.frames.pop().path].line.ends
        strand.failures.pop()
        strand.broken = None
        forget(progress, strand)
        if ends:
            end(progress, strand)
        else:
            advance(self._plan, progress, strand)

    def _on_skipped(self, progress: Progress, fact: StepSkipped) -> None:
        step, undoing = progress.steps.pop(fact.number, None), progress.undoing
        if step is not None and step.acted and step.done is not None:
            self._compensate_later(progress, step.done)
        if undoing is not None:
            rescue(self._plan, progress, undoing)

    def _on_compensated(self, progress: Progress, fact: StepCompensated) -> None:
        step = progress.steps.pop(fact.number, None)
        undoing = progress.undoing
        assert undoing is not None
        done = undoing.left.pop(0)
        strand = state_of(progress, step.strand if step else done.strand)
        self._states.apply(strand.state, fact.update, fact.reduced)
        rescue(self._plan, progress, undoing)

    def _on_branch(self, progress: Progress, fact: BranchTaken) -> None:
        strand = progress.strands[fact.strand]
        if fact.path:
            enter(self._plan, progress, strand, fact.path, prefix=f"{fact.place}:{fact.case}/")
        else:
            advance(self._plan, progress, strand)

    def _on_opened(self, progress: Progress, fact: ForkOpened) -> None:
        open_fork(self._plan, progress, progress.strands[fact.strand])

    def _on_fork_failed(self, progress: Progress, fact: ForkFailed) -> None:
        strand, path = progress.strands[fact.strand], progress.strands[fact.path]
        assert path.failed is not None
        strand.broken = strand.broken or path.broken
        forget(progress, strand)
        fail(self._plan, progress, strand, path.failed)

    def _on_joined(self, progress: Progress, fact: ForkJoined) -> None:
        strand = progress.strands[fact.strand]
        for child in children(progress, strand, fact.place):
            for delta in child.deltas:
                own = {name: fact.reduced[name] for name in delta if name in fact.reduced}
                self._states.apply(strand.state, delta, own)
                if strand.id:
                    strand.deltas.append(delta)
            child.status = "joined"
        strand.status = "ready"
        reopen(self._plan, progress, strand)

    def _on_passed(self, progress: Progress, fact: LoopPassed) -> None:
        strand = progress.strands[fact.strand]
        loop, _ = loop_of(self._plan, strand)
        if not fact.held and fact.number < loop.max_iterations:
            again(self._plan, progress, strand)

    def _on_loop_ended(self, progress: Progress, fact: LoopEnded) -> None:
        leave_loop(self._plan, progress, progress.strands[fact.strand])

    def _on_asked(self, progress: Progress, fact: QuestionAsked) -> None:
        strand = self.asking(progress, fact.question)
        if not isinstance(strand, Strand):
            return
        asked = strand.asking or OpenApproval()
        strand.asking = OpenApproval(asked.level, fact.question, asked.number + 1, fact.due)
        strand.status = "waiting"

    def asking(self, progress: Progress, question: str) -> Strand | OpenNode | None:
        """The strand that waits for an approval, by its question; what was left open there, if the
        flow was rewound and has not come to it again."""
        if not question.startswith(APPROVALS):
            return None
        place = question.removeprefix(APPROVALS).rpartition("#")[0]
        for strand in progress.strands.values():
            if strand.frames and place_of(self._plan, strand) == place:
                return strand
        return progress.left.get(place)

    def _on_answered(self, progress: Progress, fact: QuestionAnswered) -> None:
        where = self.asking(progress, fact.question)
        if where is not None and where.asking is not None:
            where.asking.answer, where.asking.by = fact.value, fact.by
            where.asking.status, where.status = "answered", "ready"

    def _on_expired(self, progress: Progress, fact: QuestionExpiredFact) -> None:
        where = self.asking(progress, fact.question)
        if where is not None and where.asking is not None:
            where.asking.status, where.status = EXPIRED, "ready"

    def _on_decided(self, progress: Progress, fact: ApprovalDecided) -> None:
        strand = progress.strands[fact.strand]
        asked = strand.asking or OpenApproval()  # a decision from before a retry has no question
        progress.kept.pop(fact.place, None)
        if fact.outcome == DEFERRED:
            asked.status, asked.answer = "open", None
            return
        if fact.to:
            strand.asking = OpenApproval(asked.level + 1, number=asked.number)
            return
        strand.asking = None
        progress.approvals[fact.approval] = DecisionRecord(
            fact.approver, fact.outcome, fact.option, fact.instructions, by=fact.by
        )
        if fact.path:
            enter(self._plan, progress, strand, fact.path, prefix=f"{fact.place}:{fact.outcome}/")
        elif fact.outcome == APPROVED:
            advance(self._plan, progress, strand)
        else:
            fail(self._plan, progress, strand, self._unapproved(fact))

    def _unapproved(self, fact: ApprovalDecided) -> StepFailure:
        error = "ApprovalExpired" if fact.outcome == EXPIRED else "ApprovalRejected"
        why = f": {fact.instructions}" if fact.instructions else "."
        message = f"{fact.approver!r} did not approve{why}"
        return StepFailure(fact.approval, error, message, what=f"approval {fact.approval!r}")

    def _on_timer(self, progress: Progress, fact: TimerExpired) -> None:
        if fact.timer == TIMEOUT:
            progress.is_late = True
        elif fact.timer.startswith(RETRY):
            number = int(fact.timer.removeprefix(RETRY))
            step = progress.steps.get(number)
            if step is not None and step.strand in progress.strands:
                progress.strands[step.strand].status = "ready"
            for left in progress.left.values():
                if left.step is not None and left.step.number == number:
                    left.status = "ready"

    def _on_stopped(self, progress: Progress, fact: FlowStopped) -> None:
        stop(self._plan, progress, fact)

    def _on_run_retried(self, progress: Progress, fact: RunRetried) -> None:
        """Let every open step have all of its attempts; the one that is entered again is the
        first."""
        for step in progress.steps.values():
            if not step.undoes:
                is_entered = progress.strands[step.strand].status == "busy"
                step.spent = step.attempt - is_entered

    def _on_rewound(self, progress: Progress, fact: FlowRewound) -> None:
        """Go back to the start; what was interrupted, and not compensated, waits at its place."""
        for strand in progress.strands.values():
            step = progress.steps.get(strand.step)
            if step is not None or strand.asking is not None:
                place = place_of(self._plan, strand)
                progress.left[place] = OpenNode(strand.status, step, strand.asking)
        progress.left = {
            place: each
            for place, each in progress.left.items()
            if each.step is None or f"s{each.step.number}" not in fact.undone
        }
        root = Strand("", frames=[Frame(MAIN)], state={**fact.state})
        progress.strands, progress.going = {"": root}, {"": None}
        progress.failed, progress.steps, progress.completed = [], {}, []
        progress.approvals, progress.threads = {}, {}
        progress.kept = {**fact.kept}
        settle(self._plan, progress, root)


# The prefix of the ids of approvals' questions.
APPROVALS = "approval/"


def failure_of(fact: StepFailed) -> StepFailure:
    """The failure of a step, for its handlers."""
    return StepFailure(
        fact.step,
        fact.error,
        fact.message,
        fact.stack,
        at=fact.at,
        attempt=fact.attempt,
        frame=fact.frame,
        what=fact.what,
    )
