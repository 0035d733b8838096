"""SQL statements for artifacts; tables and functions are in `schema/store`.

An artifact is stored once, under its tenant and id. Each of its terms has an entry with the
artifact's time, number and opening time. Further conditions on an entry are looked up by primary
key, one by one: `OFFSET 0` prevents the planner from scanning all entries of the other term
instead.
"""

from collections.abc import Iterable, Sequence

from psycopg.sql import SQL, Composable, Composed, Literal

from turnloom.board.spec.queries import Branch, IndexPlan

# Adds artifacts and consumptions, all or none.
PUT = "SELECT turnloom_follow(%s::json)"

_CONSUMPTIONS = SQL("""
    SELECT artifact, subscription, run, turn, agent, at FROM turnloom_consumptions
    WHERE tenant = {tenant} AND artifact = ANY({ids}::text[])""")

_FIND = SQL("""
    SELECT at, n, tenant, visibility, data FROM turnloom_artifacts
    WHERE id = {id} AND (tenant = {tenant} OR shared) ORDER BY n""")
_OPENINGS = SQL("""(
    SELECT DISTINCT opens FROM turnloom_artifacts
    WHERE {visible} AND opens > {now} ORDER BY opens LIMIT {limit})""")
_UPCOMING = SQL("{own} UNION {shared} ORDER BY opens LIMIT {limit}")
_ENTRIES = SQL("""(SELECT count(*) FROM (
    SELECT 1 FROM turnloom_terms WHERE term = ANY({terms}::bigint[]) LIMIT {most}) AS entries)""")
_HAS = SQL("""EXISTS (
    SELECT 1 FROM turnloom_terms o
    WHERE o.term = ANY({terms}::bigint[]) AND o.at = e.at AND o.n = e.n OFFSET 0)""")
_CONDITIONS = SQL("""
    (e.at, e.n) > ({low_at}, {low_n}) AND (e.at, e.n) < ({high_at}, {high_n})
    AND (e.opens IS NULL OR e.opens <= {now}){checks}""")
_LEADS = SQL("""
    SELECT found.at, found.n FROM unnest({leads}::bigint[]) AS lead CROSS JOIN LATERAL (
        SELECT e.at, e.n FROM turnloom_terms e WHERE e.term = lead AND {conditions}
        ORDER BY e.at {order}, e.n {order} LIMIT {most}) AS found""")
# The tenant's own artifacts, or shared ones that are open now.
_VISIBLE = SQL("(tenant = {tenant} OR shared AND (opens IS NULL OR opens <= {now}))")
# Every place returns a row, so that the number of rows shows whether there may be more.
_WALK = SQL("""
    SELECT at, n, {visible}, tenant, visibility, data FROM (
        SELECT DISTINCT at, n FROM ({ways}) AS ways ORDER BY at {order}, n {order} LIMIT {most}
    ) AS places JOIN turnloom_artifacts USING (at, n)
    ORDER BY at {order}, n {order}""")
_BOUNDARY = SQL("""
    SELECT DISTINCT at, n FROM ({ways}) AS ways ORDER BY at, n OFFSET {most} - 1 LIMIT 1""")
_COUNTED = SQL("""
    SELECT visibility, data FROM (
        SELECT DISTINCT e.n FROM turnloom_terms e
        WHERE e.term = ANY({leads}::bigint[]) AND {conditions}
    ) AS places JOIN turnloom_artifacts USING (n) WHERE {visible}""")
_TALLY = SQL("SELECT visibility, count(*) FROM ({counted}) AS counted GROUP BY visibility")
_COUNTS = SQL("""
    SELECT visibility, traits, count(*) FROM ({counted}) AS counted CROSS JOIN LATERAL (
        SELECT json_build_array(type, produced_by, tags)::text AS traits FROM
        json_to_record(data::json) AS content (type json, produced_by json, tags json)) AS told
    GROUP BY visibility, traits""")
_DATA = SQL("SELECT visibility, data, 1 FROM ({counted}) AS counted")


def consumptions(tenant: str, ids: Sequence[str]) -> Composed:
    """The consumptions of some artifacts of a tenant."""
    return _CONSUMPTIONS.format(tenant=Literal(tenant), ids=Literal(list(ids)))


def find(tenant: str, id: str) -> Composed:
    """The rows with an id that belong to the tenant or are shared."""
    return _FIND.format(tenant=Literal(tenant), id=Literal(id))


def upcoming(tenant: str, now: int, limit: int) -> Composed:
    """The next times at which artifacts open to a tenant."""
    values = {"now": Literal(now), "limit": Literal(limit)}
    own = SQL("tenant = {}").format(Literal(tenant))
    return _UPCOMING.format(
        own=_OPENINGS.format(visible=own, **values),
        shared=_OPENINGS.format(visible=SQL("shared"), **values),
        limit=Literal(limit),
    )


def weigh(groups: Sequence[Sequence[int]], most: int) -> Composed:
    """The number of entries of each group, up to a limit."""
    counts = [_ENTRIES.format(terms=_array(group), most=Literal(most)) for group in groups]
    return SQL("SELECT {}").format(SQL(", ").join(counts))


def walk(plan: IndexPlan, most: int) -> Composed:
    """The first rows of a plan in its order."""
    return _WALK.format(
        ways=_ways(plan, most), visible=_visible(plan), order=_order(plan), most=Literal(most)
    )


def boundary(plan: IndexPlan, most: int) -> Composed:
    """The position of the n-th oldest row of a plan, if it has that many."""
    return _BOUNDARY.format(ways=_ways(plan, most), most=Literal(most))


def tally(plan: IndexPlan) -> Composed:
    """The number of rows of a plan per visibility."""
    return _TALLY.format(counted=_counted(plan))


def counts(plan: IndexPlan) -> Composed:
    """The number of rows of a plan per visibility and traits."""
    return _COUNTS.format(counted=_counted(plan))


def data(plan: IndexPlan) -> Composed:
    """The visibility and the data of each row of a plan, and 1."""
    return _DATA.format(counted=_counted(plan))


def _ways(plan: IndexPlan, most: int) -> Composed:
    common = {"order": _order(plan), "most": Literal(most)}
    return SQL(" UNION ALL ").join(
        _LEADS.format(leads=_array(branch.leads), conditions=_conditions(plan, branch), **common)
        for branch in plan.branches
    )


def _order(plan: IndexPlan) -> SQL:
    return SQL("DESC" if plan.newest_first else "ASC")


def _counted(plan: IndexPlan) -> Composed:
    return SQL(" UNION ALL ").join(
        _COUNTED.format(
            leads=_array(branch.leads), conditions=_conditions(plan, branch), visible=_visible(plan)
        )
        for branch in plan.branches
    )


def _conditions(plan: IndexPlan, branch: Branch) -> Composed:
    checks: list[Composable] = [
        SQL(" AND {}").format(_HAS.format(terms=_array(group))) for group in branch.groups
    ]
    if branch.excluded:
        checks.append(SQL(" AND NOT {}").format(_HAS.format(terms=_array(branch.excluded))))
    return _CONDITIONS.format(
        low_at=Literal(plan.low[0]),
        low_n=Literal(plan.low[1]),
        high_at=Literal(plan.high[0]),
        high_n=Literal(plan.high[1]),
        now=Literal(plan.opened),
        checks=SQL("").join(checks),
    )


def _visible(plan: IndexPlan) -> Composed:
    return _VISIBLE.format(tenant=Literal(plan.tenant), now=Literal(plan.now))


def _array(terms: Iterable[int]) -> Literal:
    return Literal(list(terms))
