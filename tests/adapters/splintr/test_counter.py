"""Tokens as OpenAI's models count them, and the estimate."""

import subprocess
import sys

import pytest

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
    with pytest.raises(UsageError, match="no vocabulary 'none_base'"):
        SplintrCounter("none_base")


def test_the_extra_is_named_when_it_is_missing() -> None:
    script = "import sys; sys.modules['splintr'] = None; import turnloom.adapters.splintr"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "UsageError: Counting tokens needs the package" in done.stderr
    assert 'pip install "turnloom[tokens]"' in done.stderr
