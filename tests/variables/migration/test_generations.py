"""Every generation of the file becomes today's shape, entry by entry."""

import pytest

from tests.variables.migration.checked import declarable, problems
from tests.variables.migration.generations import GENERATIONS, SEED_000, Generation
from turnloom.variables.logic.migration import migrate


@pytest.mark.parametrize("generation", GENERATIONS, ids=lambda each: each.title)
class TestGeneration:
    def test_becomes_todays_shape(self, generation: Generation) -> None:
        found = migrate(generation.before)
        assert found.changed
        assert found.value == {
            "context_variables": {
                "definitions": generation.definitions,
                "agents": generation.agents,
            }
        }

    def test_keeps_the_order(self, generation: Generation) -> None:
        parts = migrate(generation.before).value["context_variables"]
        assert list(parts["definitions"]) == list(generation.definitions)
        assert list(parts["agents"]) == list(generation.agents)

    def test_says_what_became_of_each_entry(self, generation: Generation) -> None:
        notes = migrate(generation.before).notes
        assert [(note.name, note.was, note.became) for note in notes] == generation.notes

    def test_gives_reasons_for_what_is_lost(self, generation: Generation) -> None:
        for note in migrate(generation.before).notes:
            assert note.lost or note.became != "lost", note

    def test_passes_todays_check(self, generation: Generation) -> None:
        assert problems(declarable(migrate(generation.before).value)) == []

    def test_stays_as_it_is_from_then_on(self, generation: Generation) -> None:
        once = migrate(generation.before)
        again = migrate(once.value)
        assert (again.value, again.changed) == (once.value, False)


def test_the_outer_key_makes_no_difference():
    wrapped = migrate({"context_variables": SEED_000})
    twice = migrate({"context_variables": {"context_variables": SEED_000}})
    assert wrapped[:4] == twice[:4] == migrate(SEED_000)[:4]


def test_the_note_of_seed_000():
    (note,) = migrate(SEED_000).notes
    assert note.where == "derived_variables[0]"
    assert note.lost == ()
    assert len(note.assumed) == 1 and "'boolean'" in note.assumed[0]
