"""What `verify` finds in tables that were changed past the store."""

import re

import pytest

from tests.adapters.postgres.test_store_trouble import opened, pytestmark
from tests.adapters.postgres.test_trouble import execute
from turnloom.runtime.spec import VerifiedRun
from turnloom.testing.contracts.facts import TENANT, events, key

__all__ = ["pytestmark"]

# What is done to the first of two runs with the events 1 and 2, 3 and 4, 5 and 6; and the numbers
# in each problem that this is.
CHANGED = """
    UPDATE turnloom_batches SET data = convert_to(
        replace(convert_from(data, 'UTF8'), 'note 3', 'note X'), 'UTF8')
    WHERE run = 1 AND first = 3"""
SWAPPED = """
    UPDATE turnloom_batches AS ours SET data = theirs.data, digest = turnloom_digest(
        (SELECT digest FROM turnloom_batches WHERE run = 1 AND first = 3), theirs.data)
    FROM turnloom_batches AS theirs
    WHERE (ours.run, ours.first) = (1, 5) AND (theirs.run, theirs.first) = (2, 3)"""
DAMAGE = {
    "changed": (CHANGED, ["3 4"]),
    "swapped": (SWAPPED, ["5 3", "6 4"]),
    "first lost": ("DELETE FROM turnloom_batches WHERE run = 1 AND first = 1", ["1 2"]),
    "one lost": ("DELETE FROM turnloom_batches WHERE run = 1 AND first = 3", ["3 4"]),
    "last lost": ("DELETE FROM turnloom_batches WHERE run = 1 AND first = 5", ["5 6"]),
    "all lost": ("DELETE FROM turnloom_batches WHERE run = 1", ["1 6"]),
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_damage_is_found_where_it_is(postgres_url: str, damage: str) -> None:
    statement, numbers = DAMAGE[damage]
    async with opened(postgres_url) as store:
        for run in ("a", "b"):
            for after in (0, 2, 4):
                await store.log.append(key(run), events(run, 2, after), after)
        await execute(postgres_url, statement)
        damaged, sound = [each async for each in store.verifier.verify(TENANT)]
    assert (damaged.run, sound) == ("a", VerifiedRun("b", 6))
    assert [" ".join(re.findall(r"\d+", each)) for each in damaged.problems] == numbers
