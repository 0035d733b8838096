"""Draws from Beta distributions: distributed as they should be, and the same everywhere."""

from math import sqrt
from statistics import mean, pvariance

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from turnloom.guards.logic.selection import UniformDraws, draw_beta

# How many standard errors a sample may be off; one in millions is.
OFF = 5.5
MANY = 1500

shapes = st.floats(0.2, 60.0)


@settings(max_examples=6)
@example(0.2, 0.2, "").via("both below one")
@example(0.5, 40.0, "").via("one below one")
@example(1.0, 1.0, "").via("even")
@example(60.0, 3.0, "").via("both above one")
@given(alpha=shapes, beta=shapes, name=st.text(max_size=5))
def test_draws_have_the_mean_and_the_variance_of_their_distribution(
    alpha: float, beta: float, name: str
) -> None:
    stream = UniformDraws(name)
    drawn = [draw_beta(alpha, beta, stream) for _ in range(MANY)]
    total = alpha + beta
    expected, variance = alpha / total, alpha * beta / (total * total * (total + 1))
    assert abs(mean(drawn) - expected) < OFF * sqrt(variance / MANY)
    # The variance of a sample's variance follows from the fourth moment, which a Beta bounds.
    assert pvariance(drawn) == pytest.approx(variance, rel=0.45)


@given(alpha=st.floats(1e-12, 1e7), beta=st.floats(1e-12, 1e7))
def test_every_draw_is_a_share(alpha: float, beta: float) -> None:
    assert 0.0 <= draw_beta(alpha, beta, UniformDraws("any")) <= 1.0


def test_two_parts_too_small_to_be_told_are_even() -> None:
    assert draw_beta(1e-12, 1e-12, UniformDraws("small")) == 0.5


def test_a_stream_is_even_and_never_at_its_ends() -> None:
    stream = UniformDraws("even")
    drawn = [stream.next() for _ in range(10_000)]
    assert 0 < min(drawn) < 0.001 and 0.999 < max(drawn) < 1
    tenths = [sum(n / 10 <= each < (n + 1) / 10 for each in drawn) for n in range(10)]
    assert all(880 < each < 1120 for each in tenths)


def test_names_are_not_joined() -> None:
    assert UniformDraws("ab", "c").next() != UniformDraws("a", "bc").next()
    assert UniformDraws("a", "b").next() == UniformDraws("a", "b").next()


def test_draws_are_the_same_on_every_machine() -> None:
    """These numbers must never change: logs hold choices that follow from them."""
    drawn = [draw_beta(2, 2, UniformDraws("seed", str(n))) for n in range(3)]
    small = [draw_beta(0.5, 7.25, UniformDraws("seed", str(n))) for n in range(3)]
    assert [*drawn, *small] == PINNED


PINNED = [
    0.28274489356788635,
    0.6871441806074473,
    0.7333731632953389,
    0.042375084460352735,
    0.08685882849269388,
    0.012228065228257985,
]
