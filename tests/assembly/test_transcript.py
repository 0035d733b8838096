"""A transcript is a view: what was said up to a moment, whatever is said later."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnloom.assembly.spec import Message, Transcript


def messages(count: int) -> list[Message]:
    return [Message(n + 1, "A" if n % 2 else "user", f"text {n}") for n in range(count)]


@given(
    st.integers(0, 6),
    st.integers(0, 4),
    st.none() | st.integers(-9, 9),
    st.none() | st.integers(-9, 9),
    st.none() | st.integers(-3, 3).filter(bool),
)
def test_it_is_like_the_list_of_that_moment_after_more_was_said(
    length: int, more: int, start: int | None, stop: int | None, step: int | None
) -> None:
    behind = messages(length)
    then, transcript = list(behind), Transcript(behind, length)
    behind += messages(more)
    assert list(transcript) == then
    assert len(transcript) == length
    assert transcript[start:stop:step] == then[start:stop:step]
    assert list(reversed(transcript)) == then[::-1]
    for index in range(-length, length):
        assert transcript[index] == then[index]
    for index in (length, -length - 1):
        with pytest.raises(IndexError):
            transcript[index]


def test_without_a_length_it_holds_what_there_is_now() -> None:
    behind = messages(2)
    transcript = Transcript(behind)
    behind.append(Message(3, "A", "later"))
    assert len(transcript) == 2
    assert behind[2] not in transcript
    assert behind[1] in transcript
    assert transcript.index(behind[1]) == 1


def test_it_is_no_copy() -> None:
    behind = messages(100_000)
    assert Transcript(behind, 99_999)[-1] is behind[99_998]
