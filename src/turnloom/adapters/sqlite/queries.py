"""All SQL statements of this adapter.

Each append is one row in `batches`, with its events as lines of JSON. Its key is `run number << 32
| seq of the first event`, and `last` is the same for the last event. So the batches of a run are
adjacent and ordered, and every position is found by the primary key. Event ids have no index:
writers cache them, and `ids` stores those of long runs up to a position.
"""

# Marks a file as a store ("LOOM"), and the version of its schema: the last one of `schema/`.
APPLICATION = 0x4C4F4F4D
VERSION = 16

APPLICATION_ID = "PRAGMA application_id"
USER_VERSION = "PRAGMA user_version"
SET_APPLICATION = f"PRAGMA application_id = {APPLICATION}"
SET_VERSION = "PRAGMA user_version = {version:d}"
DATA_VERSION = "PRAGMA data_version"
USE_WAL = "PRAGMA journal_mode = WAL"
# Allows the file to shrink when runs are removed. It must be set before the first table.
CAN_SHRINK = "PRAGMA auto_vacuum = INCREMENTAL"
FREE_PAGES = "PRAGMA freelist_count"
GIVE_BACK = "PRAGMA incremental_vacuum({pages})"
CHECKPOINT = "PRAGMA wal_checkpoint(PASSIVE)"
# A commit without changes: it pays for the sync of a restarted WAL.
TOUCH = SET_APPLICATION
TRUNCATE = "PRAGMA wal_checkpoint(TRUNCATE)"
IS_EMPTY = "SELECT count(*) = 0 FROM sqlite_master"

# Settings of every connection. Only the background thread makes checkpoints. Deleted content is
# overwritten, since it may be personal data.
SETTINGS = (
    "PRAGMA synchronous = NORMAL",
    "PRAGMA wal_autocheckpoint = 0",
    "PRAGMA secure_delete = ON",
)
# Commits survive a power failure.
SYNCED = "PRAGMA synchronous = FULL"
# The cache size of writers in KiB: enough for the last pages of many runs.
LARGE_CACHE = "PRAGMA cache_size = -32000"
READ_ONLY = "PRAGMA query_only = 1"

BEGIN = "BEGIN IMMEDIATE"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
SAVEPOINT = "SAVEPOINT one"
RELEASE = "RELEASE one"
ROLLBACK_ONE = "ROLLBACK TO one"
SAVEPOINT_COPY = "SAVEPOINT copy"
RELEASE_COPY = "RELEASE copy"
ROLLBACK_COPY = "ROLLBACK TO copy"

LOCATE_RUN = """
    SELECT r.n, r.status, b.last, b.digest FROM runs r LEFT JOIN batches b ON b.pos = (
        SELECT max(pos) FROM batches WHERE pos > r.n << 32 AND pos < (r.n + 1) << 32)
    WHERE r.tenant = ? AND r.id = ?"""
