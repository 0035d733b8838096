"""SQL statements of the store; functions and tables are in `schema/store`."""

from psycopg.sql import SQL

# The SQLSTATEs that functions of the schema raise: an artifact exists with other content, an id is
# taken, the schema is another one.
ARTIFACT_EXISTS, ID_TAKEN, OTHER_SCHEMA = "WF001", "WF002", "WF003"

# The channel of notices.
CHANNEL = "turnloom"
NOTIFY = "SELECT pg_notify(%s, %s)"
LISTEN = f"LISTEN {CHANNEL}"
POSITIONS = """
    SELECT r.tenant, r.id, (
        SELECT last FROM turnloom_batches WHERE run = r.n ORDER BY first DESC LIMIT 1)
    FROM unnest(%s::text[], %s::text[]) AS wanted (tenant, id)
    JOIN turnloom_runs r ON r.tenant = wanted.tenant AND r.id = wanted.id"""

# Lists of bytes are sent as such (%b): as text, they depend on `standard_conforming_strings`.
APPEND = """
    SELECT outcome, reached FROM turnloom_append(
        %s::text, %s::text, %s::bigint, %s::bigint, %b::bytea[], %s::bytea,
        %s::text, %s::text, %s::bigint, %s::text, %s::bigint, %b::bytea[], %s::json)"""
BRANCH = """
    SELECT outcome, reached FROM turnloom_branch(
        %s::text, %s::text, %s::text, %s::bigint, %b::bytea[], %s::bytea,
        %s::bigint, %s::text, %s::bigint, %b::bytea[], %s::json)"""
# Some batches of a run from the one on that holds the event after a position, or else the next one.
# What other runs recorded of a branch comes first.
BATCHES = """
    SELECT b.first, b.last, b.data
    FROM turnloom_runs r CROSS JOIN turnloom_parts(r.n) AS p CROSS JOIN LATERAL (
        SELECT first, last, data FROM turnloom_batches
        WHERE run = p.source AND last > %s AND first > p.above AND first <= p.upto
            AND first >= coalesce((
                SELECT first FROM turnloom_batches
                WHERE run = p.source AND first <= %s + 1 ORDER BY first DESC LIMIT 1), 0)
        ORDER BY first LIMIT %s
    ) AS b
    WHERE r.tenant = %s AND r.id = %s AND p.upto > %s ORDER BY b.first LIMIT %s"""
# The batch of a run that holds a position, or else the one before; and where the run ends.
BATCH_AT = """
    SELECT (
        SELECT last FROM turnloom_batches b WHERE b.first <= %s AND b.run = (
            SELECT source FROM turnloom_parts(r.n) WHERE above < %s AND %s <= upto)
        ORDER BY b.first DESC LIMIT 1),
        (SELECT last FROM turnloom_batches WHERE run = r.n ORDER BY first DESC LIMIT 1)
    FROM turnloom_runs r WHERE r.tenant = %s AND r.id = %s"""

_ENDS = """
    SELECT r.n, r.id, r.started, (
        SELECT data FROM turnloom_batches WHERE first = 1 AND run = coalesce(
            (SELECT source FROM turnloom_branches WHERE n = r.n AND above = 0), r.n)
    ), (SELECT data FROM turnloom_batches WHERE run = r.n ORDER BY first DESC LIMIT 1)
    FROM turnloom_runs r"""
ENDS_OF = SQL(f"{_ENDS} WHERE r.tenant = %s AND r.id = %s")
# Runs of a tenant, the one begun last coming first. With statuses, each of them follows an index.
_CHOSEN = """
    SELECT n FROM turnloom_runs
    WHERE tenant = %(tenant)s AND n < %(before)s {status}
        AND (%(workflow)s::text IS NULL OR workflow = %(workflow)s)
        AND (%(user)s::text IS NULL OR user_name = %(user)s)
        AND (%(since)s::bigint IS NULL OR started >= %(since)s)
        AND (%(until)s::bigint IS NULL OR started <= %(until)s)
    ORDER BY n DESC LIMIT %(most)s"""
ENDS_CHOSEN = f"{_ENDS} WHERE r.n IN ({_CHOSEN.format(status='')}) ORDER BY r.n DESC"
ENDS_BY_STATUS = f"""{_ENDS} WHERE r.n IN (
    SELECT chosen.n FROM unnest(%(statuses)s::text[]) AS wanted (status) CROSS JOIN LATERAL (
        {_CHOSEN.format(status="AND status = wanted.status")}) AS chosen
    ORDER BY chosen.n DESC LIMIT %(most)s) ORDER BY r.n DESC"""
NUMBER_OF = "SELECT n FROM turnloom_runs WHERE tenant = %s AND id = %s"
NAMED = """
    SELECT id FROM turnloom_runs WHERE tenant = %s AND id >= %s AND starts_with(id, %s)
    ORDER BY id LIMIT %s"""

OFFER = """
    SELECT outcome, number, kept FROM turnloom_offer(
        %s::text, %s::text, %s::bytea, %s::text, %s::bytea, %s::bigint)"""
