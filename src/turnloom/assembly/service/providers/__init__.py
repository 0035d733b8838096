"""The providers that there are; they nest."""

from turnloom.assembly.service.providers.composite import CompositeProvider
from turnloom.assembly.service.providers.correlation import DefaultCorrelationProvider
from turnloom.assembly.service.providers.filtered import FilteredContextProvider
from turnloom.assembly.service.providers.redacting import RedactingProvider
from turnloom.assembly.service.providers.state import StateDelegatingProvider
from turnloom.assembly.service.providers.summary import SummaryProvider
from turnloom.assembly.service.providers.transcript import TranscriptProvider

__all__ = [
    "CompositeProvider",
    "DefaultCorrelationProvider",
    "FilteredContextProvider",
    "RedactingProvider",
    "StateDelegatingProvider",
    "SummaryProvider",
    "TranscriptProvider",
]
