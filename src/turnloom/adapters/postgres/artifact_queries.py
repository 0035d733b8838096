"""Every statement that artifacts need: their tables, what keeps artifacts and what finds them.

An artifact is kept once, under its id; each of its terms has an entry with the artifact's place in
the order of the board and when it opens. What is asked of an entry beside its own term is looked up
by the key of the entries, one after the other: `OFFSET 0` keeps the planner from reading all
entries of the other term instead.
"""

from collections.abc import Iterable, Sequence

from psycopg.sql import SQL, Composable, Composed, Literal

from turnloom.adapters.postgres.tables import Schema
from turnloom.board.logic.rows import microseconds
from turnloom.board.spec import Consumption
from turnloom.board.spec.index import Branch, Plan, Row

VERSION = 2
# The state of the error that an artifact with other content is refused by.
TAKEN = "WF001"

_PREPARE = SQL("""
    BEGIN;
    SELECT pg_advisory_xact_lock(hashtext('turnloom_schema'));
    CREATE TABLE IF NOT EXISTS turnloom_schema (part text PRIMARY KEY, version integer NOT NULL);
    CREATE SEQUENCE IF NOT EXISTS turnloom_artifact_numbers;
    CREATE TABLE IF NOT EXISTS turnloom_artifacts (
        n bigint PRIMARY KEY, id text NOT NULL UNIQUE, digest text NOT NULL,
        at bigint NOT NULL, opens bigint, visibility text NOT NULL, data text NOT NULL);
    CREATE INDEX IF NOT EXISTS turnloom_openings ON turnloom_artifacts (opens)
        WHERE opens IS NOT NULL;
    CREATE TABLE IF NOT EXISTS turnloom_terms (
        term bigint NOT NULL, at bigint NOT NULL, n bigint NOT NULL, opens bigint,
        PRIMARY KEY (term, at, n) INCLUDE (opens));
    CREATE TABLE IF NOT EXISTS turnloom_consumptions (
        artifact text NOT NULL, subscription text NOT NULL, run text NOT NULL,
        turn bigint NOT NULL, agent text NOT NULL, at bigint NOT NULL,
        PRIMARY KEY (artifact, subscription, run, turn));
    CREATE OR REPLACE FUNCTION turnloom_refuse(id text) RETURNS text LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION USING ERRCODE = {taken}, MESSAGE = id; END $$;
    INSERT INTO turnloom_schema AS there VALUES ('board', {version}) ON CONFLICT (part)
        DO UPDATE SET version = excluded.version WHERE there.version < excluded.version;
    COMMIT""")
SCHEMA = Schema("board", VERSION, _PREPARE.format(taken=Literal(TAKEN), version=Literal(VERSION)))

# Numbers go by the order of the artifacts; rows are inserted by id, so that two who keep the same
# artifacts wait for each other in one direction only.
_PUT = SQL("""
    WITH given AS MATERIALIZED (
        SELECT nextval('turnloom_artifact_numbers') AS n, rows.* FROM unnest(
            {id}::text[], {digest}::text[], {at}::bigint[], {opens}::bigint[],
            {visibility}::text[], {data}::text[]
        ) WITH ORDINALITY AS rows (id, digest, at, opens, visibility, data, place)
    ), kept AS (
        INSERT INTO turnloom_artifacts AS there
        SELECT n, id, digest, at, opens, visibility, data FROM given ORDER BY id
        ON CONFLICT (id) DO UPDATE SET digest = turnloom_refuse(there.id)
            WHERE there.digest <> excluded.digest
        RETURNING n
    )
    INSERT INTO turnloom_terms
    SELECT DISTINCT entries.term, given.at, given.n, given.opens
    FROM kept JOIN given USING (n)
    JOIN unnest({places}::bigint[], {terms}::bigint[]) AS entries (place, term) USING (place)""")

# By their key, for the same reason.
_CONSUME = SQL("""
    INSERT INTO turnloom_consumptions
    SELECT * FROM unnest(
        {artifact}::text[], {subscription}::text[], {run}::text[], {turn}::bigint[],
        {agent}::text[], {at}::bigint[]
    ) ORDER BY 1, 2, 3, 4 ON CONFLICT DO NOTHING""")
_CONSUMPTIONS = SQL("""
    SELECT artifact, subscription, run, turn, agent, at FROM turnloom_consumptions
    WHERE artifact = ANY({ids}::text[])""")

_FIND = SQL("SELECT at, n, visibility, data FROM turnloom_artifacts WHERE id = {id}")
_UPCOMING = SQL("""
    SELECT DISTINCT opens FROM turnloom_artifacts
    WHERE opens > {now} ORDER BY opens LIMIT {limit}""")
