"""Words find what meaning misses, and both together what either finds."""

from typing import Any

from turnloom.assembly.spec.retrieval import Document
from turnloom.testing.contracts.retrieval.samples import Collecting, ids, library


class WordsContract(Collecting):
    """What collections do that are matched by words; a suite of its own, as not every one is."""

    async def test_words_are_found_whatever_their_case(self) -> None:
        """A chunk that has all of them is worth 1, one that has the rarer ones more than others."""
        async with self.fresh("keyword") as search:
            texts = {"a": "The pump X-200 leaks.", "b": "The pump hums.", "c": "The Moon."}
            await search.add(Document(id, text) for id, text in texts.items())
            found = await search.search("pump x-200", min_relevance=0.01)
            assert [each.source_id for each in found] == ["a", "b"]
            assert found[0].score == 1.0 and 0 < found[1].score < 0.5
            assert await ids(search, "MOON", min_relevance=0.9) == ["c"]
            assert await ids(search, "pumps", min_relevance=0.01) == []
            for query in ('" OR * NEAR(', "_", "__ __", "content:", "-", "…"):
                assert await ids(search, query, min_relevance=0.01) == [], query

    async def test_words_are_found_wherever_they_stand_and_however_they_are_spelt(self) -> None:
        """Late in a long text, with letters of other alphabets, and joined by a low line."""
        async with self.fresh("keyword") as search:
            long = " ".join(f"word{n}" for n in range(200))
            texts = {"a": f"{long} needle", "b": "Die Straße ist lang.", "c": "The ﬁnal draft_plan"}
            texts["d"] = "ΟΔΥΣΣΕΥΣ sails home."
            await search.add(Document(id, text) for id, text in texts.items())
            asked = {"needle": "a", "Straße": "b", "STRAßE": "b", "ﬁnal": "c", "plan": "c"}
            for query, id in {**asked, "draft_plan": "c", "οδυσσευς": "d"}.items():
                assert await ids(search, query, min_relevance=0.9) == [id], query

    async def test_what_does_not_pass_counts_for_nothing(self) -> None:
        """How rare a word is goes by what passes the filters, and by nothing that is hidden."""
        asked: dict[str, Any] = {"filters": {"tenant": "t1"}, "top_k": 100, "min_relevance": 0.01}
        async with self.fresh("keyword") as search:
            await search.add(library(60))
            before = await search.search("cat sees moon", **asked)
            hidden = [Document(f"x{n}", "cat cat moon", {"tenant": "t9"}) for n in range(50)]
            await search.add(hidden)
            assert before and await search.search("cat sees moon", **asked) == before

    async def test_both_find_what_either_finds(self) -> None:
        """A score is never below that of the better of the two."""
        async with self.fresh("hybrid") as both, self.fresh() as meaning:
            async with self.fresh("keyword") as words:
                for search in (both, meaning, words):
                    await search.add(library(60))
                found = {each.source_id: each.score for each in await both.search("cat", 60, 0)}
                for search in (meaning, words):
                    for each in await search.search("cat", 60, 0.01):
                        assert found[each.source_id] >= each.score - 1e-5
                assert max(found.values()) <= 1

    async def test_words_of_what_is_gone_are_not_found(self) -> None:
        """Neither of what was replaced nor of what was removed."""
        async with self.fresh("keyword") as search:
            await search.add([Document("a", "red fish"), Document("b", "red fish")])
            await search.add([Document("a", "blue birds")])
            await search.remove(["b"])
            assert await ids(search, "fish", min_relevance=0.01) == []
            assert await ids(search, "birds", min_relevance=0.01) == ["a"]
