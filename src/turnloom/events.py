"""Events of runs: `RunEvent`, which type checkers narrow by `kind`, and the facts they carry."""

from typing import Literal, TypeAlias

from turnloom.agents.events import (
    AgentOutput,
    AgentText,
    AnswerRefused,
    CallsSettled,
    ChanceDrawn,
    EffectDone,
    MessageSent,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelLimited,
    ModelRetried,
    OutputRefused,
    QuestionAnswered,
    QuestionAsked,
    QuestionExpiredFact,
    SpeakerPicked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    ToolsOffered,
    TransferChosen,
    TurnFinished,
    TurnStarted,
    UserText,
)
from turnloom.assembly.events import (
    ContextGathered,
    FoundResult,
    FrameAssembled,
    GatheredItem,
    HistorySummarised,
    ProviderCall,
    ProviderFailed,
    RetrievalSearched,
    Segment,
    Span,
    Withheld,
)
from turnloom.board.events import (
    ArtifactConsumed,
    ArtifactMade,
    ArtifactPublished,
    ArtifactRefused,
)
from turnloom.conversation.events import (
    ConsideredRule,
    RouteDecided,
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
    PathEnded,
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
from turnloom.guards.events import (
    BudgetExceededFact,
    BudgetReserved,
    BudgetSpent,
    Candidate,
    LoopChecked,
    LoopDetectedFact,
    ScarcityChanged,
    Scores,
    SelectionJudged,
    SelectionMade,
    Shortage,
    WindowNeared,
)
from turnloom.guards.spec import Amounts, TurnDigest
from turnloom.hooks.events import (
    LifecycleToolCall,
    LifecycleToolError,
    LifecycleToolResult,
    MessageHookCalled,
    MessageHooked,
    MessageHookFailed,
)
from turnloom.kernel.marks import Mark
from turnloom.log.events import (
    CancelRequested,
    Pin,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunForked,
    RunLimited,
    RunPaused,
    RunResumed,
    RunRetried,
    RunStarted,
)
from turnloom.log.spec import Event, Fact
from turnloom.reaction.events import (
    ArtifactForwarded,
    ArtifactOffered,
    ArtifactOpened,
    ArtifactReceived,
    ArtifactsGiven,
    BatchClosed,
    JoinExpired,
    LimitReached,
    RetryAsked,
    RunOpened,
    SampleChosen,
    SubscriptionVerdict,
)
from turnloom.variables.events import (
    ContextChanged,
    ContextLoaded,
    ContextMissed,
    ContextRefused,
    ContextSuppressed,
    InitialValue,
    TimerExpired,
    TimerSet,
)

# Events that end a run.
RunEnd: TypeAlias = (
    Event[Literal["run.finished"], RunFinished]
    | Event[Literal["run.failed"], RunFailed]
    | Event[Literal["run.cancelled"], RunCancelled]
)

# Every event of a run.
RunEvent: TypeAlias = (
    Event[Literal["run.started"], RunStarted]
    | Event[Literal["run.paused"], RunPaused]
    | Event[Literal["run.resumed"], RunResumed]
    | Event[Literal["run.limited"], RunLimited]
    | Event[Literal["run.retried"], RunRetried]
    | Event[Literal["run.forked"], RunForked]
    | Event[Literal["run.finished"], RunFinished]
    | Event[Literal["run.failed"], RunFailed]
    | Event[Literal["cancel.requested"], CancelRequested]
    | Event[Literal["run.cancelled"], RunCancelled]
    | Event[Literal["context.loaded"], ContextLoaded]
    | Event[Literal["context.changed"], ContextChanged]
    | Event[Literal["context.refused"], ContextRefused]
    | Event[Literal["context.missed"], ContextMissed]
    | Event[Literal["context.suppressed"], ContextSuppressed]
    | Event[Literal["timer.set"], TimerSet]
    | Event[Literal["timer.expired"], TimerExpired]
    | Event[Literal["frame.assembled"], FrameAssembled]
    | Event[Literal["context.gathered"], ContextGathered]
    | Event[Literal["provider.failed"], ProviderFailed]
    | Event[Literal["retrieval.searched"], RetrievalSearched]
    | Event[Literal["history.summarised"], HistorySummarised]
    | Event[Literal["turn.started"], TurnStarted]
    | Event[Literal["turn.finished"], TurnFinished]
    | Event[Literal["model.called"], ModelCalled]
    | Event[Literal["model.answered"], ModelAnswered]
    | Event[Literal["model.retried"], ModelRetried]
    | Event[Literal["model.limited"], ModelLimited]
    | Event[Literal["model.failed"], ModelFailed]
    | Event[Literal["agent.text"], AgentText]
    | Event[Literal["agent.output"], AgentOutput]
    | Event[Literal["output.refused"], OutputRefused]
    | Event[Literal["transfer.chosen"], TransferChosen]
    | Event[Literal["tool.called"], ToolCalled]
    | Event[Literal["tool.returned"], ToolReturned]
    | Event[Literal["tool.failed"], ToolFailed]
    | Event[Literal["calls.settled"], CallsSettled]
    | Event[Literal["tools.offered"], ToolsOffered]
    | Event[Literal["effect.done"], EffectDone]
    | Event[Literal["chance.drawn"], ChanceDrawn]
    | Event[Literal["speaker.picked"], SpeakerPicked]
    | Event[Literal["message_hook.called"], MessageHookCalled]
    | Event[Literal["message_hook.returned"], MessageHooked]
    | Event[Literal["message_hook.failed"], MessageHookFailed]
    | Event[Literal["lifecycle.tool_call"], LifecycleToolCall]
    | Event[Literal["lifecycle.tool_result"], LifecycleToolResult]
    | Event[Literal["lifecycle.tool_error"], LifecycleToolError]
    | Event[Literal["user.text"], UserText]
    | Event[Literal["message.sent"], MessageSent]
    | Event[Literal["question.asked"], QuestionAsked]
    | Event[Literal["question.answered"], QuestionAnswered]
    | Event[Literal["question.expired"], QuestionExpiredFact]
    | Event[Literal["answer.refused"], AnswerRefused]
    | Event[Literal["route.decided"], RouteDecided]
    | Event[Literal["artifact.published"], ArtifactPublished]
    | Event[Literal["artifact.refused"], ArtifactRefused]
    | Event[Literal["artifact.made"], ArtifactMade]
    | Event[Literal["artifact.consumed"], ArtifactConsumed]
    | Event[Literal["artifact.offered"], ArtifactOffered]
    | Event[Literal["artifact.opened"], ArtifactOpened]
    | Event[Literal["artifact.received"], ArtifactReceived]
    | Event[Literal["artifacts.given"], ArtifactsGiven]
    | Event[Literal["run.opened"], RunOpened]
    | Event[Literal["artifact.forwarded"], ArtifactForwarded]
    | Event[Literal["join.expired"], JoinExpired]
    | Event[Literal["batch.closed"], BatchClosed]
    | Event[Literal["retry.asked"], RetryAsked]
    | Event[Literal["limit.reached"], LimitReached]
    | Event[Literal["sample.chosen"], SampleChosen]
    | Event[Literal["state.given"], StateGiven]
    | Event[Literal["state.migrated"], StateMigrated]
    | Event[Literal["step.started"], StepStarted]
    | Event[Literal["step.completed"], StepCompleted]
    | Event[Literal["step.retried"], StepRetried]
    | Event[Literal["step.failed"], StepFailed]
    | Event[Literal["step.handled"], StepHandled]
    | Event[Literal["step.recovered"], StepRecovered]
    | Event[Literal["step.skipped"], StepSkipped]
    | Event[Literal["step.compensated"], StepCompensated]
    | Event[Literal["branch.taken"], BranchTaken]
    | Event[Literal["fork.opened"], ForkOpened]
    | Event[Literal["fork.failed"], ForkFailed]
    | Event[Literal["fork.joined"], ForkJoined]
    | Event[Literal["loop.passed"], LoopPassed]
    | Event[Literal["loop.ended"], LoopEnded]
    | Event[Literal["approval.decided"], ApprovalDecided]
    | Event[Literal["flow.stopped"], FlowStopped]
    | Event[Literal["flow.rewound"], FlowRewound]
    | Event[Literal["selection.made"], SelectionMade]
    | Event[Literal["selection.judged"], SelectionJudged]
    | Event[Literal["budget.reserved"], BudgetReserved]
    | Event[Literal["budget.spent"], BudgetSpent]
    | Event[Literal["budget.exceeded"], BudgetExceededFact]
    | Event[Literal["scarcity.changed"], ScarcityChanged]
    | Event[Literal["window.neared"], WindowNeared]
    | Event[Literal["loop.checked"], LoopChecked]
    | Event[Literal["loop.detected"], LoopDetectedFact]
)

__all__ = [
    "AgentOutput",
    "AgentText",
    "Amounts",
    "AnswerRefused",
    "ApprovalDecided",
    "ArtifactConsumed",
    "ArtifactForwarded",
    "ArtifactMade",
    "ArtifactOffered",
    "ArtifactOpened",
    "ArtifactPublished",
    "ArtifactReceived",
    "ArtifactRefused",
    "ArtifactsGiven",
    "BatchClosed",
    "BranchTaken",
    "BudgetExceededFact",
    "BudgetReserved",
    "BudgetSpent",
    "CallsSettled",
    "CancelRequested",
    "Candidate",
    "ChanceDrawn",
    "ConsideredRule",
    "ContextChanged",
    "ContextGathered",
    "ContextLoaded",
    "ContextMissed",
    "ContextRefused",
    "ContextSuppressed",
    "EffectDone",
    "Event",
    "Fact",
    "FlowRewound",
    "FlowStopped",
    "ForkFailed",
    "ForkJoined",
    "ForkOpened",
    "FoundResult",
    "FrameAssembled",
    "GatheredItem",
    "HistorySummarised",
    "InitialValue",
    "JoinExpired",
    "LifecycleToolCall",
    "LifecycleToolError",
    "LifecycleToolResult",
    "LimitReached",
    "LoopChecked",
    "LoopDetectedFact",
    "LoopEnded",
    "LoopPassed",
    "Mark",
    "MessageHookCalled",
    "MessageHookFailed",
    "MessageHooked",
    "MessageSent",
    "ModelAnswered",
    "ModelCalled",
    "ModelFailed",
    "ModelLimited",
    "ModelRetried",
    "OutputRefused",
    "PathEnded",
    "Pin",
    "ProviderCall",
    "ProviderFailed",
    "QuestionAnswered",
    "QuestionAsked",
    "QuestionExpiredFact",
    "RetrievalSearched",
    "RetryAsked",
    "RouteDecided",
    "RunCancelled",
    "RunEnd",
    "RunEvent",
    "RunFailed",
    "RunFinished",
    "RunForked",
    "RunOpened",
    "RunPaused",
    "RunLimited",
    "RunResumed",
    "RunRetried",
    "RunStarted",
    "SampleChosen",
    "ScarcityChanged",
    "Scores",
    "Segment",
    "SelectionJudged",
    "SelectionMade",
    "Shortage",
    "Span",
    "SpeakerPicked",
    "StateGiven",
    "StateMigrated",
    "StepCompensated",
    "StepCompleted",
    "StepFailed",
    "StepHandled",
    "StepRecovered",
    "StepRetried",
    "StepSkipped",
    "StepStarted",
    "SubscriptionVerdict",
    "TimerExpired",
    "TimerSet",
    "ToolCalled",
    "ToolFailed",
    "ToolReturned",
    "ToolsOffered",
    "TransferChosen",
    "TurnDigest",
    "TurnFinished",
    "TurnStarted",
    "UserText",
    "WindowNeared",
    "Withheld",
]
