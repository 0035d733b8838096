"""The SQL of what stands beside runs."""

_KEY = "id, tenant, user, role, scopes, name, created, created_by, expires, revoked, last_used"

ADD_KEY = f"""
    INSERT OR IGNORE INTO api_keys ({_KEY}, digest)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
FIND_KEY = f"SELECT {_KEY}, digest FROM api_keys WHERE id = ?"
ANY_KEY = """
    SELECT 1 FROM api_keys WHERE revoked IS NULL AND (expires IS NULL OR expires > ?) LIMIT 1"""
KEY_OF = f"SELECT {_KEY} FROM api_keys WHERE tenant = ? AND id = ?"
# The comparison with the number of a missing key is never true.
KEYS_OF = f"""
    SELECT {_KEY} FROM api_keys WHERE tenant = :tenant
        AND (:before IS NULL
            OR n < (SELECT n FROM api_keys WHERE tenant = :tenant AND id = :before))
    ORDER BY n DESC LIMIT :limit"""
REVOKE_KEY = """
    UPDATE api_keys SET revoked = ? WHERE tenant = ? AND id = ? AND revoked IS NULL"""
TOUCH_KEY = """
    UPDATE api_keys SET last_used = max(coalesce(last_used, 0), ?) WHERE tenant = ? AND id = ?"""

ADD_ENTRY = """
    INSERT INTO audit (tenant, position, who, action, what, at, outcome, via)
    SELECT :tenant, coalesce(max(position), 0) + 1, :who, :action, :what, :at, :outcome, :via
    FROM audit WHERE tenant = :tenant
    RETURNING position"""
ENTRIES_OF = """
    SELECT who, action, what, at, outcome, via, position FROM audit
    WHERE tenant = :tenant AND position < :before AND (:who IS NULL OR who = :who)
        AND (:action IS NULL OR action = :action)
        AND at BETWEEN coalesce(:since, at) AND coalesce(:until, at)
    ORDER BY position DESC LIMIT :limit"""

IS_RUN = "SELECT 1 FROM runs WHERE tenant = ? AND id = ?"
DROP_FEEDBACK = """
    DELETE FROM feedback WHERE tenant = ? AND run = ? AND turn = ? AND name = ? AND who = ?"""
COUNT_FEEDBACK = "SELECT count(*) FROM feedback WHERE tenant = ? AND run = ?"
HAS_FEEDBACK = """
    SELECT 1 FROM feedback WHERE tenant = ? AND run = ? AND turn = ? AND name = ? AND who = ?"""
ADD_FEEDBACK = """
    INSERT INTO feedback (tenant, run, turn, name, who, score, label, comment, at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
FEEDBACK_OF = """
    SELECT turn, name, score, label, comment, who, at FROM feedback
    WHERE tenant = ? AND run = ? ORDER BY n"""
CHOSEN_RUNS = """
    SELECT DISTINCT run FROM feedback
    WHERE tenant = :tenant AND run IN (SELECT value FROM json_each(:runs)) AND name = :name
        AND (:label IS NULL OR label = :label) AND (:least IS NULL OR score >= :least)
        AND (:most IS NULL OR score <= :most) AND (:above IS NULL OR score > :above)
        AND (:below IS NULL OR score < :below)"""
# What is counted or removed of a person.
FEEDBACK_OF_PERSON = "FROM feedback WHERE tenant = ? AND who = ?"
KEYS_OF_PERSON = "FROM api_keys WHERE tenant = ? AND user = ?"
STARTS_OF_PERSON = "FROM planned_starts WHERE tenant = ? AND user = ?"

FIRINGS_OF = "SELECT schedule, at, run, error FROM firings WHERE tenant = ?"
LAST_FIRING = "SELECT at, run, error FROM firings WHERE tenant = ? AND schedule = ?"
BEGIN_FIRINGS = "INSERT OR IGNORE INTO firings VALUES (?, ?, ?, '', '')"
RECORD_FIRING = """
    INSERT INTO firings (tenant, schedule, at, run, error) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (tenant, schedule) DO UPDATE
        SET at = excluded.at, run = excluded.run, error = excluded.error
        WHERE excluded.at > firings.at"""

_START = "tenant, run, at, workflow, user, state, entry, error"
PLAN_START = f"INSERT OR IGNORE INTO planned_starts ({_START}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
STARTS_OF = f"""
    SELECT {_START} FROM planned_starts WHERE tenant = ? ORDER BY at, run LIMIT ?"""
DUE_STARTS = f"""
    SELECT {_START} FROM planned_starts WHERE error = '' AND at <= ?
    ORDER BY at, tenant, run LIMIT ?"""
NEXT_START = "SELECT min(at) FROM planned_starts WHERE error = ''"
DROP_START = "DELETE FROM planned_starts WHERE tenant = ? AND run = ?"
FAIL_START = "UPDATE planned_starts SET error = ? WHERE tenant = ? AND run = ?"
