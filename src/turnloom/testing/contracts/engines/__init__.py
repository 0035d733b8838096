"""What every engine does, in whole runs against a model on loopback."""

from turnloom.testing.contracts.engines.answers import AnswersContract, EndingContract
from turnloom.testing.contracts.engines.stage import RETRIES
from turnloom.testing.contracts.engines.tools import CallingContract, ShowingContract
from turnloom.testing.contracts.engines.trouble import TroubleContract


class EngineContract(
    AnswersContract, CallingContract, EndingContract, ShowingContract, TroubleContract
):
    """The suite for `Engine`: `fresh` gives one that asks the model it is given.

    An engine whose pieces cannot be heard says `streams = False`.
    """


__all__ = ["RETRIES", "EndingContract", "EngineContract"]
