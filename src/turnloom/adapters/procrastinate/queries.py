"""The statements of the scheduler. What they call is in `schema/`."""

from typing import LiteralString

VERSIONS: LiteralString = "SELECT part, version FROM turnloom_schema"
IS_THERE: LiteralString = (
    "SELECT to_regclass('turnloom_schema') IS NOT NULL AS ours,"
    " to_regclass('procrastinate_jobs') IS NOT NULL AS theirs"
)
BEGIN_SCHEMA: LiteralString = """
    SELECT pg_advisory_xact_lock(hashtext('turnloom_schema'));
    CREATE TABLE IF NOT EXISTS turnloom_schema (part text PRIMARY KEY, version integer NOT NULL)"""
END_SCHEMA: LiteralString = """
    INSERT INTO turnloom_schema VALUES (%(part)s, %(version)s)
    ON CONFLICT (part) DO UPDATE SET version = excluded.version"""

WAKE: LiteralString = "SELECT turnloom_wake(%(tenant)s, %(run)s)"
WAKE_AT: LiteralString = "SELECT turnloom_wake_at(%(tenant)s, %(run)s, %(due)s)"
LIMITED: LiteralString = """
    SELECT run, turnloom_limit(tenant) AS most,
        extract(epoch FROM clock_timestamp() - since)::double precision AS seconds
    FROM turnloom_queue
    WHERE tenant = %(tenant)s AND run = ANY (%(runs)s::text[]) AND job IS NULL
        AND turnloom_limit(tenant) IS NOT NULL"""
CANCEL: LiteralString = "SELECT turnloom_cancel(%(tenant)s, %(run)s)"
STATUS: LiteralString = """
    SELECT (SELECT coalesce(job.status::text, 'todo') FROM turnloom_queue AS known
            LEFT JOIN procrastinate_jobs AS job ON job.id = known.job
            WHERE known.tenant = %(tenant)s AND known.run = %(run)s) AS status,
        EXISTS (SELECT FROM turnloom_timers
            WHERE tenant = %(tenant)s AND run = %(run)s) AS timer"""

LIMITS: LiteralString = "SELECT turnloom_set_limits(%(tenants)s::text[], %(most)s::integer[])"

FETCH: LiteralString = "SELECT * FROM turnloom_fetch(%(worker)s, %(lacking)s, %(count)s)"
FINISH: LiteralString = (
    "SELECT turnloom_finish(%(job)s, %(worker)s, %(tenant)s, %(run)s, %(due)s) AS finished"
)
GIVE_BACK: LiteralString = "SELECT turnloom_give_back(%(job)s, %(worker)s, %(needs)s, %(queue)s)"
FIRE: LiteralString = "SELECT fired, next FROM turnloom_fire()"
HELD: LiteralString = """
    SELECT id, abort_requested FROM procrastinate_jobs
    WHERE worker_id = %(worker)s AND status = 'doing'"""
BEAT: LiteralString = """
    UPDATE procrastinate_workers SET last_heartbeat = clock_timestamp()
    WHERE id = %(worker)s RETURNING id"""
TAKE_OVER: LiteralString = "SELECT turnloom_take_over(%(lease)s) AS count"
SWEEP: LiteralString = "SELECT turnloom_sweep()"
PRUNE: LiteralString = "SELECT procrastinate_prune_stalled_workers_v1(%(seconds)s)"
HOLDER: LiteralString = "SELECT gen_random_uuid()::text AS holder"
ACQUIRE: LiteralString = """
    SELECT turnloom_acquire(%(name)s, %(most)s::integer, %(per_minute)s::integer, %(holder)s,
        %(place)s, %(lease)s::double precision) AS seconds"""
RELEASE: LiteralString = """
    DELETE FROM turnloom_permits
    WHERE name = %(name)s AND holder = %(holder)s AND place = %(place)s"""
RENEW: LiteralString = """
    UPDATE turnloom_permits SET until = clock_timestamp() + make_interval(secs => %(lease)s)
    WHERE holder = %(holder)s"""
STRANDED: LiteralString = """
    SELECT refused.run, refused.needs FROM turnloom_refused AS refused
    JOIN turnloom_queue AS known ON known.tenant = refused.tenant AND known.run = refused.run
    JOIN procrastinate_jobs AS job ON job.id = known.job
    WHERE refused.tenant = %(tenant)s AND job.status = 'todo'
        AND refused.since < clock_timestamp() - make_interval(secs => %(seconds)s)"""
