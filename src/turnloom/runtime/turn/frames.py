"""Frames: recorded first, then opened for the engine."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

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
from turnloom.runtime.journal import Journal, idempotency_key
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.runtime.turn.context import NO_CONTEXT, GatheredContext
from turnloom.runtime.turn.model_calls import model_key
from turnloom.runtime.turn.tools import OfferedTool


class FrameParts(msgspec.Struct, frozen=True):
    """What goes with a frame: tools, the prepared request, context."""

    offers: Mapping[str, OfferedTool]
    prepared: PreparedRequest
    context: GatheredContext


class RecordedFrame(msgspec.Struct, frozen=True):
    """A recorded frame, its brief and its surroundings."""

    shown: FrameAssembled
    brief: Brief
    around: FrameParts

    @property
    def is_filled(self) -> bool:
        """Whether it shows more than messages: artifacts, context, or the request of a step."""
        return not self.brief.hears_history or self.around.context is not NO_CONTEXT


class TurnFrames:
    """Makes and opens the frames of one run."""

    def __init__(self, journal: Journal, loaded: LoadedWorkflow) -> None:
        self._journal = journal
        self._loaded = loaded
        self._counts = TokenCounts(loaded.counter)
        # The number of messages counted so far, and their tokens.
        self._counted = 0, 0

    def see(self, brief: Brief, place: int, around: FrameParts) -> RecordedFrame:
        """The frame of a turn, from the log or made now; `place` numbers engines that have their
        own context."""
        number = brief.turn
        key = f"t{number}/e{place}/frame" if place else f"t{number}/frame"
        shown = self._journal.keep(key, lambda: self._assemble(brief, around))
        return RecordedFrame(shown, brief, around)

    def _assemble(self, brief: Brief, around: FrameParts) -> FrameAssembled:
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
        """Segments with the places of secrets in them: only these places are opened."""
        return tuple(
            msgspec.structs.replace(each, marks=self._marks(piece))
            for each, piece in zip(segments, shown.pieces, strict=True)
        )

    def _marks(self, piece: Piece) -> tuple[Mark, ...]:
        """The places of secrets in a piece; of a variable, only its own value. Messages and other
        text stay as they are."""
        if piece.kind in OPENED:
            return self._journal.secrets.marks_in(piece.text)
        marks = self._journal.secrets.marks_in(piece.text) if piece.kind == "variable" else ()
        return tuple(each for each in marks if piece.origin == variable_origin(each.secret))

    def _recounted(self, history: Span) -> Span:
        """The history, counted with the same counter as the context; each message once."""
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
        """The agent's view, made again only after a variable changed."""
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
        """The schema of the agent's answers."""
        workflow = self._journal.workflow
        products = workflow.products.get(agent)
        if products is not None:
            return products.schema
        output = workflow.outputs.get(agent)
        return OutputSchema(output.name, output.schema) if output else None

    def open(self, sight: RecordedFrame, say: TextSink, scope: str) -> Task:
        """A recorded frame as the task of an engine."""
        journal, state, shown = self._journal, self._journal.state, sight.shown
        agent, asked = shown.agent, self._asked(scope)
        workflow = journal.workflow
        formed = sight.around.offers or agent in workflow.outputs or agent in workflow.products
        tools, output = self._schemas(shown) if formed else NO_SCHEMAS
        names = exposed(journal, self._loaded, agent)
        inputs, context = self._given(sight, names) if sight.is_filled else NOTHING_GIVEN
        task = Task(
            state.run,
            agent,
            shown.turn,
            state.calls_of.get(agent, 0) - asked + 1,
            key=idempotency_key(self._journal, model_key(scope, 0)),
            system=self._revealed(shown, names),
            transcript=self._transcript(sight, names),
            tools=tools,
            output=output,
            exchanges=(),
            model=workflow.agents[agent].model or self._loaded.model,
            say=say,
            inputs=inputs,
            context=context,
        )
        if journal.secrets:
            task = msgspec.structs.replace(task, mask=journal.secrets.masked_data)
        return task

    def _transcript(self, sight: RecordedFrame, names: frozenset[str]) -> Transcript:
        """The messages, then the context and the inputs of the turn."""
        state, shown = self._journal.state, sight.shown
        if sight.around.prepared.messages is not None:
            said = Transcript(sight.around.prepared.messages)
        else:
            said = Transcript(state.messages, shown.history.count)
        if not sight.is_filled:
            return said
        texts = [(each.kind, self._text(each, names)) for each in state.views[shown.view][1]]
        return Transcript((*said, *_context_messages(texts)))

    def _given(
        self, sight: RecordedFrame, names: frozenset[str]
    ) -> tuple[tuple[Artifact, ...], ContextSlice]:
        """The inputs and the context of a frame as data."""
        state = self._journal.state
        segments = state.views[sight.shown.view][1]
        items = [*self._items(segments, names)]
        shown = [self._data(each, names) for each in segments if _is_input(each)]
        given = zip(sight.brief.inputs, shown, strict=True)
        inputs = tuple(_as_shown(each, it) for each, it in given)
        return inputs, ContextSlice(items, sight.around.context.metadata)

    def _items(
        self, segments: Sequence[Segment], names: frozenset[str]
    ) -> Iterator[dict[str, Any]]:
        """Items of context: as providers gave them, or the text of a source."""
        for each in segments:
            if each.kind == "artifact":
                yield self._data(each, names)
            elif each.kind in SOURCED:
                kind, content = each.kind.removeprefix("context."), self._text(each, names).strip()
                yield {"type": kind, "origin": each.origin, "content": content}

    def _text(self, segment: Segment, names: frozenset[str]) -> str:
        """The text of a segment, with the secrets of these names in clear."""
        text = self._journal.state.texts[segment.digest]
        if not (segment.marks and names):
            return text
        is_json = segment.kind in DATA
        return self._journal.secrets.opened_text(text, segment.marks, names, is_json=is_json)

    def _data(self, segment: Segment, names: frozenset[str]) -> dict[str, Any]:
        """The data of a segment, with the secrets of these names in clear."""
        return msgspec.json.decode(self._text(segment, names))

    def _asked(self, scope: str) -> int:
        """How often the engine has answered in this part of the turn."""
        count = 0
        while self._journal.recorded(f"{model_key(scope, count)}.0") is not None:
            count += 1
        return count

    def _schemas(self, shown: FrameAssembled) -> tuple[tuple[ToolSchema, ...], OutputSchema | None]:
        """The tools and the output schema of a recorded frame."""
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
        """The system text with the secrets of these names in clear."""
        if not names:
            return self._system(shown)
        segments = self._journal.state.views[shown.view][1]
        return "".join(self._text(each, names) for each in segments if each.kind not in BESIDE)

    def _system(self, shown: FrameAssembled) -> str:
        """The system text of a recorded frame."""
        kept = self._journal.views.get(shown.agent)
        if kept is not None and kept[1].digest == shown.view:
            return kept[1].text
        state = self._journal.state
        return system_text(state.views[shown.view][1], state.texts)


