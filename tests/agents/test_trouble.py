"""What a refusal says about asking again."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from turnloom.agents.logic.trouble import asked_pause, may_pass, without_keys


class Refused(Exception):
    """A refusal as OpenAI's client raises it."""

    def __init__(self, status: int = 429, code: str = "", **headers: str) -> None:
        super().__init__("No.")
        self.status_code, self.code = status, code
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.response = SimpleNamespace(headers=named)


NOON, LATER = "Sun, 06 Nov 1994 12:00:00 GMT", "Sun, 06 Nov 1994 12:01:30 GMT"

HERE = datetime(1994, 11, 6, 12, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("asked", "sent", "seconds"),
    [
        ("", NOON, 0),
        ("2", NOON, 2),
        ("0.5", "", 0.5),
        (LATER, NOON, 90),
        (LATER, "", 30),
        (LATER, "noon", 30),
        (LATER, NOON.replace("GMT", "-0000"), 90),
        (LATER.replace("GMT", "-0000"), NOON, 90),
        ("soon", NOON, 0),
        ("nan", NOON, 0),
        ("inf", NOON, 0),
        ("9" * 400, NOON, 0),
    ],
)
def test_a_pause_is_asked_for_in_seconds_or_by_a_date(
    asked: str, sent: str, seconds: float
) -> None:
    assert asked_pause(Refused(retry_after=asked, date=sent), HERE) == seconds


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 529])
def test_some_refusals_may_pass(status: int) -> None:
    assert may_pass(Refused(status))


@pytest.mark.parametrize(
    "refusal", [Refused(400), Refused(302), Refused(429, "insufficient_quota")]
)
def test_others_are_for_good(refusal: Refused) -> None:
    assert not may_pass(refusal)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "Wrong API key: sk-live-9a8b7c6d",
            "Wrong API key: ⟨hidden:key⟩",
        ),
        ("invalid x-api-key: 'abc123def456'", "invalid x-api-key: '⟨hidden:key⟩'"),
        ("Bearer abc.def-123456 is wrong", "Bearer ⟨hidden:key⟩ is wrong"),
        ("sk-proj-****wxyz1234567 has expired", "⟨hidden:key⟩ has expired"),
    ],
)
def test_a_key_that_a_provider_repeats_is_hidden(said: str, told: str) -> None:
    assert without_keys(said) == told


@pytest.mark.parametrize(
    "said",
    [
        "The API key is missing. Set OPENAI_API_KEY: it is needed",
        "API key not valid. Please pass a valid API key.",
        "task-12345678901234 failed at model gpt-5-2026-01-01",
        "sketch_2026_final_version of skip-everything-that-is-long",
    ],
)
def test_what_only_speaks_of_keys_stays(said: str) -> None:
    assert without_keys(said) == said
