"""Secrets are masked by value, wherever a fact says something, and nowhere else."""

import json
from base64 import b64encode, urlsafe_b64encode
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnloom.agents.events import AgentText, QuestionAnswered, ToolReturned, TurnStarted
from turnloom.assembly.events import FrameAssembled, Segment, Span
from turnloom.conversation.events import ConsideredRule, RouteDecided
from turnloom.kernel.marks import Mark, mark
from turnloom.kernel.values import as_data, preview
from turnloom.variables.events import ContextLoaded, InitialValue, TimerSet
from turnloom.variables.logic.secrets import SHORTEST, Secrets


def test_a_secret_is_masked_wherever_something_is_said() -> None:
    secrets = Secrets({"pin": "hunter2", "all": {"a": ["deep-inside"]}})
    value = {"hunter2": ["x deep-inside y", 5, None, {"k": "hunter2"}]}
    assert secrets.mask(QuestionAnswered("q", value, "u1")).value == {
        "⟨secret:pin⟩": ["x ⟨secret:all⟩ y", 5, None, {"k": "⟨secret:pin⟩"}]
    }
    loaded = ContextLoaded((InitialValue("note", "environment", "hunter2!", "hunter2!"),))
    (masked,) = secrets.mask(loaded).values
    assert (masked.value, masked.raw) == ("⟨secret:pin⟩!", "⟨secret:pin⟩!")


@given(st.text("ab'\"\\\n\u00fc\u2028", min_size=SHORTEST), st.sampled_from(["", "'", '"', "'\""]))
def test_a_secret_is_found_in_data_in_pictures_and_the_other_way_round(
    text: str, near: str
) -> None:
    secrets = Secrets({"pin": text})
    said = f"{near} it is {text}."
    for form in (
        repr([said]),
        repr({"k": json.dumps([said])}),
        json.dumps(repr(said)),
        repr(as_data({"k": said})),
        json.dumps({"k": as_data([said])}),
    ):
        assert f"it is {mark('pin')}." in secrets.masked(form), form


def test_a_number_that_is_secret_is_masked_where_it_is_data_and_not_where_it_counts() -> None:
    secrets = Secrets({"pin": 4711, "rate": 12.25})
    value = {"pin": 4711, "deep": [[4711, 12.25]], "near": [47110, 4711.5, True, 10**5000]}
    masked = secrets.mask(ToolReturned(4711, "A", "t", value))
    near = value["near"]
    assert masked.result == {
        "pin": mark("pin"),
        "deep": [[mark("pin"), mark("rate")]],
        "near": near,
    }
    assert masked.turn == 4711
    assert secrets.mask(ToolReturned(1, "A", "t", 4711)).result == mark("pin")


def test_names_and_what_stands_for_bytes_stay_what_they_are() -> None:
    """A secret like a name, a year or a part of a digest must not lead the run astray."""
    secrets = Secrets({"a": "Asker", "y": "2026", "d": "beef"})
    at = datetime(2026, 1, 1, tzinfo=UTC)
    span = Span(1, 1, 1, 1, "beef")
    segments = (Segment("variable", "x", "beef", 1, "", "2026"),)
    for fact in (
        TurnStarted(1, "Asker"),
        TimerSet("2026", at),
        FrameAssembled(1, "Asker", "dead-beef", span, 1, "c", "beef", 0, segments),
        RouteDecided("user", "Asker", "why", (ConsideredRule(1, "Asker", True),)),
    ):
        assert secrets.mask(fact) == fact
    said = secrets.mask(AgentText(1, "Asker", "Asker met 2026"))
    assert (said.agent, said.text) == ("Asker", "⟨secret:a⟩ met ⟨secret:y⟩")


def test_a_secret_that_is_part_of_a_mark_does_not_spoil_it() -> None:
    secrets = Secrets({"word": "secret", "name": "word"})
    assert secrets.masked("⟨secret:word⟩ and secret") == "⟨secret:word⟩ and ⟨secret:word⟩"


def test_of_two_secrets_the_longer_one_is_masked() -> None:
    secrets = Secrets({"short": "pass", "long": "password"})
    assert secrets.masked("password pass") == "⟨secret:long⟩ ⟨secret:short⟩"


