"""Text for terminals: nothing in it can steer one."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnloom.explain.spec.text import duration, one_line, table, visible


@given(st.text(st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp", "L"])))
def test_no_control_character_is_left(text: str) -> None:
    shown = visible(text)
    assert not any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 for c in shown)
    assert not any(c in "\u202a\u202e\u2066\u2069\u2028\u200f" for c in shown)
    shown.encode()
    assert visible(shown) == shown


def test_text_without_control_characters_is_left_alone() -> None:
    text = "Grüße, 世界 👩‍👩‍👧 [bold]\n\tx"
    assert visible(text) == text
    assert one_line("a\nb\x1b" + "c" * 100, 10) == "a⏎b\\x1bcc…"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.0123, "12 ms"), (1.25, "1.2 s"), (61, "1 min 1 s"), (7322, "2 h 2 min"), (None, "")],
)
def test_durations_read_well(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said
    assert duration(timedelta(days=1).total_seconds()) == "24 h 0 min"


def test_columns_stand_under_each_other() -> None:
    assert table([("a", "bbb"), ("cc", "d")]) == ["a   bbb", "cc  d"]
    assert table([]) == []
