"""What a refusal says about asking again."""

from datetime import UTC, datetime
from types import SimpleNamespace

import anthropic
import httpx
import openai
import pytest

from turnloom.agents.logic.model_errors import asked_pause, is_too_large, may_pass, without_keys


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


# What providers say of a request that does not fit into the window of a model.
REFUSALS = [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000.",
    "Your input exceeds the context window of this model.",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "The input token count (9000) exceeds the maximum number of tokens allowed (8192).",
    "the request exceeds the available context size, try increasing it",
    "Please reduce the length of the messages or completion.",
    "Input is too long for requested model.",
]


@pytest.mark.parametrize("message", REFUSALS)
def test_a_request_that_does_not_fit_is_known_by_what_providers_say(message: str) -> None:
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    request = httpx.Request("POST", "http://127.0.0.1")
    response = httpx.Response(400, json=body, request=request)
    assert is_too_large(anthropic.BadRequestError(message, response=response, body=body))
    assert is_too_large(openai.BadRequestError(message, response=response, body=body["error"]))


def test_other_refusals_are_none_of_it() -> None:
    assert is_too_large(Refused(400, "context_length_exceeded"))
    assert not is_too_large(Refused(400, "invalid_value"))
    assert not is_too_large(Refused(429, "context_length_exceeded"))
    assert not is_too_large(ValueError("maximum context length"))
