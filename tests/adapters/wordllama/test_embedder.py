"""The embedder whose model comes in a package."""

import subprocess
import sys

from turnloom.adapters.wordllama import WordLlamaEmbedder
from turnloom.assembly.logic.retrieval import unit
from turnloom.assembly.ports import Embedder
from turnloom.testing.contracts import EmbedderContract


class TestEmbedder(EmbedderContract):
    embedder = WordLlamaEmbedder()

    def fresh(self) -> Embedder:
        return self.embedder


async def test_meaning_counts_where_no_word_is_shared() -> None:
    texts = [
        "How do felines show contentment?",
        "Cats purr when content.",
        "The stock exchange crashed.",
    ]
    query, near, far = [unit(each) or [] for each in await WordLlamaEmbedder().embed(texts)]
    assert sum(a * b for a, b in zip(query, near, strict=True)) > 0.3
    assert sum(a * b for a, b in zip(query, far, strict=True)) < 0.1


def test_the_log_of_the_program_is_left_alone() -> None:
    script = """
import asyncio, logging
from turnloom.adapters.wordllama import WordLlamaEmbedder
asyncio.run(WordLlamaEmbedder().embed(["a"]))
print(logging.getLogger().handlers, logging.getLogger().level)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[] 30\n", "")


def test_the_extra_is_named_when_it_is_missing() -> None:
    script = "import sys; sys.modules['wordllama'] = None; "
    script += "from turnloom.adapters.wordllama import WordLlamaEmbedder; WordLlamaEmbedder()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "UsageError: Embeddings need the package" in done.stderr
    assert 'pip install "turnloom[embeddings]"' in done.stderr
