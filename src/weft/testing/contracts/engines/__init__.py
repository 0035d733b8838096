"""What every engine does, in whole runs against a model on loopback."""

from weft.testing.contracts.engines.answers import AnswersContract
from weft.testing.contracts.engines.calling import CallingContract
from weft.testing.contracts.engines.showing import ShowingContract
from weft.testing.contracts.engines.stage import RETRIES
from weft.testing.contracts.engines.trouble import TroubleContract


class EngineContract(AnswersContract, CallingContract, ShowingContract, TroubleContract):
    """The suite for `Engine`: `fresh` gives one that asks the model it is given.

    An engine whose pieces cannot be heard says `streams = False`.
    """


__all__ = ["RETRIES", "EngineContract"]