# Kinds of pieces in which secrets are opened, besides variables, and those that are JSON. Messages
# stay as they were heard, and declared text as it was written.
OPENED = (SOURCED | {"artifact", "input", "prompt"}) - {"context.history", "context.literal"}
DATA = frozenset({"variable", "artifact", "input", "context.artifact", "context.variables"})

NOTHING_SAID = Span(0, 0, 0, 0, digest=EMPTY)
NOTHING_GIVEN: tuple[tuple[Artifact, ...], ContextSlice] = ((), ContextSlice([]))
NO_SCHEMAS: tuple[tuple[ToolSchema, ...], OutputSchema | None] = ((), None)


def _context_messages(texts: Sequence[tuple[str, str]]) -> Iterator[Message]:
    """The context, inputs and prompt as messages, each with its heading."""
    for kinds in (CONTEXT, ("input",), ("prompt",)):
        text_of_kinds = "".join(text for kind, text in texts if kind in kinds)
        if text_of_kinds:
            yield Message(0, USER, text_of_kinds.removeprefix(spoken(USER, "")))


def _is_input(segment: Segment) -> bool:
    return segment.kind == "input" and segment.origin != INPUTS


def _as_shown(artifact: Artifact, item: dict[str, Any]) -> Artifact:
    shown = copy(artifact)
    force_setattr(shown, "payload", item["payload"])  # a copy, made for this engine
    return shown