REPLACE_MAIL = """
    UPDATE turnloom_inbox SET message = %s
    WHERE tenant = %s AND run = %s AND key = %s AND message = %s RETURNING n"""
PENDING = """
    SELECT m.id, m.message FROM turnloom_inbox m
    WHERE m.tenant = %s AND m.run = %s AND NOT EXISTS (
        SELECT FROM turnloom_runs r
        WHERE r.tenant = m.tenant AND r.id = m.run AND turnloom_has(r.n, m.key))
    ORDER BY m.n"""
# As a number: how a session writes times is up to its server.
CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
LAST_MAIL = "SELECT (SELECT n FROM turnloom_inbox WHERE at < %s ORDER BY n DESC LIMIT 1)"
MAIL_AFTER = """
    SELECT n, tenant, run FROM turnloom_inbox WHERE n > %s OR n = ANY (%s::bigint[])
    ORDER BY n LIMIT %s"""

# Runs that no process holds, and that are neither at rest nor over, or have mail.
OVERDUE = """
    SELECT tenant, run FROM (
        (SELECT tenant, id AS run FROM turnloom_runs
            WHERE status = 'unfinished' AND ended IS NULL
                AND started < extract(epoch FROM clock_timestamp() - %(age)s) * 1000000
            ORDER BY n LIMIT %(most)s)
        UNION
        (SELECT m.tenant, m.run FROM turnloom_inbox m
            JOIN turnloom_runs r ON r.tenant = m.tenant AND r.id = m.run
            WHERE m.at < clock_timestamp() - %(age)s AND r.ended IS NULL
                AND NOT turnloom_has(r.n, m.key)
            ORDER BY m.n LIMIT %(most)s)
    ) AS missed
    WHERE NOT EXISTS (
        SELECT FROM turnloom_claims c WHERE c.tenant = missed.tenant AND c.run = missed.run
            AND c.until > clock_timestamp())
    LIMIT %(most)s"""

NEXT_OWNER = "SELECT nextval('turnloom_fences')"
CLAIM = """
    SELECT fence, holder, seconds, silent FROM turnloom_claim(
        %s::integer, %s::text, %s::text, %s::text, %s::text, %s::double precision, %s::text)"""
CLAIMANT = """
    SELECT fence, owner, extract(epoch FROM until - clock_timestamp())::double precision,
        extract(epoch FROM clock_timestamp() - renewed)::double precision
    FROM turnloom_claims WHERE tenant = %s AND run = %s AND until > clock_timestamp()"""
RENEW = "SELECT * FROM turnloom_renew(%s::integer, %s::text, %s::double precision)"
RELEASE = "DELETE FROM turnloom_claims WHERE fence = ANY (%s::bigint[])"
RELEASE_OWNER = "DELETE FROM turnloom_claims WHERE owner = %s"

SAVE_STATE = """
    INSERT INTO turnloom_snapshots AS kept VALUES (%s, %s, %s, %s)
    ON CONFLICT (tenant, run) DO UPDATE SET seq = excluded.seq, state = excluded.state
    WHERE excluded.seq >= kept.seq"""
LOAD_STATE = "SELECT seq, state FROM turnloom_snapshots WHERE tenant = %s AND run = %s"

KEEP_PLAN = """
    INSERT INTO turnloom_plans VALUES (%s, %s, %s)
    ON CONFLICT (tenant, digest) DO UPDATE SET plan = excluded.plan"""
FIND_PLAN = "SELECT plan FROM turnloom_plans WHERE tenant = %s AND digest = %s"

KEEP_RESULT = """
    WITH gone AS (
        DELETE FROM turnloom_results WHERE tenant = %s AND until < %s AND key <> %s)
    INSERT INTO turnloom_results (tenant, key, until, value, user_name)
    VALUES (%s, %s, %s, %s, %s) ON CONFLICT (tenant, key) DO UPDATE SET
        until = excluded.until, value = excluded.value, user_name = excluded.user_name"""
COUNT_RESULTS = "SELECT count(*) FROM turnloom_results WHERE tenant = %s AND user_name = %s"
ERASE_RESULTS = """
    WITH gone AS (
        DELETE FROM turnloom_results WHERE tenant = %s AND user_name = %s RETURNING 1)
    SELECT count(*) FROM gone"""
FIND_RESULT = """
    SELECT value FROM turnloom_results
    WHERE tenant = %s AND key = %s AND (until IS NULL OR until >= %s)"""

RUNS_OF = """
    SELECT n, id FROM turnloom_runs
    WHERE tenant = %s AND (%s::text IS NULL OR id = %s) ORDER BY n"""
PARTS_OF = """
    SELECT p.source, r.id, p.above, p.upto FROM turnloom_parts(%s) AS p
    LEFT JOIN turnloom_runs r ON r.n = p.source ORDER BY p.above"""
VERIFIED = """
    SELECT first, last, data, digest FROM turnloom_batches
    WHERE run = %s AND first > %s AND first <= %s ORDER BY first LIMIT %s"""
# The position up to which a run is known to have events.
KNOWN_OF = """
    SELECT greatest(
        (SELECT max(seq) FROM turnloom_ids WHERE run = %s),
        (SELECT seq FROM turnloom_snapshots WHERE tenant = %s AND run = %s), 0)"""

