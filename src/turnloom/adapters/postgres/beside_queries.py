"""SQL statements of what stands beside runs; tables and functions are in `schema/store`."""

_KEY = "id, tenant, user_name, role, scopes, name, created, created_by, expires, revoked, last_used"

ADD_KEY = f"""
    INSERT INTO turnloom_api_keys ({_KEY}, digest)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT DO NOTHING RETURNING n"""
FIND_KEY = f"SELECT {_KEY}, digest FROM turnloom_api_keys WHERE id = %s"
ANY_KEY = """
    SELECT 1 FROM turnloom_api_keys
    WHERE revoked IS NULL AND (expires IS NULL OR expires > %s) LIMIT 1"""
# The comparison with the number of a missing key is never true.
KEYS_OF = f"""
    SELECT {_KEY} FROM turnloom_api_keys WHERE tenant = %(tenant)s
        AND (%(before)s::text IS NULL OR n < (
            SELECT n FROM turnloom_api_keys WHERE tenant = %(tenant)s AND id = %(before)s))
    ORDER BY n DESC LIMIT %(limit)s"""
REVOKE_KEY = f"""
    UPDATE turnloom_api_keys SET revoked = coalesce(revoked, %s)
    WHERE tenant = %s AND id = %s RETURNING {_KEY}"""
TOUCH_KEY = """
    UPDATE turnloom_api_keys SET last_used = greatest(last_used, %s)
    WHERE tenant = %s AND id = %s"""

NEXT_ENTRY = "SELECT nextval('turnloom_audit_numbers')"
ADD_ENTRY = "SELECT turnloom_audit_append(%s, %s, %s, %s, %s, %s, %s, %s)"
ENTRIES_OF = """
    SELECT who, action, what, at, outcome, via, position FROM turnloom_audit
    WHERE tenant = %(tenant)s AND position < %(before)s
        AND (%(who)s::text IS NULL OR who = %(who)s)
        AND (%(action)s::text IS NULL OR action = %(action)s)
        AND (%(since)s::bigint IS NULL OR at >= %(since)s)
        AND (%(until)s::bigint IS NULL OR at <= %(until)s)
    ORDER BY position DESC LIMIT %(limit)s"""

# The run is locked, so that it is not removed meanwhile.
HOLD_RUN = "SELECT 1 FROM turnloom_runs WHERE tenant = %s AND id = %s FOR KEY SHARE"
HAS_FEEDBACK = """
    SELECT 1 FROM turnloom_feedback
    WHERE tenant = %s AND run = %s AND turn = %s AND name = %s AND who = %s"""
COUNT_FEEDBACK = "SELECT count(*) FROM turnloom_feedback WHERE tenant = %s AND run = %s"
DROP_FEEDBACK = """
    DELETE FROM turnloom_feedback
    WHERE tenant = %s AND run = %s AND turn = %s AND name = %s AND who = %s"""
ADD_FEEDBACK = """
    INSERT INTO turnloom_feedback (tenant, run, turn, name, who, score, label, comment, at)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (tenant, run, turn, name, who) DO UPDATE SET score = excluded.score,
        label = excluded.label, comment = excluded.comment, at = excluded.at"""
FEEDBACK_OF = """
    SELECT turn, name, score, label, comment, who, at FROM turnloom_feedback
    WHERE tenant = %s AND run = %s ORDER BY n"""
CHOSEN_RUNS = """
    SELECT DISTINCT run FROM turnloom_feedback
    WHERE tenant = %(tenant)s AND run = ANY (%(runs)s::text[]) AND name = %(name)s
        AND (%(label)s::text IS NULL OR label = %(label)s)
        AND (%(least)s::double precision IS NULL OR score >= %(least)s)
        AND (%(most)s::double precision IS NULL OR score <= %(most)s)
        AND (%(above)s::double precision IS NULL OR score > %(above)s)
        AND (%(below)s::double precision IS NULL OR score < %(below)s)"""
# What is counted or removed of a person.
FEEDBACK_OF_PERSON = "FROM turnloom_feedback WHERE tenant = %s AND who = %s"
KEYS_OF_PERSON = "FROM turnloom_api_keys WHERE tenant = %s AND user_name = %s"
STARTS_OF_PERSON = "FROM turnloom_planned_starts WHERE tenant = %s AND user_name = %s"

FIRINGS_OF = "SELECT schedule, at, run, error FROM turnloom_firings WHERE tenant = %s"
LAST_FIRING = "SELECT at, run, error FROM turnloom_firings WHERE tenant = %s AND schedule = %s"
BEGIN_FIRINGS = """
    INSERT INTO turnloom_firings VALUES (%s, %s, %s, '', '') ON CONFLICT DO NOTHING"""
RECORD_FIRING = """
    INSERT INTO turnloom_firings AS kept VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (tenant, schedule) DO UPDATE
        SET at = excluded.at, run = excluded.run, error = excluded.error
        WHERE excluded.at > kept.at"""

_START = "tenant, run, at, workflow, user_name, state, entry, error"
PLAN_START = f"""
    INSERT INTO turnloom_planned_starts ({_START}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT DO NOTHING RETURNING 1"""
STARTS_OF = f"""
    SELECT {_START} FROM turnloom_planned_starts WHERE tenant = %s ORDER BY at, run LIMIT %s"""
DUE_STARTS = f"""
    SELECT {_START} FROM turnloom_planned_starts WHERE error = '' AND at <= %s
    ORDER BY at, tenant, run LIMIT %s"""
NEXT_START = "SELECT min(at) FROM turnloom_planned_starts WHERE error = ''"
DROP_START = "DELETE FROM turnloom_planned_starts WHERE tenant = %s AND run = %s RETURNING 1"
FAIL_START = """
    UPDATE turnloom_planned_starts SET error = %s WHERE tenant = %s AND run = %s RETURNING 1"""
