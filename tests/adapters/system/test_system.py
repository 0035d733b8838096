"""Clock, chance and environment of this machine."""

from datetime import UTC, datetime, timedelta

import pytest

from turnloom.adapters.system import ALPHABET, SystemClock, SystemEntropy, SystemEnvironment
from turnloom.log.ports import Clock
from turnloom.variables.ports import Environment


def test_the_clock_is_aware_and_in_utc() -> None:
    clock: Clock = SystemClock()
    before = clock.now()
    assert before.tzinfo is UTC
    assert timedelta(0) <= clock.now() - before < timedelta(minutes=1)
    assert before > datetime(2025, 1, 1, tzinfo=UTC)


def test_tokens_are_words_of_130_bits_without_lookalikes() -> None:
    entropy = SystemEntropy()
    tokens = {entropy.token() for _ in range(2000)}
    assert len(tokens) == 2000
    assert {len(token) for token in tokens} == {26}
    assert set("".join(tokens)) == set(ALPHABET)
    assert len(ALPHABET) == 32
    assert not set("01lo") & set(ALPHABET)


def test_the_environment_is_read_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    environment: Environment = SystemEnvironment()
    assert environment.get("TURNLOOM_TEST_COLOUR") is None
    monkeypatch.setenv("TURNLOOM_TEST_COLOUR", "red")
    assert environment.get("TURNLOOM_TEST_COLOUR") == "red"
