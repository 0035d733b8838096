"""Collections in a SQLite file."""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from weft.adapters.sqlite.vectors import SqliteVectors
from weft.assembly.ports import VectorSearch
from weft.assembly.service import EmbeddingSearch
from weft.assembly.service.retrieval import space_of
from weft.assembly.spec.retrieval import Matching
from weft.testing.contracts import VectorSearchContract, WordsContract
from weft.testing.contracts.retrieval.samples import EMBEDDER, SPLITTER


def collection(path: Path, name: str = "library", matching: Matching = "vector") -> EmbeddingSearch:
    store = SqliteVectors(path, name, space_of(EMBEDDER))
    return EmbeddingSearch(store, EMBEDDER, SPLITTER, matching)


class TestCollections(VectorSearchContract, WordsContract):
    @asynccontextmanager
    async def fresh(self, matching: Matching = "vector") -> AsyncGenerator[VectorSearch, None]:
        with tempfile.TemporaryDirectory() as folder:
            search = collection(Path(folder) / "vectors.db", matching=matching)
            yield search
            await search.aclose()
