"""Embeddings by WordLlama. Its weights ship in the package, so nothing is downloaded."""

import logging
import os
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any

from anyio import to_thread

from turnloom.errors import UsageError

# The model in the package, and the size of its vectors.
MODEL = "l2_supercat"
DIMENSIONS = 256


class WordLlamaEmbedder:
    """Embeds texts with the model in the package, which is loaded on first use."""

    name = "wordllama"
    version = f"{MODEL}_{DIMENSIONS}"
    dimensions = DIMENSIONS
    # Unrelated texts score about 0, a question and its answer often 0.3.
    min_relevance = 0.2

    def __init__(self) -> None:
        if find_spec("wordllama") is None:
            raise UsageError(
                "Embeddings need the package 'wordllama', which is not installed. "
                'Install it with: pip install "turnloom[embeddings]"'
            )
        self._model: Any = None
        self._loading = Lock()

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector per text, in order."""
        return await to_thread.run_sync(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> list[list[float]]:
        """In a thread: the vectors of the model."""
        with self._loading:
            if self._model is None:
                self._model = _load()
        # The model's own `embed` also pads all texts to the longest and computes token offsets,
        # which doubles its time.
        encode = self._model.tokenizer.encode_batch_fast
        rows = self._model.embedding
        found = (each.ids for each in encode(texts, add_special_tokens=False))
        return [(rows[ids].sum(axis=0) / max(1, len(ids))).tolist() for ids in found]


def _load() -> Any:
    """Load the model from its package instead of a cache folder."""
    library = _import()
    model = library.WordLlama.load(
        config=MODEL,
        dim=DIMENSIONS,
        cache_dir=os.path.dirname(library.__file__),
        disable_download=True,
    )
    model.tokenizer.no_padding()
    return model


def _import() -> Any:
    """Import the library, and undo its changes to the root logger."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        return import_module("wordllama")
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
