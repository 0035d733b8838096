"""What every collection does, and every embedder, counter of tokens and splitter of texts."""

from turnloom.testing.contracts.retrieval.models import (
    EmbedderContract,
    SplitterContract,
    TokenCounterContract,
)
from turnloom.testing.contracts.retrieval.pruning import PruningContract
from turnloom.testing.contracts.retrieval.searching import (
    CollectionDocumentsContract,
    CollectionSearchContract,
    FilteringContract,
    WordsContract,
)
from turnloom.testing.contracts.retrieval.visibility import (
    CollectionVisibilityContract,
    TenantDocumentsContract,
)

__all__ = [
    "EmbedderContract",
    "PruningContract",
    "SplitterContract",
    "TokenCounterContract",
    "VectorSearchContract",
    "WordsContract",
]


class VectorSearchContract(
    CollectionSearchContract,
    FilteringContract,
    CollectionVisibilityContract,
    TenantDocumentsContract,
    CollectionDocumentsContract,
):
    """The suite for `VectorSearch`; what it tests is made of `EMBEDDER` and `SPLITTER`."""