ADD_RUN = """
    INSERT INTO runs (tenant, id, workflow, user, started, status, ended)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""
SET_STATUS = "UPDATE runs SET ended = ?, status = ? WHERE n = ?"
NUMBER_OF = "SELECT n FROM runs WHERE tenant = ? AND id = ?"
# Adds nothing if the claim with this fence has ended.
ADD_BATCH = """
    INSERT INTO batches SELECT ?1, ?2, ?3, ?4
    WHERE ?5 IS NULL OR EXISTS (SELECT 1 FROM claims WHERE fence = ?5)"""
BATCHES_BETWEEN = "SELECT CAST(data AS BLOB) FROM batches WHERE pos > ? AND pos <= ? ORDER BY pos"
# Starts at the batch that contains the event after the position, or else at the next one. Empty if
# the run ends before.
BATCHES_AFTER = """
    SELECT b.pos & 0xffffffff, b.last & 0xffffffff, CAST(b.data AS BLOB) FROM runs r
    CROSS JOIN batches b ON b.pos < (r.n + 1) << 32 AND b.pos >= coalesce((
        SELECT max(pos) FROM batches WHERE pos > r.n << 32 AND pos <= (r.n << 32) + ?3 + 1),
        r.n << 32)
    WHERE r.tenant = ?1 AND r.id = ?2 AND b.last > (r.n << 32) + ?3 ORDER BY b.pos"""
# The batches of a run that hold its positions from one up to another.
BATCHES_WITHIN = """
    SELECT pos & 0xffffffff, last & 0xffffffff, CAST(data AS BLOB) FROM batches
    WHERE pos >= coalesce((
            SELECT max(pos) FROM batches WHERE pos > ?1 << 32 AND pos <= (?1 << 32) + ?2), 0)
        AND pos > ?1 << 32 AND pos <= (?1 << 32) + ?3 AND last >= (?1 << 32) + ?2 ORDER BY pos"""
# The batch of a run that holds a position, or else the one before.
BATCH_AT = """
    SELECT last & 0xffffffff, digest FROM batches WHERE pos = (
        SELECT max(pos) FROM batches WHERE pos > ?1 << 32 AND pos <= (?1 << 32) + ?2)"""
POSITION_OF = """
    SELECT coalesce(max(last), 0) & 0xffffffff FROM batches
    WHERE pos > ?1 << 32 AND pos < (?1 + 1) << 32"""
SEGMENTS_OF = "SELECT above, upto, source FROM branches WHERE n = ? ORDER BY above"
ADD_SEGMENT = "INSERT INTO branches (n, above, upto, source) VALUES (?, ?, ?, ?)"
FOUND_BY = "SELECT workflow, user FROM runs WHERE n = ?"
# The runs that hold events of a run.
BRANCHES_OF = """
    SELECT DISTINCT r.id FROM branches b JOIN runs r ON r.n = b.n WHERE b.source = ?"""
KEEP_IDS = "INSERT OR REPLACE INTO ids VALUES (?, ?, ?)"
KEPT_IDS = "SELECT known, CAST(data AS BLOB) FROM ids WHERE n = ?"
# The first batch is NULL if a run lost its beginning.
_BOTH_ENDS = "SELECT r.n, r.id, CAST(f.data AS BLOB), CAST(l.data AS BLOB)"
_OF_RUNS = """
    FROM runs r
    LEFT JOIN batches f ON f.pos = (
        coalesce((SELECT source FROM branches WHERE n = r.n AND above = 0), r.n) << 32) + 1
    LEFT JOIN batches l ON l.pos = (
        SELECT max(pos) FROM batches WHERE pos > r.n << 32 AND pos < (r.n + 1) << 32)"""
_ENDS = f"{_BOTH_ENDS} {_OF_RUNS}"
ENDS_CHOSEN = f"{_BOTH_ENDS}, r.started {_OF_RUNS} WHERE r.n IN ({{chosen}}) ORDER BY r.n DESC"
CHOSEN = """
    SELECT n FROM runs WHERE tenant = :tenant AND n < :before{conditions}
    ORDER BY n DESC LIMIT :most"""
# Written out, as a partial index is followed only then.
OF_STATUS = "status = '{status}'"
# Follows the index of unfinished runs.
OF_UNFINISHED = "status = 'unfinished' AND ended IS NULL"
# The last runs of several ways to choose them, each of which follows an index.
CHOSEN_EITHER = "SELECT n FROM ({ways}) ORDER BY n DESC LIMIT :most"
ONE_WAY = "SELECT n FROM ({chosen})"
RUNS_NAMED = """
    SELECT id FROM runs WHERE tenant = ?1 AND id >= ?2 AND id < ?2 || char(0x10ffff)
    ORDER BY id LIMIT ?3"""
ENDS_OF = f"{_ENDS} WHERE r.tenant = ? AND r.id = ?"

NAME_OF = "SELECT id FROM runs WHERE n = ?"
RUNS_OF = "SELECT n, id FROM runs WHERE tenant = ?1 AND (?2 IS NULL OR id = ?2) ORDER BY n"
BATCHES_OF = """
    SELECT pos & 0xffffffff, last & 0xffffffff, CAST(data AS BLOB), digest FROM batches
    WHERE pos >= (?1 << 32) + ?2 AND pos <= (?1 << 32) + ?3 ORDER BY pos"""
# The position up to which a run is known to have events.
KNOWN_OF = """
    SELECT max(coalesce((SELECT known FROM ids WHERE n = ?1), 0),
        coalesce((SELECT seq FROM snapshots WHERE tenant = ?2 AND run = ?3), 0))"""
CHECK_FILE = "PRAGMA quick_check(1)"
BEGIN_READING = "BEGIN"

ADD_MAIL = """
    INSERT INTO inbox (tenant, run, id, position, message) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (tenant, run, id) DO NOTHING"""
MAIL_WITH_ID = "SELECT CAST(message AS BLOB) FROM inbox WHERE tenant = ? AND run = ? AND id = ?"
DROP_MAIL = "DELETE FROM inbox WHERE tenant = ? AND run = ? AND id = ?"
CLEAR_MAIL = "UPDATE inbox SET message = x'' WHERE tenant = ? AND run = ? AND id = ?"
DROP_MAIL_OF = "DELETE FROM inbox WHERE tenant = ? AND run = ?"
MAIL_IDS = "SELECT id FROM inbox WHERE tenant = ? AND run = ?"
MAIL_OF = (
    "SELECT id, position, CAST(message AS BLOB) FROM inbox WHERE tenant = ? AND run = ? ORDER BY n"
)
LAST_MAIL = "SELECT seq FROM sqlite_sequence WHERE name = 'inbox'"
MAIL_AFTER = "SELECT n, tenant, run FROM inbox WHERE n > ? ORDER BY n LIMIT ?"

CLAIMANT = "SELECT fence, owner, renewed, until FROM claims WHERE tenant = ? AND run = ?"
CLAIM = """
    INSERT OR REPLACE INTO claims (tenant, run, owner, renewed, until) VALUES (?, ?, ?, ?, ?)"""
IN_FORCE = "SELECT 1 FROM claims WHERE fence = ?"
RENEW = "UPDATE claims SET renewed = ?, until = ? WHERE owner = ?"
FENCES_OF = "SELECT fence FROM claims WHERE owner = ?"
RELEASE_CLAIM = "DELETE FROM claims WHERE fence = ?"
RELEASE_OWNER = "DELETE FROM claims WHERE owner = ?"

SAVE_STATE = """
    INSERT INTO snapshots VALUES (?, ?, ?, ?)
    ON CONFLICT (tenant, run) DO UPDATE SET seq = excluded.seq, state = excluded.state
    WHERE excluded.seq >= snapshots.seq"""
LOAD_STATE = "SELECT seq, CAST(state AS BLOB) FROM snapshots WHERE tenant = ? AND run = ?"

DIGEST_OF = "SELECT digest FROM artifacts WHERE tenant = ? AND id = ?"
ADD_ARTIFACT = """
    INSERT INTO artifacts (digest, tenant, id, at, opens, shared, visibility, data)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
