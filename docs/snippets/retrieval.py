"""A collection: declared, filled and searched."""

import asyncio

from turnloom import Chunking, Document, Loom, RagCollection


class Handbook(RagCollection):
    name = "handbook"
    chunking = Chunking(tokens=200, overlap=20)
    matching = "hybrid"


LEAVE = "Everybody has thirty days of paid holiday a year."
TRAVEL = "Hotels are paid up to 120 euros a night.\n\nForm T-17 is for expenses abroad."


async def main() -> None:
    async with Loom(store="memory") as app:
        handbook = app.collection(Handbook)
        documents = [
            Document("leave", LEAVE, {"team": "people"}),
            Document("travel", TRAVEL, {"team": "finance"}),
        ]
        print(await handbook.add(documents))
        print(await handbook.add(documents))
        for query, filters in (
            ("How much vacation do I get?", {}),
            ("Where is T-17?", {"team": "finance"}),
            ("Where is T-17?", {"team": "people"}),
        ):
            found = await handbook.search(query, top_k=1, min_relevance=0.2, filters=filters)
            print(query, [(each.source_id, round(each.score, 2)) for each in found])


asyncio.run(main())
