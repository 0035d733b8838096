"""What is put on a board, inside a transaction that may hold more."""

from collections.abc import Iterable
from operator import itemgetter

from weft.adapters.sqlite import queries
from weft.adapters.sqlite.writer import Writer
from weft.board.logic.rows import microseconds
from weft.board.spec import Consumption
from weft.board.spec.index import Row
from weft.errors import ArtifactExists


def keep_rows(writer: Writer, rows: Iterable[Row]) -> None:
    """Keep artifacts inside the writer's transaction, beside what else it writes; a refusal comes
    before any change.

    Raises:
        ArtifactExists: one is there with other content.
    """
    entries: list[tuple[int, int, int | None, int | None]] = []
    for row in [row for row in rows if _is_missing(writer, row)]:
        n = writer.execute(queries.ADD_ARTIFACT, row[:-1]).lastrowid
        entries += [(term, row.at, n, row.opens) for term in row.terms]
    # In the order of the table, so that many at once touch each page of it once.
    writer.connection.executemany(queries.ADD_TERM, sorted(entries, key=itemgetter(0, 1, 2)))


def keep_consumptions(writer: Writer, consumptions: Iterable[Consumption]) -> None:
    """Keep who took what inside the writer's transaction, beside what else it writes."""
    writer.connection.executemany(
        queries.ADD_CONSUMPTION,
        [
            (
                each.artifact,
                each.subscription,
                each.run,
                each.turn,
                each.agent,
                microseconds(each.at),
            )
            for each in consumptions
        ],
    )


def _is_missing(writer: Writer, row: Row) -> bool:
    found = writer.execute(queries.DIGEST_OF, (row.id,)).fetchone()
    if found and found[0] != row.digest:
        raise ArtifactExists(row.id)
    return not found