ADD_TERM = "INSERT OR IGNORE INTO terms VALUES (?, ?, ?, ?)"
_FOUND = "SELECT at, n, tenant, visibility, data FROM artifacts"
ARTIFACTS_NAMED = f"""
    {_FOUND} WHERE tenant = ?1 AND id = ?2 UNION {_FOUND} WHERE shared = 1 AND id = ?2
    ORDER BY n"""
OPENINGS_AFTER = """
    SELECT opens FROM (SELECT DISTINCT opens FROM artifacts WHERE tenant = ?1 AND opens > ?2
        ORDER BY opens LIMIT ?3)
    UNION SELECT opens FROM (SELECT DISTINCT opens FROM artifacts WHERE shared = 1 AND opens > ?2
        ORDER BY opens LIMIT ?3)
    ORDER BY opens LIMIT ?3"""
ENTRIES = "SELECT count(*) FROM (SELECT 1 FROM terms WHERE term IN ({terms}) LIMIT ?)"
# Entries between two positions that are open by now. Checks for further terms are appended.
_CONDITIONS = """
    (e.at, e.n) > (?, ?) AND (e.at, e.n) < (?, ?) AND (e.opens IS NULL OR e.opens <= ?)"""
HAS_TERM = "EXISTS (SELECT 1 FROM terms o WHERE o.term IN ({terms}) AND o.at = e.at AND o.n = e.n)"
WALK = f"""
    SELECT a.at, a.n, a.tenant, a.visibility, a.data
    FROM terms e CROSS JOIN artifacts a ON a.n = e.n
    WHERE e.term = ? AND {_CONDITIONS}{{checks}}
        AND (a.tenant = ? OR a.shared = 1 AND (a.opens IS NULL OR a.opens <= ?))
    ORDER BY e.at {{order}}, e.n {{order}}"""
_COUNTED = f"""
    FROM artifacts WHERE n IN (
        SELECT e.n FROM terms e WHERE e.term IN ({{terms}}) AND {_CONDITIONS}{{checks}})
        AND (tenant = ? OR shared = 1 AND (opens IS NULL OR opens <= ?))"""
TALLY = f"SELECT visibility, count(*) {_COUNTED} GROUP BY visibility"
# Data that SQLite cannot parse as JSON is returned whole.
COUNTS = f"""
    SELECT visibility, CASE WHEN json_valid(data)
        THEN json_extract(data, '$.type', '$.produced_by', '$.tags') ELSE data END AS traits,
        count(*) {_COUNTED} GROUP BY visibility, traits"""

ADD_CONSUMPTION = "INSERT OR IGNORE INTO consumptions VALUES (?, ?, ?, ?, ?, ?, ?)"
CONSUMPTIONS_OF = """
    SELECT artifact, subscription, run, turn, agent, at FROM consumptions
    WHERE tenant = ? AND artifact IN (SELECT value FROM json_each(?))"""

