"""Digests: the same everywhere, and different for everything that differs."""

from hypothesis import given
from hypothesis import strategies as st

from turnloom.kernel.digests import chain_digest, digest, fingerprint

any_text = st.text(st.characters(exclude_categories=()), max_size=30)


def test_digests_are_the_same_on_every_machine() -> None:
    assert digest("") == "cae66941d9efbd404e4d88758ea67670"
    assert chain_digest("a", "b") == "c04e17957d4ca3123b3afdaab02e4023"
    assert fingerprint("a", "b") == (
        "5a38ad4035194450cb9134cf83b30177f509c6c6b0e4edc65ab485966016556d"
    )


@given(any_text, any_text)
def test_texts_have_equal_digests_only_if_they_are_equal(a: str, b: str) -> None:
    assert (digest(a) == digest(b)) == (a == b)


@given(st.lists(any_text, max_size=4), st.lists(any_text, max_size=4))
def test_chains_are_equal_only_if_every_part_and_the_order_are(a: list[str], b: list[str]) -> None:
    assert (chain_digest(*a) == chain_digest(*b)) == (a == b)


def test_where_one_part_ends_and_the_next_begins_matters() -> None:
    assert chain_digest("a\nb") != chain_digest("a", "b")
    assert chain_digest("a", "") != chain_digest("a")
    assert chain_digest("1:a") != chain_digest("a")