def test_a_secret_is_masked_as_python_writes_it() -> None:
    """Errors tell values so."""
    for secret in ("it's", 'say "it"', "tab\tnew\nline", "\u2028 back\\slash", "both ' and \""):
        secrets = Secrets({"x": secret})
        assert secrets.masked(str(KeyError(secret))).strip("'\"") == mark("x")
        assert secrets.masked(repr({"k": [secret]})).count(mark("x")) == 1


def test_a_secret_that_a_picture_cuts_off_is_masked_as_well() -> None:
    secret = "0123456789" * 20
    secrets = Secrets({"x": secret, "y": "word"})
    assert secrets.masked(preview(secret)) == f"'{mark('x')}…"
    assert secrets.masked(preview({"a": 1, "k": [secret]})) == f"{{'a': 1, 'k': ['{mark('x')}…"
    assert secrets.masked("a … 0123… b") == "a … 0123… b"
    assert secrets.masked("… word …") == f"… {mark('y')} …"


def test_only_the_secrets_that_are_asked_for_are_opened_and_only_where_marks_are_recorded() -> None:
    secrets = Secrets({"a": 'a"a', "b": {"k": 1}})
    text = f'- a: "{mark("a")}"\n- b: "{mark("b")}"'
    marks = secrets.marks_in(text)
    assert [(each.secret, each.start) for each in marks] == [("a", 6), ("b", 24)]
    assert (
        secrets.opened_text(text, marks, ["b"], is_json=True)
        == f'- a: "{mark("a")}"\n- b: {{"k":1}}'
    )
    assert secrets.opened_text(text, marks[:1], ["a", "b"], is_json=True) == (
        f'- a: "a\\"a"\n- b: "{mark("b")}"'
    )
    assert secrets.opened_text(text, [Mark("a", 7)], ["a"], is_json=True) == text


@pytest.mark.parametrize(
    ("is_json", "text", "opened"),
    [
        (True, '{"k":"say ⟨secret:a⟩"}', '{"k":"say a\\"a"}'),
        (False, "say ⟨secret:a⟩⟨secret:a⟩", 'say a"aa"a'),
        (True, '{"⟨secret:a⟩":"⟨secret:n⟩"}', '{"a\\"a":4711}'),
        (True, '{"⟨secret:n⟩":"pin ⟨secret:n⟩"}', '{"⟨secret:n⟩":"pin ⟨secret:n⟩"}'),
    ],
)
def test_a_secret_is_put_into_json_and_into_words(is_json: bool, text: str, opened: str) -> None:
    secrets = Secrets({"a": 'a"a', "n": 4711})
    marks = secrets.marks_in(text)
    assert secrets.opened_text(text, marks, ["a", "n"], is_json=is_json) == opened


def test_a_run_without_secrets_has_none() -> None:
    assert not Secrets({}) and not Secrets({"a": None})
    assert Secrets({}).masked("text") == "text"


TRICKY = "h/ü pässwort+1"


@given(st.sampled_from([TRICKY, "sk-live-9a8b7c6d", "a:b@c d%e"]), st.binary(max_size=4))
def test_a_secret_is_found_as_addresses_and_headers_carry_it(secret: str, around: bytes) -> None:
    secrets, data = Secrets({"x": secret}), secret.encode()
    for form in (
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        secret.upper(),
        data.hex(),
        data.hex().upper(),
        repr(data),
        b64encode(b"user:" + data).decode(),
        urlsafe_b64encode(around + data + around).decode(),
    ):
        masked = secrets.masked(f"401 for {form} at 12:00")
        assert mark("x") in masked and form not in masked


texts = st.text(max_size=30)


@given(st.text(min_size=SHORTEST, max_size=10), texts, texts)
def test_no_text_holds_a_secret_once_it_is_masked(secret: str, before: str, after: str) -> None:
    masked = Secrets({"x": secret}).masked(before + secret + after)
    assert secret not in masked.replace(mark("x"), "")
    assert Secrets({"x": secret}).masked(masked).count(mark("x")) >= 1


@given(st.recursive(st.none() | st.integers() | texts, lambda each: st.lists(each)))
def test_any_secret_can_be_kept(value: Any) -> None:
    Secrets({"x": value}).masked("text")
