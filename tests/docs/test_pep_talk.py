"""The example of a context provider: what its agent is shown, and what the log tells of that."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.console import run
from tests.docs.markdown import ROOT
from tests.support.warm import Warm
from turnloom import Loom
from turnloom.explain.spec.turn import TurnExplained

WINS = ("win-lamp", "win-kettle", "win-socks")  # the newest first
NOTES = ("Margin is 61 %", "Their buyer is leaving")


class Played(NamedTuple):
    """What the example printed in each of two runs of it, and where it left its log."""

    folder: Path
    printed: tuple[str, str]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, warm: Warm) -> Played:
    folder, command = tmp_path_factory.mktemp("pep"), f"python {ROOT / 'examples/pep_talk.py'}"
    return Played(folder, (run(command, folder, warm), run(command, folder, warm)))


async def explained(folder: Path) -> TurnExplained:
    """The turn of the run that was begun last in a folder, from the log alone."""
    async with Loom(store=str(folder / ".turnloom" / "turnloom.db")) as app:
        latest, *_ = await app.runs()
        turn = await app.explain.turn(latest.run, 1)
    assert isinstance(turn, TurnExplained)
    return turn


async def test_the_agent_is_shown_wins_without_notes(played: Played) -> None:
    turn = await explained(played.folder)
    assert turn.verified, turn.doubts
    for win in WINS:
        (item,) = (each for each in turn.segments if f"artifact {win};" in each.reason)
        assert '"tagline"' in item.text and item.text in turn.prompt
        assert "private_notes" not in item.text
    for note in NOTES:
        assert note not in turn.prompt + "".join(played.printed)


async def test_every_item_has_its_provider_its_artifact_and_its_redaction(played: Played) -> None:
    turn = await explained(played.folder)
    items = [(each.origin, each.reason) for each in turn.segments if each.kind == "artifact"]
    assert items == [
        ("RecentWinsProvider", f"artifact {win}; without private_notes") for win in WINS
    ]
    redacted = [(each.origin, each.reason, each.detail) for each in turn.withheld]
    assert redacted == [
        (f"artifact {win}.private_notes", "redacted", "RecentWinsProvider") for win in WINS
    ]


def test_it_can_be_run_again(played: Played) -> None:
    first, again = (each.partition("\n\nTurn 1 of pep_talk_lead")[0] for each in played.printed)
    assert first == again
    assert first.endswith("Umbrella: it never turns inside out! Sign by Friday.")
