"""Steps that agents take: what they are shown, what their answers change."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from tests.flow.scenes import Model, Work, Writer, facts, flow_of, note, play, taken
from turnloom import (
    AgentStep,
    Answer,
    AssembledContext,
    Budget,
    ContextFormat,
    DefinitionError,
    Document,
    Flow,
    Loom,
    Message,
    RagCollection,
    RetrievalResult,
    Selection,
    Task,
    ToolCall,
    UsageError,
    from_literal,
    from_retrieval,
    from_state,
    from_variables,
)
from turnloom.testing import InMemorySearch, ScriptedEngine


def heard(task: Task) -> list[tuple[str, str]]:
    """What an engine is told after the system text."""
    return [(each.author, each.text) for each in task.transcript]


class Verdict(BaseModel):
    good: bool
    why: str = "no reason"
    confidence: float | None = None


class Judge(Writer):
    """An agent whose answers have a form."""

    output_type = Verdict

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.given: list[tuple[Any, AssembledContext]] = []

    def apply(self, state: Work, answer: Verdict, context: AssembledContext) -> Any:
        self.given.append((answer, context))
        return {"text": answer.why, "number": state.number + 1}


# ------------------------------------------------------------------ what an agent is told


async def test_an_agent_hears_its_instructions_and_what_it_is_asked(app: Loom) -> None:
    model = Model("Three is a number.")
    outcome = await app.run(flow_of(note("a"), Writer(model)), Work(number=3))
    (task,) = model.tasks
    assert task.system == "You write." and heard(task) == [("user", "Write about 3.")]
    assert task.context.items == []
    assert outcome.state.text == "Three is a number."
    assert not await facts(app, outcome.run_id, "retrieval.searched")


async def test_context_comes_before_what_is_asked_in_declared_order(app: Loom) -> None:
    model = Model()
    sources = [
        from_state("number"),
        from_literal("Be kind."),
        from_state(lambda state: state.notes[0]),
    ]
    await app.run(flow_of(note("a"), Writer(model), context=sources), Work(number=3))
    assert model.tasks[0].system == "You write."
    assert heard(model.tasks[0]) == [
        ("user", "Context:\n3\n\nBe kind.\n\na"),
        ("user", "Write about 3."),
    ]


async def test_empty_context_is_not_mentioned(app: Loom) -> None:
    model, step = Model('{"good": true}'), Judge(Model('{"good": true}'))
    await app.run(flow_of(Judge(model), context=[from_state(lambda state: None)]))
    assert heard(model.tasks[0]) == [("user", "Write about 0.")]
    await app.run(flow_of(step, context=[from_state("text")]))
    assert step.given[0][1].is_empty


async def test_nothing_in_the_state_is_empty_text_beside_other_context(app: Loom) -> None:
    model = Model()
    sources = [from_literal("Be kind."), from_state(lambda state: None)]
    await app.run(flow_of(Writer(model), context=sources))
    assert heard(model.tasks[0])[0] == ("user", "Context:\nBe kind.")


async def test_a_step_says_itself_what_its_agent_hears(app: Loom) -> None:
    class Own(Writer):
        def build_messages(self, state: Work, context: AssembledContext) -> Sequence[Message]:
            before = [Message(0, "user", "Hello."), Message(0, "Own", "Hello!")]
            return [*before, Message(0, "user", f"{context.to_prompt_string()} {state.number}?")]

    model = Model()
    await app.run(flow_of(Own(model), context=[from_literal("Two or")]), Work(number=3))
    assert model.tasks[0].system == "You write."
    assert heard(model.tasks[0]) == [
        ("user", "Hello."),
        ("Own", "Hello!"),
        ("user", "Two or 3?"),
    ]


async def test_half_characters_in_what_an_agent_hears_are_spelled_out(app: Loom) -> None:
    class Asks(Writer):
        def user_prompt(self, state: Work) -> str:
            return "half \ud800"

    class Tells(Writer):
        def build_messages(self, state: Work, context: AssembledContext) -> Sequence[Message]:
            return [Message(0, "half \ud800", "half \ud800")]

    told: list[list[tuple[str, str]]] = []
    for step in (Asks, Tells):
        model = Model()
        await app.run(flow_of(step(model)))
        told.append(heard(model.tasks[0]))
    assert told == [[("user", r"half \ud800")], [(r"half \ud800", r"half \ud800")]]


async def test_a_budget_and_a_format_are_the_steps_own(app: Loom) -> None:
    model = Model('{"good": true}')
    step = Judge(model)
    sources = [
        from_literal("Short.", priority=2, title="Rule"),
        from_literal("Long and of little use. " * 20, priority=1),
    ]
    flow = flow_of(
        step, context=sources, budget=Budget(12), format=ContextFormat(header="## {title}\n")
    )
    await app.run(flow)
    ((_, context),) = step.given
    assert heard(model.tasks[0])[0][1].startswith("Context:\n## Rule\nShort.")
    assert [each.reason for each in context.withheld] == ["over_budget"] and context.tokens <= 12


async def test_variables_of_the_flow_are_shown_to_its_agents(app: Loom) -> None:
    variables = {
        "definitions": {
            "tone": {"type": "string", "source": {"type": "static", "value": "calm"}},
        },
        "agents": {"Writer": {"variables": ["tone"]}},
    }
    model = Model()
    flow = Flow("work", Work, variables=variables)
    await app.run(flow.start_with(Writer(model), context=[from_variables("tone")]))
    assert '- tone: "calm"' in model.tasks[0].system
    assert 'tone: "calm"' in heard(model.tasks[0])[0][1]


async def test_the_app_answers_for_a_step_without_an_engine() -> None:
    class Plain(AgentStep[Work]):
        model = "small"

        def user_prompt(self, state: Work) -> str:
            return "Say something."

        def apply(self, state: Work, answer: str, context: AssembledContext) -> Any:
            return {"text": answer}

    engine = ScriptedEngine({"Plain": ["Something."]})
    async with Loom(store="memory", engine=engine) as app:
        assert (await app.run(flow_of(Plain))).state.text == "Something."
    assert engine.calls[0].model == "small"


async def test_an_engine_is_a_function_a_method_or_an_object(app: Loom) -> None:
    async def shout(task: Task) -> Answer:
        return Answer("function")

    class ByFunction(Writer):
        engine = shout

        def __init__(self) -> None:
            pass

    class ByMethod(ByFunction):
        async def engine(self, task: Task) -> Answer:
            return Answer(f"method of {type(self).__name__}")

    for step, text in ((ByFunction, "function"), (ByMethod, "method of ByMethod")):
        assert (await app.run(flow_of(step))).state.text == text


async def test_a_selection_picks_who_answers(app: Loom) -> None:
    class Chooses(Writer):
        engines = {"left": Model("left"), "right": Model("right")}

        def __init__(self) -> None:
            pass

    select = Selection(candidates=("left", "right"), exclude=("left",))
    outcome = await app.run(flow_of(Chooses, select=select))
    assert outcome.state.text == "right"
    (made,) = await facts(app, outcome.run_id, "selection.made")
    assert made.chosen == "right"


# ------------------------------------------------------------------ retrieval


class Library(RagCollection):
    name = "flow-library"


async def test_a_search_is_made_once_with_exactly_what_is_declared(app: Loom) -> None:
    shelf, step = InMemorySearch(), Judge(Model("never"))
    shelf.seed(("Passage.", 0.9))
    app.register_collection(Library, shelf)
    source = from_retrieval(
        Library,
        query=lambda state: f"number {state.number}",
        top_k=3,
        min_relevance=0.5,
        filters={"year": 2026, "topic": lambda state: state.text},
    )
    outcome = await play(app, flow_of(step, context=[source], retry=2), Work(number=3, text="tea"))
    assert outcome.status == "failed" and len(await taken(app, outcome.run_id)) == 3
    assert shelf.searches == [("number 3", 6, 0.0, {"year": 2026, "topic": "tea"})]


async def test_passages_below_the_threshold_are_left_out_and_the_rest_is_sorted_and_cut(
    app: Loom,
) -> None:
    shelf, step = InMemorySearch(), Judge(Model('{"good": true}'))
    shelf.seed(*(RetrievalResult(f"{n}.", n / 10, f"d{n}") for n in (6, 9, 2, 8)))
    app.register_collection(Library, shelf)
    source = from_retrieval(Library, "numbers", top_k=2, min_relevance=0.5)
    await app.run(flow_of(step, context=[source]))
    ((_, context),) = step.given
    assert context.to_prompt_string() == "9.\n---\n8."
    found = [(each.score, each.source_id) for each in context.retrieval_results]
    assert found == [(0.9, "d9"), (0.8, "d8")]


async def test_nothing_found_and_nothing_asked_are_no_errors(app: Loom) -> None:
    shelf, model = InMemorySearch(), Model()
    app.register_collection(Library, shelf)
    sources = [from_retrieval(Library, "numbers"), from_retrieval(Library, lambda state: " ")]
    outcome = await app.run(flow_of(Writer(model), context=sources))
    assert outcome.status == "finished" and heard(model.tasks[0]) == [("user", "Write about 0.")]
    assert [each.query for each in shelf.searches] == ["numbers"]


async def test_by_default_the_embedder_says_what_is_relevant_and_the_rest_is_withheld() -> None:
    documents = [
        Document("leave", "Every employee has 30 days of vacation a year."),
        Document("printer", "The kitchen has coffee, and a bus stops outside twice a day."),
    ]
    source = from_retrieval(Library, "How many days of holiday do I get?")
    async with Loom(store="memory", vectors="memory") as app:
        await app.collection(Library).add(documents)
        outcome = await app.run(flow_of(step := Judge(Model('{"good": true}')), context=[source]))
        explained = await app.explain.turn(outcome.run_id, 1)
    ((_, context),) = step.given
    assert [each.source_id for each in context.retrieval_results] == ["leave"]
    (left_out,) = explained.withheld
    assert left_out.reason == "low_relevance" and left_out.detail.startswith("score 0.")


async def test_a_collection_without_documents_is_told_from_a_search_without_results() -> None:
    source = from_retrieval(Library, "tea", filters={"year": 2026})
    details: list[str] = []
    async with Loom(store="memory", vectors="memory") as app:
        for documents in ([], [Document("tea", "All about tea.", {"year": 1999})]):
            await app.collection(Library).add(documents)
            outcome = await app.run(flow_of(Writer(Model()), context=[source]))
            (nothing,) = (await app.explain.turn(outcome.run_id, 1)).withheld
            assert nothing.reason == "empty"
            details.append(nothing.detail)
    assert "no documents" in details[0] and "no documents" not in details[1]


async def test_a_run_whose_collection_cannot_be_opened_does_not_start(app: Loom) -> None:
    def missing() -> Any:
        raise UsageError("A package is missing.")

    app.register_collection(Library, missing)
    with pytest.raises(UsageError, match="flow-library"):
        await app.start(flow_of(Writer(Model()), context=[from_retrieval(Library, "tea")]))
    assert not await app.runs()


# ------------------------------------------------------------------ answers


async def test_a_step_gets_the_typed_answer_and_the_context(app: Loom) -> None:
    step = Judge(Model('{"good": true, "why": "it is short"}'))
    outcome = await app.run(flow_of(step, context=[from_literal("Be kind.")]), Work(number=1))
    ((answer, context),) = step.given
    assert answer == Verdict(good=True, why="it is short")
    assert context.to_prompt_string() == "Be kind." and not context.is_empty
    assert (outcome.state.text, outcome.state.number) == ("it is short", 2)


async def test_an_answer_that_does_not_fit_goes_back_with_the_problem(app: Loom) -> None:
    model = Model("Good!", '{"good": "perhaps"}', '{"good": false}')
    step = Judge(model)
    outcome = await app.run(flow_of(step))
    assert step.given[0][0] == Verdict(good=False) and outcome.state.text == "no reason"
    assert len(model.tasks) == 3
    first, second = model.tasks[2].exchanges
    assert first.text == "Good!" and first.problem
    assert "good" in second.problem


async def test_an_answer_that_never_fits_fails_with_its_text_kept(app: Loom) -> None:
    model = Model("Good, I would say!")
    outcome = await play(app, flow_of(Judge(model)))
    assert outcome.status == "failed" and len(model.tasks) == 4 and outcome.state == Work()
    failure = outcome.failure
    assert failure is not None and failure.error == "TooManyMistakes"
    assert failure.frame == "t1/frame"
    answered = await facts(app, outcome.run_id, "model.answered")
    assert [each.raw for each in answered] == ["Good, I would say!"] * 4


async def test_a_retry_is_a_turn_of_its_own(app: Loom) -> None:
    def fail_first(task: Task) -> str:
        if task.turn == 1:
            raise ConnectionError("no line")
        return "Here it is."

    outcome = await app.run(flow_of(Writer(Model(fail_first)), retry=1))
    assert outcome.state.text == "Here it is."
    (retried,) = await facts(app, outcome.run_id, "step.retried")
    assert (retried.error, retried.message) == ("ConnectionError", "no line")
    turns = await facts(app, outcome.run_id, "turn.finished")
    assert [each.status for each in turns] == ["failed", "done"]


async def test_a_script_may_fail_and_then_succeed(app: Loom) -> None:
    """It has a line for each call, also for those that fail."""
    engine = ScriptedEngine({"Writer": [ConnectionError("no line"), "Here it is."]})
    outcome = await app.run(flow_of(Writer(engine), retry=1))
    assert outcome.state.text == "Here it is."
    engine.assert_complete()


async def test_half_a_character_in_an_answer_fails_nothing(app: Loom) -> None:
    outcome = await app.run(flow_of(Writer(ScriptedEngine({"Writer": ["a\ud800b"]}))))
    assert outcome.state.text == "a\\ud800b"
    (answered,) = await facts(app, outcome.run_id, "model.answered")
    assert answered.replaced == 1


async def test_half_a_character_in_fixed_texts_is_told_and_fails_nothing(app: Loom) -> None:
    class Halved(Writer):
        def instructions(self) -> str:
            return "Be \udc00."

    engine = ScriptedEngine({"Halved": ["Here it is."]})
    with pytest.warns(UserWarning, match="lone surrogates"):
        flow = flow_of(Halved(engine), context=[from_literal("x\ud800y")])
        outcome = await app.run(flow)
    assert outcome.state.text == "Here it is."
    assert "x\\ud800y" in engine.calls[0].prompt and "Be \\udc00." in engine.calls[0].prompt


async def test_a_failure_of_an_agent_is_handled_by_its_type(app: Loom) -> None:
    def fail(task: Task) -> str:
        raise ConnectionError("no line")

    flow = flow_of(
        Writer(Model(fail)), on_failure={ConnectionError: note("wait")}, recover=True
    ).then(note("b"))
    assert (await app.run(flow)).state.notes == ["wait", "b"]


async def test_what_a_step_makes_of_an_answer_may_fail(app: Loom) -> None:
    class Breaks(Writer):
        def apply(self, state: Work, answer: Any, context: AssembledContext) -> Any:
            raise LookupError("no idea")

    outcome = await play(app, flow_of(Breaks(Model())))
    assert outcome.failure is not None and outcome.failure.error == "LookupError"
    assert outcome.failure.message == "no idea" and outcome.state == Work()


async def test_an_answer_may_say_how_sure_it_is(app: Loom) -> None:
    flow = flow_of(
        Judge(Model('{"good": true, "confidence": 0.4}')),
        require_confidence=0.5,
        on_low_confidence=note("check"),
    )
    assert (await app.run(flow)).state.notes == ["check"]


# ------------------------------------------------------------------ while it is made


class Streams:
    """An engine that says its answer piece by piece."""

    async def __call__(self, task: Task) -> Answer:
        for piece in ("Once ", "upon ", "a time."):
            task.say(piece)
        return Answer("Once upon a time.")


async def test_an_answer_is_heard_before_it_changes_anything(app: Loom) -> None:
    order: list[str] = []

    class Hears(Writer):
        def on_text(self, text: str) -> None:
            order.append(text)

        def apply(self, state: Work, answer: Any, context: AssembledContext) -> Any:
            order.append("applied")
            return {"text": answer}

    outcome = await app.run(flow_of(Hears(Streams())))
    assert order == ["Once ", "upon ", "a time.", "applied"]
    assert outcome.state.text == "Once upon a time."
    order.clear()
    await app.run(flow_of(Hears(Model("Whole."))))
    assert order == ["Whole.", "applied"]


async def test_who_cannot_hear_fails_the_step_and_changes_nothing(app: Loom) -> None:
    class Deaf(Writer):
        def on_text(self, text: str) -> None:
            raise OSError("the screen is gone")

    outcome = await play(app, flow_of(Deaf(Streams())))
    assert outcome.status == "failed" and outcome.state == Work()
    assert outcome.failure is not None
    assert (outcome.failure.error, outcome.failure.message) == ("OSError", "the screen is gone")


# ------------------------------------------------------------------ threads and tools


async def test_steps_of_one_thread_remember_what_was_said(app: Loom) -> None:
    class Talks(Writer):
        thread = "talk"

    class Alone(Writer):
        pass

    first, second, alone = Model("I am Ann."), Model("As I said."), Model()
    flow = (
        Flow("work", Work)
        .start_with(Talks(first), name="opens")
        .then(note("a", number=1))
        .then(Talks(second), name="closes")
        .then(Alone(alone))
    )
    await app.run(flow)
    assert heard(first.tasks[0]) == [("user", "Write about 0.")]
    assert heard(second.tasks[0]) == [
        ("user", "Write about 0."),
        ("opens", "I am Ann."),
        ("user", "Write about 1."),
    ]
    assert heard(alone.tasks[0]) == [("user", "Write about 1.")]


def weigh(item: str) -> int:
    """How heavy an item is."""
    return len(item)


def calls_tools(task: Task) -> Any:
    """Calls its tool until it is told to stop."""
    return Answer(calls=(ToolCall("weigh", {"item": "tea" * len(task.exchanges)}),))


async def test_an_agent_calls_its_tools(app: Loom) -> None:
    class Weighs(Writer):
        tools = (weigh,)

    def weigh_once(task: Task) -> Any:
        if not task.exchanges:
            return Answer(calls=(ToolCall("weigh", {"item": "teapot"}),))
        return json.dumps(task.exchanges[0].results[0].value)

    outcome = await app.run(flow_of(Weighs(Model(weigh_once))))
    assert outcome.state.text == "6"


async def test_tools_are_called_so_often_and_what_they_gave_is_kept(app: Loom) -> None:
    class Weighs(Writer):
        tools = (weigh,)
        max_tool_rounds = 2

    outcome = await play(app, flow_of(Weighs(Model(calls_tools))))
    assert outcome.failure is not None and outcome.failure.error == "TooManyRounds"
    returned = await facts(app, outcome.run_id, "tool.returned")
    assert [each.result for each in returned] == [0, 3]


@pytest.mark.parametrize("missing", ["user_prompt", "apply"])
def test_a_step_that_says_too_little_is_refused(missing: str) -> None:
    class Silent(Writer):
        pass

    setattr(Silent, missing, getattr(AgentStep, missing))
    with pytest.raises(DefinitionError) as refused:
        flow_of(Silent(Model())).to_mermaid()
    told = [each for each in refused.value.diagnostics if each.severity == "error"]
    assert [each.code for each in told] == ["W121"] and missing in str(told[0])
