"""SQL statements of jobs; their tables are in `schema/store`."""

_JOB = "id, kind, by_whom, total, begun, alive, name, done, status, problem"

ADD_JOB = f"""
    INSERT INTO turnloom_jobs (tenant, {_JOB})
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING n"""
JOB_OF = f"SELECT {_JOB} FROM turnloom_jobs WHERE tenant = %s AND id = %s"
# The comparison with the number of a missing job is never true.
JOBS_OF = f"""
    SELECT {_JOB} FROM turnloom_jobs WHERE tenant = %(tenant)s
        AND (%(before)s::text IS NULL OR n < (
            SELECT n FROM turnloom_jobs WHERE tenant = %(tenant)s AND id = %(before)s))
    ORDER BY n DESC LIMIT %(limit)s"""
# An ended job is not changed, and is returned as it is.
ADVANCE_JOB = f"""
    UPDATE turnloom_jobs SET
        alive = CASE WHEN status = 'running' THEN greatest(alive, %s) ELSE alive END,
        done = CASE WHEN status = 'running' THEN greatest(done, %s) ELSE done END
    WHERE tenant = %s AND id = %s RETURNING {_JOB}"""
END_JOB = """
    UPDATE turnloom_jobs SET status = %s, problem = %s, alive = greatest(alive, %s)
    WHERE tenant = %s AND id = %s AND status = 'running' RETURNING n"""
ADD_RESULT = """
    INSERT INTO turnloom_job_results (tenant, job, n, run, result) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT DO NOTHING"""
RESULTS_OF = """
    SELECT n, run, result FROM turnloom_job_results WHERE tenant = %s AND job = %s ORDER BY n"""
DROP_JOB = "DELETE FROM turnloom_jobs WHERE tenant = %s AND id = %s RETURNING n"
COUNT_JOBS = "SELECT count(*) FROM turnloom_jobs WHERE tenant = %s AND by_whom = %s"
ERASE_JOBS = "DELETE FROM turnloom_jobs WHERE tenant = %s AND by_whom = %s RETURNING n"
