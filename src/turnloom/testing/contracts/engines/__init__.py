"""Contract suite for engines: whole runs against a model on loopback."""

from turnloom.testing.contracts.engines.answers import AnswersContract, EndingContract
from turnloom.testing.contracts.engines.failures import FailuresContract
from turnloom.testing.contracts.engines.stage import RETRIES
from turnloom.testing.contracts.engines.tools import CallingContract, ShowingContract


class EngineContract(
    AnswersContract, CallingContract, EndingContract, ShowingContract, FailuresContract
):
    """The suite for `Engine`: `fresh` returns an engine that calls the given model.

    Set `streams = False` for an engine that does not stream its answers.
    """


__all__ = ["RETRIES", "EndingContract", "EngineContract"]
