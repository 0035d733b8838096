-- Work on many runs. The number orders the jobs of a tenant.
CREATE TABLE turnloom_jobs (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL, kind text NOT NULL, by_whom text NOT NULL,
    total bigint NOT NULL, begun bigint NOT NULL, alive bigint NOT NULL, name text NOT NULL,
    done bigint NOT NULL, status text NOT NULL, problem text NOT NULL,
    UNIQUE (tenant, id));
CREATE INDEX turnloom_jobs_of ON turnloom_jobs (tenant, n);

-- What a job has to say about each of its runs; removed with the job.
CREATE TABLE turnloom_job_results (
    tenant text COLLATE "C" NOT NULL, job text COLLATE "C" NOT NULL, n bigint NOT NULL,
    run text COLLATE "C" NOT NULL, result bytea NOT NULL,
    PRIMARY KEY (tenant, job, n),
    FOREIGN KEY (tenant, job) REFERENCES turnloom_jobs (tenant, id) ON DELETE CASCADE);
CREATE INDEX turnloom_job_results_of ON turnloom_job_results (tenant, run);
