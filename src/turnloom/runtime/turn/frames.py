"""What an engine is shown: the frame is recorded, and what was recorded is opened for it."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import force_setattr

from turnloom.agents.logic.views import variable_origin, view_of
from turnloom.agents.spec import (
    UNPREPARED,
    USER,
    OutputSchema,
    PreparedRequest,
    Task,
    ToolSchema,
)
from turnloom.assembly.events import FrameAssembled, Segment, Span
from turnloom.assembly.logic import (
    BESIDE,
    CONTEXT,
    COUNTER,
    EMPTY,
    SOURCED,
    View,
    frame,
    is_counted_alike,
    recounted,
    spoken,
    system_text,
)
from turnloom.assembly.logic.frames import INPUTS, context_pieces, headed, input_pieces, left_out
from turnloom.assembly.logic.labels import together
from turnloom.assembly.service.assembling import TokenCounts
from turnloom.assembly.spec import ContextSlice, Message, Piece, Transcript
from turnloom.board.spec import Artifact
from turnloom.guards.logic.loops import hint_piece
from turnloom.kernel.marks import Mark
from turnloom.runs.brief import Brief, TextSink
from turnloom.runtime.calls import exposed
from turnloom.runtime.journal import Journal
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.runtime.turn.context import NO_CONTEXT, GatheredContext
from turnloom.runtime.turn.model_calls import model_key
from turnloom.runtime.turn.tools import OfferedTool


class Surrounding(NamedTuple):
    """What goes with a frame: tools, what hooks prepared, what context there is."""

    offers: Mapping[str, OfferedTool]
    prepared: PreparedRequest
    context: GatheredContext


class RecordedFrame(NamedTuple):
    """A recorded frame, the turn it is of, and what goes with it."""

    shown: FrameAssembled
    brief: Brief
    around: Surrounding

    @property
    def is_filled(self) -> bool:
        """Whether it shows more than what was said: artifacts, context, or what a step asks."""
        return not self.brief.hears_history or self.around.context is not NO_CONTEXT


class TurnFrames:
    """Makes and opens the frames of one run."""

    def __init__(self, journal: Journal, loaded: LoadedWorkflow) -> None:
        self._journal = journal
        self._loaded = loaded
        self._counts = TokenCounts(loaded.counter)
        # How many messages were counted, and how many tokens they have.
        self._counted = 0, 0

    def see(self, brief: Brief, place: int, around: Surrounding) -> RecordedFrame:
        """The frame of a turn, from the record or made now; `place` tells those of engines with a
        context of their own apart."""
        number = brief.turn
        key = f"t{number}/e{place}/frame" if place else f"t{number}/frame"
        shown = self._journal.keep(key, lambda: self._assemble(brief, around))
        return RecordedFrame(shown, brief, around)

    def _assemble(self, brief: Brief, around: Surrounding) -> FrameAssembled:
        state, context = self._journal.state, around.context
        prepared, counter = around.prepared, COUNTER
        if brief.inputs or context is not NO_CONTEXT:
            prepared = self._with_context(prepared, brief.inputs, context)
        if (hint := hint_piece(state, brief.turn)) is not None:
            prepared = prepared._replace(pieces=(*prepared.pieces, hint))
        shown = self._view(brief.agent, around.offers, prepared)
        seen = state.views.get(shown.digest)
        own = prepared.messages is not None or context.tells
        history = state.history if brief.hears_history and not own else NOTHING_SAID
        if context.assembled is not None:  # a frame has one counter, so that its tokens add up
            shown, counter = recounted(shown, self._counts), self._counts.name
            history = self._recounted(history)
            seen = seen if seen and is_counted_alike(shown, seen[1]) else None
        as_in = seen[0] if seen else 0
        made = frame(
            brief.turn, brief.agent, shown, history, as_in=as_in, known=state.texts, counter=counter
        )
        if self._journal.has_secrets and made.segments:
            made = msgspec.structs.replace(made, segments=self._marked(made.segments, shown))
        if not brief.inputs and context is NO_CONTEXT:
            return made
        inputs = (each.visibility for each in brief.inputs)
        audience = together((*inputs, *context.visibility))
        return msgspec.structs.replace(made, visibility=audience) if audience else made

    def _marked(self, segments: Sequence[Segment], shown: View) -> tuple[Segment, ...]:
        """Segments that say where secrets stand in them: these places are opened, and no others."""
        return tuple(
            msgspec.structs.replace(each, marks=self._marks(piece))
            for each, piece in zip(segments, shown.pieces, strict=True)
        )

    def _marks(self, piece: Piece) -> tuple[Mark, ...]:
        """Where secrets stand in a piece: of a variable, its own value. What was said, and what
        else the agent is told, stays as it is."""
        if piece.kind in OPENED:
            return self._journal.secrets.marks_in(piece.text)
        marks = self._journal.secrets.marks_in(piece.text) if piece.kind == "variable" else ()
        return tuple(each for each in marks if piece.origin == variable_origin(each.secret))

    def _recounted(self, history: Span) -> Span:
        """What was said, its tokens counted as those of context are; each message once."""
        count, tokens = self._counted
        if history.count > count:
            more = self._journal.state.messages[count : history.count]
            tokens += sum(self._counts(spoken(each.author, each.text)) for each in more)
            self._counted = history.count, tokens
        return msgspec.structs.replace(history, tokens=tokens if history.count else 0)

    def _with_context(
        self, prepared: PreparedRequest, inputs: Sequence[Artifact], context: GatheredContext
    ) -> PreparedRequest:
        texts, assembled = self._journal.state.texts, context.assembled
        given = input_pieces(inputs, context.inputs, texts)
        if assembled is not None:
            pieces, withheld = headed(assembled.pieces), assembled.context.withheld
        else:
            pieces = [each for fact in context.gathered for each in context_pieces(fact, texts)]
            withheld = tuple(each for fact in context.gathered for each in left_out(fact))
        return prepared._replace(pieces=(*pieces, *given, *prepared.pieces), withheld=withheld)

    def _view(
        self, agent: str, offers: Mapping[str, OfferedTool], prepared: PreparedRequest
    ) -> View:
        """The agent's view, made anew only when a value changed since it was last made."""
        journal = self._journal
        revision = journal.state.revision
        kept = journal.views.get(agent)
        if kept is not None and kept[0] == revision and prepared is UNPREPARED:
            return kept[1]
        workflow = journal.workflow
        made = view_of(
            workflow.agents[agent],
            workflow.variables,
            journal.state,
            [offer.schema for offer in offers.values() if not offer.auto],
            output=self._form(agent),
            prepared=prepared,
        )
        journal.views[agent] = (revision, made)
        return made

    def _form(self, agent: str) -> OutputSchema | None:
        """The form that the agent's answers are to have."""
        workflow = self._journal.workflow
        products = workflow.products.get(agent)
        if products is not None:
            return products.schema
        output = workflow.outputs.get(agent)
        return OutputSchema(output.name, output.schema) if output else None

    def open(self, sight: RecordedFrame, say: TextSink, scope: str) -> Task:
        """The recorded frame as an engine is given it."""
        journal, state, shown = self._journal, self._journal.state, sight.shown
        agent, asked = shown.agent, self._asked(scope)
        workflow = journal.workflow
        formed = sight.around.offers or agent in workflow.outputs or agent in workflow.products
        tools, output = self._schemas(shown) if formed else NO_SCHEMAS
        names = exposed(journal, self._loaded, agent)
        task = Task(
            state.run,
            agent,
            shown.turn,
            state.calls_of.get(agent, 0) - asked + 1,
            key=f"{state.run}/{model_key(scope, 0)}",
            system=self._revealed(shown, names),
            transcript=self._transcript(sight, names),
            tools=tools,
            output=output,
            exchanges=(),
            model=workflow.agents[agent].model or self._loaded.model,
            say=say,
        )
        if journal.secrets:
            task = msgspec.structs.replace(task, mask=journal.secrets.masked_data)
        return self._filled(task, sight, names) if sight.is_filled else task

    def _transcript(self, sight: RecordedFrame, names: frozenset[str]) -> Transcript:
        """What was said, and then what providers gave and what the turn is about."""
        state, shown = self._journal.state, sight.shown
        if sight.around.prepared.messages is not None:
            said = Transcript(sight.around.prepared.messages)
        else:
            said = Transcript(state.messages, shown.history.count)
        if not sight.is_filled:
            return said
        texts = [(each.kind, self._text(each, names)) for each in state.views[shown.view][1]]
        return Transcript((*said, *_told(texts)))

    def _filled(self, task: Task, sight: RecordedFrame, names: frozenset[str]) -> Task:
        """The task with what its frame shows as data: inputs and context."""
        state = self._journal.state
        segments = state.views[sight.shown.view][1]
        items = [*self._items(segments, names)]
        shown = [self._data(each, names) for each in segments if _is_input(each)]
        given = zip(sight.brief.inputs, shown, strict=True)
        inputs = tuple(_as_shown(each, it) for each, it in given)
        slice = ContextSlice(items, sight.around.context.metadata)
        return msgspec.structs.replace(task, inputs=inputs, context=slice)

    def _items(
        self, segments: Sequence[Segment], names: frozenset[str]
    ) -> Iterator[dict[str, Any]]:
        """Items of context: as providers gave them, or what stands in the prompt of a source."""
        for each in segments:
            if each.kind == "artifact":
                yield self._data(each, names)
            elif each.kind in SOURCED:
                kind, content = each.kind.removeprefix("context."), self._text(each, names).strip()
                yield {"type": kind, "origin": each.origin, "content": content}

    def _text(self, segment: Segment, names: frozenset[str]) -> str:
        """The text of a segment, with the secrets of these names where it has their marks."""
        text = self._journal.state.texts[segment.digest]
        if not (segment.marks and names):
            return text
        is_json = segment.kind in DATA
        return self._journal.secrets.opened_text(text, segment.marks, names, is_json=is_json)

    def _data(self, segment: Segment, names: frozenset[str]) -> dict[str, Any]:
        """What the text of a segment says, with the secrets of these names in it."""
        return msgspec.json.decode(self._text(segment, names))

    def _asked(self, scope: str) -> int:
        """How often the engine has answered in this part of the turn already."""
        count = 0
        while self._journal.recorded(f"{model_key(scope, count)}.0") is not None:
            count += 1
        return count

    def _schemas(self, shown: FrameAssembled) -> tuple[tuple[ToolSchema, ...], OutputSchema | None]:
        """The tools and the form of output that a recorded frame tells of."""
        state = self._journal.state
        tools: list[ToolSchema] = []
        output: OutputSchema | None = None
        for segment in state.views[shown.view][1]:
            if segment.kind == "tool":
                tools.append(msgspec.json.decode(state.texts[segment.digest], type=ToolSchema))
            elif segment.kind == "output":
                output = msgspec.json.decode(state.texts[segment.digest], type=OutputSchema)
        return tuple(tools), output

    def _revealed(self, shown: FrameAssembled, names: frozenset[str]) -> str:
        """The system text with the secrets of these names put in."""
        if not names:
            return self._system(shown)
        segments = self._journal.state.views[shown.view][1]
        return "".join(self._text(each, names) for each in segments if each.kind not in BESIDE)

    def _system(self, shown: FrameAssembled) -> str:
        """The system text that a recorded frame shows."""
        kept = self._journal.views.get(shown.agent)
        if kept is not None and kept[1].digest == shown.view:
            return kept[1].text
        state = self._journal.state
        return system_text(state.views[shown.view][1], state.texts)


# Kinds of pieces in which secrets are opened beside variables, and those that are JSON. What was
# said stays as it was heard, and what is declared as it was written.
OPENED = (SOURCED | {"artifact", "input", "prompt"}) - {"context.history", "context.literal"}
DATA = frozenset({"variable", "artifact", "input", "context.artifact", "context.variables"})

NOTHING_SAID = Span(0, 0, 0, 0, digest=EMPTY)
NO_SCHEMAS: tuple[tuple[ToolSchema, ...], OutputSchema | None] = ((), None)


def _told(texts: Sequence[tuple[str, str]]) -> Iterator[Message]:
    """What stands beside the system text as messages: each begins with its head."""
    for kinds in (CONTEXT, ("input",), ("prompt",)):
        told = "".join(text for kind, text in texts if kind in kinds)
        if told:
            yield Message(0, USER, told.removeprefix(spoken(USER, "")))


def _is_input(segment: Segment) -> bool:
    return segment.kind == "input" and segment.origin != INPUTS


def _as_shown(artifact: Artifact, item: dict[str, Any]) -> Artifact:
    shown = copy(artifact)
    force_setattr(shown, "payload", item["payload"])  # it was made just now, for this engine
    return shown
