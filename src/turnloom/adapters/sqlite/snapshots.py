"""Folded states in a SQLite file."""

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.database import Database
from turnloom.adapters.sqlite.writer import Write, Writer
from turnloom.log.spec import RunKey


class _Save(Write[None]):
    __slots__ = ("_run", "_values")

    def __init__(self, run: RunKey, seq: int, state: bytes) -> None:
        super().__init__()
        self._run = run
        self._values = (*run, seq, state)

    def apply(self, writer: Writer) -> None:
        writer.execute(queries.SAVE_STATE, self._values)
        writer.keep_ids(self._run)


class SqliteSnapshots:
    """The last folded state of each run."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, run: RunKey, seq: int, state: bytes) -> None:
        """Keep the state of a run as of `seq`, in place of an earlier one."""
        await self._database.write(_Save(run, seq, state))

    async def load(self, run: RunKey) -> tuple[int, bytes] | None:
        """The last state kept, with its position."""
        await self._database.ready()
        found = self._database.rows(queries.LOAD_STATE, *run)
        return found[0] if found else None
