"""Loop detection at work: turns are compared at their end, and what is done is on record."""

from collections.abc import Sequence

from turnloom.guards.events import LoopChecked
from turnloom.guards.logic.looping import detect, entry_of, needs_similarity, similarity
from turnloom.guards.logic.recovering import recover
from turnloom.guards.spec import Entry, LoopDetection
from turnloom.kernel.contained import named
from turnloom.kernel.values import said
from turnloom.log.spec import Fact
from turnloom.runs.brief import Brief
from turnloom.runtime.service.journal import Journal
from turnloom.runtime.spec import Loaded


async def check_turn(journal: Journal, loaded: Loaded, brief: Brief) -> None:
    """Compare a turn that is about to end with those before it, and do what is to be done."""
    detection, state = journal.guards.loop_detection, journal.state
    if detection is None:
        return
    before, number = state.guards.entries, brief.turn
    turn = state.open[number]
    inputs = [each.payload for each in brief.inputs]
    facts = [event.data for event in turn.recorded.values()]
    entry = entry_of(number, turn.agent, facts, inputs, before)
    entries = [*before, entry]
    others = journal.workflow.alternatives(state)

    async def effect() -> Sequence[Fact]:
        checked = await _checked(detection, entries, loaded)
        verdict = detect(detection, entries, checked.similarity)
        if not verdict.is_loop:
            return (checked,)
        return checked, recover(detection, state.guards, verdict, others)

    await journal.once(f"t{number}/loop", effect)


async def _checked(
    detection: LoopDetection, entries: Sequence[Entry], loaded: Loaded
) -> LoopChecked:
    """The last of the turns, and how much alike what they said is, if that has to be known."""
    latest, embedder = entries[-1], loaded.embedder
    if embedder is None or not needs_similarity(detection, entries):
        return LoopChecked(latest)
    name = f"{embedder.name}@{embedder.version}"
    try:
        vectors = await embedder.embed([each.output for each in entries[-detection.window :]])
        return LoopChecked(latest, similarity(vectors), name)
    except Exception as error:  # noqa: BLE001 - recorded: nothing is known of how alike they are
        return LoopChecked(latest, None, name, f"{named(error)}: {said(error)}")
