"""The SQL of jobs."""

_JOB = "id, kind, by_whom, total, begun, alive, name, done, status, problem"

ADD_JOB = f"""
    INSERT OR IGNORE INTO jobs (tenant, {_JOB}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
JOB_OF = f"SELECT {_JOB} FROM jobs WHERE tenant = ? AND id = ?"
# The comparison with the number of a missing job is never true.
JOBS_OF = f"""
    SELECT {_JOB} FROM jobs WHERE tenant = :tenant
        AND (:before IS NULL OR n < (SELECT n FROM jobs WHERE tenant = :tenant AND id = :before))
    ORDER BY n DESC LIMIT :limit"""
ADVANCE_JOB = """
    UPDATE jobs SET alive = max(alive, ?), done = max(done, ?)
    WHERE tenant = ? AND id = ? AND status = 'running'"""
END_JOB = """
    UPDATE jobs SET status = ?, problem = ?, alive = max(alive, ?)
    WHERE tenant = ? AND id = ? AND status = 'running'"""
ADD_RESULT = (
    "INSERT OR IGNORE INTO job_results (tenant, job, n, run, result) VALUES (?, ?, ?, ?, ?)"
)
RESULTS_OF = "SELECT n, run, result FROM job_results WHERE tenant = ? AND job = ? ORDER BY n"
DROP_JOB = (
    "DELETE FROM job_results WHERE tenant = ? AND job = ?",
    "DELETE FROM jobs WHERE tenant = ? AND id = ?",
)
COUNT_JOBS = "SELECT count(*) FROM jobs WHERE tenant = ? AND by_whom = ?"
ERASE_RESULTS = """
    DELETE FROM job_results WHERE tenant = ?1
        AND job IN (SELECT id FROM jobs WHERE tenant = ?1 AND by_whom = ?2)"""
ERASE_JOBS = "DELETE FROM jobs WHERE tenant = ? AND by_whom = ?"
