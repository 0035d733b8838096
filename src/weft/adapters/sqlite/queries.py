"""Every statement that this adapter runs.

An event's key is `run number << 32 | seq`, so the events of a run stand beside each other in order,
and the first and the last of a run are found without an index of their own.
"""

from functools import cache

# Marks a file as ours ("WEFT"), and tells which schema it holds.
APPLICATION = 0x57454654
VERSION = 1

SCHEMA = (
    "CREATE TABLE runs (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE)",
    """CREATE TABLE events (
        pos INTEGER PRIMARY KEY, run INTEGER NOT NULL, id TEXT NOT NULL, data BLOB NOT NULL
    )""",
    "CREATE UNIQUE INDEX events_id ON events (run, id)",
    """CREATE TABLE inbox (
        n INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, id TEXT NOT NULL,
        message BLOB NOT NULL, UNIQUE (run, id)
    )""",
    "CREATE TABLE claims (run TEXT PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE snapshots (run TEXT PRIMARY KEY, seq INTEGER NOT NULL, state BLOB NOT NULL)",
    """CREATE VIEW log AS
        SELECT runs.id AS run, events.pos & 0xffffffff AS seq, events.id AS id,
            json_extract(CAST(data AS TEXT), '$.at') AS at,
            json_extract(CAST(data AS TEXT), '$.kind') AS kind,
            json_extract(CAST(data AS TEXT), '$.actor') AS actor,
            json_extract(CAST(data AS TEXT), '$.data') AS data
        FROM runs JOIN events ON events.run = runs.n ORDER BY events.pos""",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)

APPLICATION_ID = "PRAGMA application_id"
USER_VERSION = "PRAGMA user_version"
DATA_VERSION = "PRAGMA data_version"
USE_WAL = "PRAGMA journal_mode = WAL"
CHECKPOINT = "PRAGMA wal_checkpoint(PASSIVE)"
RESTART = "PRAGMA wal_checkpoint(RESTART)"
# A commit that changes nothing: it pays for the sync of a restarted WAL.
TOUCH = f"PRAGMA application_id = {APPLICATION}"
TRUNCATE = "PRAGMA wal_checkpoint(TRUNCATE)"
IS_EMPTY = "SELECT count(*) = 0 FROM sqlite_master"

# What every connection is told. Checkpoints are the background thread's, never a commit's.
SETTINGS = ("PRAGMA synchronous = NORMAL", "PRAGMA wal_autocheckpoint = 0")
READ_ONLY = "PRAGMA query_only = 1"

BEGIN = "BEGIN IMMEDIATE"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
SAVEPOINT = "SAVEPOINT one"
RELEASE = "RELEASE one"
ROLLBACK_ONE = "ROLLBACK TO one"

LOCATE_RUN = """
    SELECT n, (SELECT max(pos) FROM events WHERE pos > n << 32 AND pos < (n + 1) << 32)
    FROM runs WHERE id = ?"""
ADD_RUN = "INSERT INTO runs (id) VALUES (?)"
ADD_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?)"
EVENTS_BETWEEN = "SELECT data FROM events WHERE pos BETWEEN ? AND ? ORDER BY pos"
EVENTS_AFTER = """
    SELECT e.data FROM runs r
    CROSS JOIN events e ON e.pos > (r.n << 32) + ?2 AND e.pos < (r.n + 1) << 32
    WHERE r.id = ?1 ORDER BY e.pos LIMIT ?3"""
ENDS_BEFORE = """
    SELECT r.n, f.data, l.data FROM runs r
    CROSS JOIN events f ON f.pos = (r.n << 32) + 1
    CROSS JOIN events l ON l.pos = (
        SELECT max(pos) FROM events WHERE pos > r.n << 32 AND pos < (r.n + 1) << 32)
    WHERE r.n < ?1 ORDER BY r.n DESC LIMIT ?2"""
ENDS_OF = """
    SELECT f.data, l.data FROM runs r
    CROSS JOIN events f ON f.pos = (r.n << 32) + 1
    CROSS JOIN events l ON l.pos = (
        SELECT max(pos) FROM events WHERE pos > r.n << 32 AND pos < (r.n + 1) << 32)
    WHERE r.id = ?"""

ADD_MAIL = """
    INSERT INTO inbox (run, id, message) SELECT ?1, ?2, ?3
    WHERE NOT EXISTS (
        SELECT 1 FROM runs r JOIN events e ON e.run = r.n AND e.id = ?2 WHERE r.id = ?1)
    ON CONFLICT (run, id) DO NOTHING"""
DROP_CONSUMED_MAIL = """
    DELETE FROM inbox WHERE run = ?1 AND EXISTS (
        SELECT 1 FROM runs r JOIN events e ON e.run = r.n AND e.id = inbox.id WHERE r.id = ?1)"""
PENDING_MAIL = """
    SELECT id, message FROM inbox WHERE run = ?1 AND NOT EXISTS (
        SELECT 1 FROM runs r JOIN events e ON e.run = r.n AND e.id = inbox.id WHERE r.id = ?1)
    ORDER BY n"""
LAST_MAIL = "SELECT seq FROM sqlite_sequence WHERE name = 'inbox'"
MAIL_AFTER = "SELECT n, run FROM inbox WHERE n > ? ORDER BY n LIMIT ?"

CLAIMANT = "SELECT owner FROM claims WHERE run = ?"
CLAIM = "INSERT OR REPLACE INTO claims VALUES (?, ?)"
RELEASE_CLAIM = "DELETE FROM claims WHERE run = ? AND owner = ?"
RELEASE_OWNER = "DELETE FROM claims WHERE owner = ?"

SAVE_STATE = """
    INSERT INTO snapshots VALUES (?, ?, ?)
    ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, state = excluded.state
    WHERE excluded.seq >= snapshots.seq"""
LOAD_STATE = "SELECT seq, state FROM snapshots WHERE run = ?"


@cache
def add_events(count: int) -> str:
    """The statement that inserts so many events at once."""
    return f"{ADD_EVENT}{', (?, ?, ?, ?)' * (count - 1)}"
