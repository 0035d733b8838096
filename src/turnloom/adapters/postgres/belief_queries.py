"""SQL statements for beliefs: their tables, writes and queries."""

from collections.abc import Sequence

from psycopg.sql import SQL, Composed, Literal

from turnloom.adapters.postgres.connections import Schema
from turnloom.guards.spec import Observation, Pool
from turnloom.kernel.values import as_data

VERSION = 2

_PREPARE = SQL("""
    BEGIN;
    SELECT pg_advisory_xact_lock(hashtext('turnloom_schema'));
    CREATE TABLE IF NOT EXISTS turnloom_schema (part text PRIMARY KEY, version integer NOT NULL);
    CREATE TABLE IF NOT EXISTS turnloom_beliefs (
        tenant text NOT NULL, workflow text NOT NULL, category text NOT NULL, agent text NOT NULL,
        successes double precision NOT NULL, failures double precision NOT NULL,
        PRIMARY KEY (tenant, workflow, category, agent));
    CREATE TABLE IF NOT EXISTS turnloom_observations (
        tenant text NOT NULL, run text NOT NULL, event text NOT NULL,
        PRIMARY KEY (tenant, run, event));
    INSERT INTO turnloom_schema VALUES ('beliefs', {version}) ON CONFLICT DO NOTHING;
    COMMIT""")
SCHEMA = Schema("beliefs", VERSION, _PREPARE.format(version=Literal(VERSION)))

_KNOWN = SQL("""
    SELECT agent, successes, failures FROM turnloom_beliefs
    WHERE tenant = {tenant} AND workflow = {workflow} AND category = {category}
        AND agent = ANY({agents}::text[])""")

# Writers to a pool take a lock one after the other, so that they cannot deadlock.
_OBSERVE = SQL("""
    BEGIN;
    SELECT pg_advisory_xact_lock(hashtext('turnloom_beliefs'), hashtext({pool}));
    WITH added AS (
        INSERT INTO turnloom_observations VALUES ({tenant}, {run}, {event})
        ON CONFLICT DO NOTHING RETURNING 1
    ), faded AS (
        UPDATE turnloom_beliefs SET successes = successes * {kept}, failures = failures * {kept}
        WHERE {kept} < 1 AND EXISTS (SELECT FROM added) AND agent <> {agent}
            AND tenant = {tenant} AND workflow = {workflow} AND category = {category}
    )
    INSERT INTO turnloom_beliefs AS known
    SELECT {tenant}, {workflow}, {category}, {agent}, {credit}, 1 - {credit} FROM added
    ON CONFLICT (tenant, workflow, category, agent) DO UPDATE SET
        successes = known.successes * {kept} + excluded.successes,
        failures = known.failures * {kept} + excluded.failures;
    COMMIT""")


def known(pool: Pool, agents: Sequence[str]) -> Composed:
    """The beliefs about agents in a pool."""
    return _KNOWN.format(agents=Literal(list(agents)), **_columns(pool))


def observe(seen: Observation) -> Composed:
    """Add an outcome, once."""
    return _OBSERVE.format(
        pool=Literal(as_data(seen.pool)),
        run=Literal(seen.run),
        event=Literal(seen.event),
        agent=Literal(seen.agent),
        credit=_number(seen.credit),
        kept=_number(1 - seen.decay),
        **_columns(seen.pool),
    )


def _columns(pool: Pool) -> dict[str, Literal]:
    return {name: Literal(text) for name, text in pool._asdict().items()}


def _number(value: float) -> Composed:
    return SQL("{}::double precision").format(Literal(value))
