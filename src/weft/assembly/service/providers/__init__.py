"""The providers that there are; they nest."""

from weft.assembly.service.providers.composite import CompositeProvider
from weft.assembly.service.providers.correlation import DefaultCorrelationProvider
from weft.assembly.service.providers.filtered import FilteredContextProvider
from weft.assembly.service.providers.redacting import RedactingProvider
from weft.assembly.service.providers.state import StateDelegatingProvider
from weft.assembly.service.providers.summary import SummaryProvider
from weft.assembly.service.providers.transcript import TranscriptProvider

__all__ = [
    "CompositeProvider",
    "DefaultCorrelationProvider",
    "FilteredContextProvider",
    "RedactingProvider",
    "StateDelegatingProvider",
    "SummaryProvider",
    "TranscriptProvider",
]
