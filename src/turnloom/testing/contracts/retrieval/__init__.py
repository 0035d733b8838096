"""Contract suites for collections, embedders, token counters and splitters."""

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
    """The suite for `VectorSearch`; `fresh` makes collections with `EMBEDDER` and `SPLITTER`."""