ADD_OBSERVATION = "INSERT OR IGNORE INTO observations VALUES (?, ?, ?)"
FADE = """
    UPDATE beliefs SET successes = successes * ?, failures = failures * ?
    WHERE tenant = ? AND workflow = ? AND category = ?"""
ADD_EVIDENCE = """
    INSERT INTO beliefs VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
        successes = successes + excluded.successes, failures = failures + excluded.failures"""
EVIDENCE_OF = """
    SELECT agent, successes, failures FROM beliefs
    WHERE tenant = ? AND workflow = ? AND category = ?
        AND agent IN (SELECT value FROM json_each(?))"""

ENDED_BEFORE = """
    SELECT ended, n, id, status FROM runs
    WHERE tenant = ?1 AND ended IS NOT NULL AND (ended, n) < (?2, ?3)
    ORDER BY ended DESC, n DESC LIMIT ?4"""
ENDED_RUN = """
    SELECT n, status, ended, (SELECT max(last) & 0xffffffff FROM batches
        WHERE pos > n << 32 AND pos < (n + 1) << 32)
        - coalesce((SELECT max(upto) FROM branches WHERE branches.n = runs.n), 0)
    FROM runs WHERE tenant = ? AND id = ? AND ended IS NOT NULL"""
ARTIFACTS_OF_RUN = """
    SELECT DISTINCT a.n, a.id, a.at, a.visibility, a.data
    FROM terms e CROSS JOIN artifacts a ON a.n = e.n WHERE e.term IN ({terms}) AND a.tenant = ?"""
# The existing runs that consumed an artifact.
TAKERS_OF = """
    SELECT DISTINCT c.run FROM consumptions c JOIN runs r ON r.tenant = c.tenant AND r.id = c.run
    WHERE c.tenant = ? AND c.artifact = ?"""
REMOVE_TERM = "DELETE FROM terms WHERE term = ? AND at = ? AND n = ?"
REMOVE_ARTIFACT = "DELETE FROM artifacts WHERE n = ?"
REMOVE_CONSUMPTIONS = "DELETE FROM consumptions WHERE tenant = ? AND artifact = ?"
REMOVE_BY_NUMBER = (
    "DELETE FROM batches WHERE pos > ?1 << 32 AND pos < (?1 + 1) << 32",
    "DELETE FROM ids WHERE n = ?",
    "DELETE FROM branches WHERE n = ?",
    "DELETE FROM runs WHERE n = ?",
)
REMOVE_BY_RUN = tuple(
    f"DELETE FROM {table} WHERE tenant = ? AND run = ?"
    for table in (
        *("consumptions", "snapshots", "inbox", "claims", "observations"),
        *("feedback", "job_results"),
    )
)

KEEP_PLAN = "INSERT OR REPLACE INTO plans VALUES (?, ?, ?)"
FIND_PLAN = "SELECT CAST(plan AS BLOB) FROM plans WHERE tenant = ? AND digest = ?"

KEEP_RESULT = """
    INSERT OR REPLACE INTO results (tenant, key, until, value, user) VALUES (?, ?, ?, ?, ?)"""
DROP_RESULTS = "DELETE FROM results WHERE tenant = ? AND until < ?"
FIND_RESULT = """
    SELECT CAST(value AS BLOB) FROM results
    WHERE tenant = ? AND key = ? AND (until IS NULL OR until >= ?)"""
COUNT_RESULTS = "SELECT count(*) FROM results WHERE tenant = ?1 AND user = ?2 AND user <> ''"
ERASE_RESULTS = "DELETE FROM results WHERE tenant = ?1 AND user = ?2 AND user <> ''"

ADD_REMOVAL = """
    INSERT INTO removals VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
        count = count + excluded.count"""
REMOVALS_OF = """
    SELECT at, by, what, kind, count FROM removals WHERE tenant = ?1 AND (at, by, what) IN (
        SELECT DISTINCT at, by, what FROM removals WHERE tenant = ?1
        ORDER BY at DESC, by, what LIMIT ?2)
    ORDER BY at DESC, by, what"""
REMEMBER_RUN = "INSERT OR IGNORE INTO removed_runs VALUES (?, ?)"
IS_REMOVED = "SELECT 1 FROM removed_runs WHERE tenant = ? AND run = ?"

TENANTS = """
    WITH RECURSIVE found (tenant) AS (
        SELECT min(tenant) FROM runs
        UNION ALL
        SELECT (SELECT min(tenant) FROM runs WHERE tenant > found.tenant) FROM found
        WHERE found.tenant IS NOT NULL
    )
    SELECT tenant FROM found WHERE tenant IS NOT NULL"""