_ENTRIES = SQL("""(SELECT count(*) FROM (
    SELECT 1 FROM turnloom_terms WHERE term = ANY({terms}::bigint[]) LIMIT {most}) AS entries)""")
_HAS = SQL("""EXISTS (
    SELECT 1 FROM turnloom_terms o
    WHERE o.term = ANY({terms}::bigint[]) AND o.at = e.at AND o.n = e.n OFFSET 0)""")
_RIGHT = SQL("""
    (e.at, e.n) > ({low_at}, {low_n}) AND (e.at, e.n) < ({high_at}, {high_n})
    AND (e.opens IS NULL OR e.opens <= {now}){checks}""")
_WAYS = SQL("""
    SELECT found.at, found.n FROM unnest({leads}::bigint[]) AS lead CROSS JOIN LATERAL (
        SELECT e.at, e.n FROM turnloom_terms e WHERE e.term = lead AND {right}
        ORDER BY e.at {order}, e.n {order} LIMIT {most}) AS found""")
_WALK = SQL("""
    SELECT at, n, visibility, data FROM (
        SELECT DISTINCT at, n FROM ({ways}) AS ways ORDER BY at {order}, n {order} LIMIT {most}
    ) AS places JOIN turnloom_artifacts USING (at, n) ORDER BY at {order}, n {order}""")
_TALLY = SQL("""
    SELECT visibility, count(*) FROM (
        SELECT DISTINCT e.n FROM turnloom_terms e WHERE e.term = ANY({leads}::bigint[]) AND {right}
    ) AS places JOIN turnloom_artifacts USING (n) GROUP BY visibility""")


def put(rows: Sequence[Row]) -> Composed:
    """The statement that keeps artifacts, all or none, or raises `TAKEN` with an id."""
    columns = {
        name: Literal([getattr(row, name) for row in rows])
        for name in ("id", "digest", "at", "opens", "visibility", "data")
    }
    entries = [(place, term) for place, row in enumerate(rows, 1) for term in row.terms]
    return _PUT.format(
        **columns,
        places=Literal([place for place, _ in entries]),
        terms=Literal([term for _, term in entries]),
    )


def consume(consumptions: Sequence[Consumption]) -> Composed:
    """The statement that keeps who took what, all or none."""
    columns = {
        name: Literal([getattr(each, name) for each in consumptions])
        for name in ("artifact", "subscription", "run", "turn", "agent")
    }
    return _CONSUME.format(**columns, at=Literal([microseconds(each.at) for each in consumptions]))


def consumptions(ids: Sequence[str]) -> Composed:
    """The statement that gives who took one of some artifacts."""
    return _CONSUMPTIONS.format(ids=Literal(list(ids)))


def find(id: str) -> Composed:
    """The statement that gives the row of an artifact."""
    return _FIND.format(id=Literal(id))


def upcoming(now: int, limit: int) -> Composed:
    """The statement that gives the next instants at which something opens."""
    return _UPCOMING.format(now=Literal(now), limit=Literal(limit))


def weigh(groups: Sequence[Sequence[int]], most: int) -> Composed:
    """The statement that counts the entries of each group, up to a number."""
    counts = [_ENTRIES.format(terms=_array(group), most=Literal(most)) for group in groups]
    return SQL("SELECT {}").format(SQL(", ").join(counts))


def walk(plan: Plan, most: int) -> Composed:
    """The statement that gives the first rows of a plan in its direction."""
    common = {"order": SQL("DESC" if plan.newest_first else "ASC"), "most": Literal(most)}
    ways = [
        _WAYS.format(leads=_array(branch.leads), right=_right(plan, branch), **common)
        for branch in plan.branches
    ]
    return _WALK.format(ways=SQL(" UNION ALL ").join(ways), **common)


def tally(plan: Plan) -> Composed:
    """The statement that counts the rows of a plan by their visibility."""
    counts = [
        _TALLY.format(leads=_array(branch.leads), right=_right(plan, branch))
        for branch in plan.branches
    ]
    return SQL(" UNION ALL ").join(counts)


def _right(plan: Plan, branch: Branch) -> Composed:
    checks: list[Composable] = [
        SQL(" AND {}").format(_HAS.format(terms=_array(group))) for group in branch.groups
    ]
    if branch.excluded:
        checks.append(SQL(" AND NOT {}").format(_HAS.format(terms=_array(branch.excluded))))
    return _RIGHT.format(
        low_at=Literal(plan.low[0]),
        low_n=Literal(plan.low[1]),
        high_at=Literal(plan.high[0]),
        high_n=Literal(plan.high[1]),
        now=Literal(plan.now),
        checks=SQL("").join(checks),
    )


def _array(terms: Iterable[int]) -> Literal:
    return Literal(list(terms))
