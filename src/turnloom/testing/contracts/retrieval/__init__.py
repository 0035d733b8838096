"""What every collection does, and every embedder, counter of tokens and splitter of texts."""

from turnloom.testing.contracts.retrieval.filtering import FilteringContract
from turnloom.testing.contracts.retrieval.finding import FindingContract
from turnloom.testing.contracts.retrieval.keeping import KeepingContract
from turnloom.testing.contracts.retrieval.models import (
    EmbedderContract,
    SplitterContract,
    TokenCounterContract,
)
from turnloom.testing.contracts.retrieval.pruning import PruningContract
from turnloom.testing.contracts.retrieval.seeing import SeeingContract
from turnloom.testing.contracts.retrieval.tenants import TenantDocumentsContract
from turnloom.testing.contracts.retrieval.words import WordsContract

__all__ = [
    "EmbedderContract",
    "PruningContract",
    "SplitterContract",
    "TokenCounterContract",
    "VectorSearchContract",
    "WordsContract",
]


class VectorSearchContract(
    FindingContract, FilteringContract, SeeingContract, TenantDocumentsContract, KeepingContract
):
    """The suite for `VectorSearch`; what it tests is made of `EMBEDDER` and `SPLITTER`."""
