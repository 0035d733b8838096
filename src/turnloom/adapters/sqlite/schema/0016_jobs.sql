-- Work on many runs. The number orders the jobs of a tenant.
CREATE TABLE jobs (
    n INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, id TEXT NOT NULL,
    kind TEXT NOT NULL, by_whom TEXT NOT NULL, total INTEGER NOT NULL, begun INTEGER NOT NULL,
    alive INTEGER NOT NULL, name TEXT NOT NULL, done INTEGER NOT NULL, status TEXT NOT NULL,
    problem TEXT NOT NULL, UNIQUE (tenant, id)
);
CREATE INDEX jobs_of ON jobs (tenant, n);

-- What a job has to say about each of its runs.
CREATE TABLE job_results (
    tenant TEXT NOT NULL, job TEXT NOT NULL, n INTEGER NOT NULL, run TEXT NOT NULL,
    result BLOB NOT NULL, PRIMARY KEY (tenant, job, n)
) WITHOUT ROWID;
CREATE INDEX job_results_of ON job_results (tenant, run);
