"""Writes to the board, alone or inside another write."""

from collections.abc import Sequence
from operator import itemgetter

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.writer import StoreWrite, Writer
from turnloom.board.logic.rows import content_digest, microseconds
from turnloom.board.spec import Consumption
from turnloom.board.spec.queries import ArtifactRow
from turnloom.errors import ArtifactExists


class AddToBoard(StoreWrite[None]):
    """Adds artifacts and consumptions, all or none.

    It may run inside another write: it refuses before it changes anything.
    """

    __slots__ = ("_consumptions", "_rows", "_tenant")

    def __init__(
        self, tenant: str, rows: Sequence[ArtifactRow], consumptions: Sequence[Consumption] = ()
    ) -> None:
        super().__init__()
        self._tenant = tenant
        self._rows = rows
        self._consumptions = consumptions

    def apply(self, writer: Writer) -> None:
        """Store what does not exist yet.

        Raises:
            ArtifactExists: an artifact exists with other content.
        """
        entries: list[tuple[int, int, int | None, int | None]] = []
        digests = {row.id: content_digest(row) for row in self._rows}
        for row in [row for row in self._rows if _is_missing(writer, row, digests[row.id])]:
            n = writer.execute(queries.ADD_ARTIFACT, (digests[row.id], *row[:-1])).lastrowid
            entries += [(term, row.at, n, row.opens) for term in row.terms]
        # In table order, so that a large batch touches each page once.
        writer.connection.executemany(queries.ADD_TERM, sorted(entries, key=itemgetter(0, 1, 2)))
        taken = [(self._tenant, *_values(each)) for each in self._consumptions]
        writer.connection.executemany(queries.ADD_CONSUMPTION, taken)


def _is_missing(writer: Writer, row: ArtifactRow, digest: str) -> bool:
    found = writer.execute(queries.DIGEST_OF, (row.tenant, row.id)).fetchone()
    if found and found[0] != digest:
        raise ArtifactExists(row.id)
    return not found


def _values(taken: Consumption) -> tuple[str, str, str, int, str, int]:
    at = microseconds(taken.at)
    return (taken.artifact, taken.subscription, taken.run, taken.turn, taken.agent, at)