ENDED_BEFORE = """
    SELECT ended, n, id, status FROM turnloom_runs
    WHERE tenant = %s AND ended IS NOT NULL AND (ended, n) < (%s, %s)
    ORDER BY ended DESC, n DESC LIMIT %s"""
HOLD_CLAIM = "SELECT FROM turnloom_claims WHERE tenant = %s AND run = %s FOR UPDATE"
ENDED_RUN = """
    SELECT n, status, ended, (
        SELECT max(last) FROM turnloom_batches WHERE run = n)
        - coalesce((SELECT max(upto) FROM turnloom_branches b WHERE b.n = r.n), 0)
    FROM turnloom_runs r WHERE tenant = %s AND id = %s AND ended IS NOT NULL FOR UPDATE"""
BRANCHES_OF = """
    SELECT DISTINCT r.id FROM turnloom_branches b JOIN turnloom_runs r ON r.n = b.n
    WHERE b.source = %s"""
ARTIFACTS_OF_RUN = """
    SELECT DISTINCT a.n, a.id, a.at, a.visibility, a.data
    FROM turnloom_terms e JOIN turnloom_artifacts a ON a.n = e.n
    WHERE e.term = ANY (%s::bigint[]) AND a.tenant = %s"""
# The existing runs that consumed one of some artifacts.
TAKERS_OF = """
    SELECT DISTINCT c.run FROM turnloom_consumptions c
    JOIN turnloom_runs r ON r.tenant = c.tenant AND r.id = c.run
    WHERE c.tenant = %s AND c.artifact = ANY (%s::text[])"""
REMOVE_TERMS = """
    DELETE FROM turnloom_terms t USING unnest(%s::bigint[], %s::bigint[], %s::bigint[])
        AS gone (term, at, n) WHERE t.term = gone.term AND t.at = gone.at AND t.n = gone.n"""
REMOVE_ARTIFACTS = "DELETE FROM turnloom_artifacts WHERE n = ANY (%s::bigint[])"
REMOVE_CONSUMPTIONS = """
    DELETE FROM turnloom_consumptions WHERE tenant = %s AND artifact = ANY (%s::text[])"""
REMOVE_BY_NUMBER = (
    "DELETE FROM turnloom_batches WHERE run = %s",
    "DELETE FROM turnloom_ids WHERE run = %s",
    "DELETE FROM turnloom_branches WHERE n = %s",
    "DELETE FROM turnloom_runs WHERE n = %s",
)
REMOVE_BY_RUN = (
    "DELETE FROM turnloom_consumptions WHERE tenant = %s AND run = %s",
    "DELETE FROM turnloom_snapshots WHERE tenant = %s AND run = %s",
    "DELETE FROM turnloom_inbox WHERE tenant = %s AND run = %s",
    "DELETE FROM turnloom_claims WHERE tenant = %s AND run = %s",
    "DELETE FROM turnloom_observations WHERE tenant = %s AND run = %s",
    "DELETE FROM turnloom_feedback WHERE tenant = %s AND run = %s",
    "DELETE FROM turnloom_job_results WHERE tenant = %s AND run = %s",
)

EVIDENCE_OF = """
    SELECT agent, successes, failures FROM turnloom_beliefs
    WHERE tenant = %s AND workflow = %s AND category = %s AND agent = ANY (%s::text[])"""

# Walks the index of runs from tenant to tenant.
TENANTS = """
    WITH RECURSIVE found (tenant) AS (
        (SELECT tenant FROM turnloom_runs ORDER BY tenant LIMIT 1)
        UNION ALL
        SELECT (
            SELECT r.tenant FROM turnloom_runs r WHERE r.tenant > found.tenant
            ORDER BY r.tenant LIMIT 1)
        FROM found WHERE found.tenant IS NOT NULL
    )
    SELECT tenant FROM found WHERE tenant IS NOT NULL"""
ADD_REMOVAL = """
    INSERT INTO turnloom_removals AS known VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT (tenant, at, by_whom, what, kind) DO UPDATE SET
        count = known.count + excluded.count"""
REMOVALS_OF = """
    SELECT at, by_whom, what, kind, count FROM turnloom_removals
    WHERE tenant = %s AND (at, by_whom, what) IN (
        SELECT DISTINCT at, by_whom, what FROM turnloom_removals
        WHERE tenant = %s ORDER BY at DESC, by_whom, what LIMIT %s)
    ORDER BY at DESC, by_whom, what"""
REMEMBER_RUN = "INSERT INTO turnloom_removed_runs VALUES (%s, %s) ON CONFLICT DO NOTHING"
IS_REMOVED = "SELECT 1 FROM turnloom_removed_runs WHERE tenant = %s AND run = %s"

SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
# The run that recorded the last event before those of a branch.
ORIGIN_OF = """
    SELECT b.upto, r.id FROM turnloom_branches b JOIN turnloom_runs r ON r.n = b.source
    WHERE b.n = %s ORDER BY b.above DESC LIMIT 1"""
OWN_BATCHES = "SELECT first, last, data FROM turnloom_batches WHERE run = %s ORDER BY first"
