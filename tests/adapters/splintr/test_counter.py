"""Tokens as OpenAI's models count them, and the estimate."""

from tests.support.missing import refused_without
from tests.support.raising import raising
from turnloom.adapters.splintr import SplintrCounter
from turnloom.assembly.logic.retrieval import Estimate
from turnloom.assembly.ports import TokenCounter
from turnloom.errors import UsageError
from turnloom.testing.contracts import TokenCounterContract


class TestCounter(TokenCounterContract):
    counter = SplintrCounter()

    def fresh(self) -> TokenCounter:
        return self.counter


class TestEstimate(TokenCounterContract):
    def fresh(self) -> TokenCounter:
        return Estimate()


def test_counts_are_those_of_the_vocabulary() -> None:
    counter = SplintrCounter()
    assert counter.name == "o200k_base"
    assert counter.count("hello world") == 2
    assert counter.count("antidisestablishmentarianism") == 6
    assert counter.count("<|endoftext|>") == 7
    assert Estimate().name == "characters/4"
    assert Estimate().count("12345") == 2


def test_an_unknown_vocabulary_is_refused() -> None:
    with raising(UsageError, "'none_base'"):
        SplintrCounter("none_base")


def test_the_extra_is_named_when_it_is_missing() -> None:
    said = str(refused_without("splintr", "turnloom.adapters.splintr"))
    assert 'pip install "turnloom[tokens]"' in said
