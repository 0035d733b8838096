-- Runs, and everything that a store keeps beside them.

-- Numbers are used once: what is remembered of a run that was removed fits no other.
CREATE TABLE runs (
    n INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, id TEXT NOT NULL,
    ended INTEGER, status TEXT, UNIQUE (tenant, id)
);
CREATE INDEX runs_of ON runs (tenant);
CREATE INDEX unfinished_runs ON runs (tenant) WHERE ended IS NULL;
CREATE INDEX ended_runs ON runs (tenant, ended) WHERE ended IS NOT NULL;

CREATE TABLE batches (
    pos INTEGER PRIMARY KEY, last INTEGER NOT NULL, data BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE ids (n INTEGER PRIMARY KEY, known INTEGER NOT NULL, data BLOB NOT NULL);

CREATE TABLE inbox (
    n INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, run TEXT NOT NULL,
    id TEXT NOT NULL, position INTEGER NOT NULL, message BLOB NOT NULL,
    UNIQUE (tenant, run, id)
);
CREATE TABLE claims (
    fence INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, run TEXT NOT NULL,
    owner TEXT NOT NULL, renewed REAL NOT NULL, until REAL NOT NULL, UNIQUE (tenant, run)
);
CREATE TABLE snapshots (
    tenant TEXT NOT NULL, run TEXT NOT NULL, seq INTEGER NOT NULL, state BLOB NOT NULL,
    PRIMARY KEY (tenant, run)
);

-- Events one by one, for people.
CREATE VIEW log AS
    SELECT runs.tenant AS tenant, runs.id AS run, json_extract(value, '$.seq') AS seq,
        json_extract(value, '$.id') AS id, json_extract(value, '$.at') AS at,
        json_extract(value, '$.kind') AS kind, json_extract(value, '$.actor') AS actor,
        json_extract(value, '$.data') AS data
    FROM runs
    JOIN batches ON pos > n << 32 AND pos < (n + 1) << 32
    JOIN json_each('[' || replace(CAST(batches.data AS TEXT), char(10), ',') || ']')
    ORDER BY pos, key;

-- Artifacts by number, and their index: each term with the artifact's time, number and opening time.
-- A term includes the tenant.
CREATE TABLE artifacts (
    n INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, digest TEXT NOT NULL,
    at INTEGER NOT NULL, opens INTEGER, shared INTEGER NOT NULL, visibility TEXT NOT NULL,
    data TEXT NOT NULL, UNIQUE (tenant, id)
);
CREATE INDEX openings ON artifacts (tenant, opens) WHERE opens IS NOT NULL;
CREATE INDEX shared_openings ON artifacts (opens) WHERE shared = 1 AND opens IS NOT NULL;
CREATE INDEX shared_ids ON artifacts (id) WHERE shared = 1;
CREATE TABLE terms (
    term INTEGER NOT NULL, at INTEGER NOT NULL, n INTEGER NOT NULL, opens INTEGER,
    PRIMARY KEY (term, at, n)
) WITHOUT ROWID;

-- Consumptions, clustered by artifact.
CREATE TABLE consumptions (
    tenant TEXT NOT NULL, artifact TEXT NOT NULL, subscription TEXT NOT NULL,
    run TEXT NOT NULL, turn INTEGER NOT NULL, agent TEXT NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (tenant, artifact, subscription, run, turn)
) WITHOUT ROWID;
CREATE INDEX consumptions_by ON consumptions (tenant, run);

-- Beliefs about agents, and the events that they are based on.
CREATE TABLE beliefs (
    tenant TEXT NOT NULL, workflow TEXT NOT NULL, category TEXT NOT NULL, agent TEXT NOT NULL,
    successes REAL NOT NULL, failures REAL NOT NULL,
    PRIMARY KEY (tenant, workflow, category, agent)
) WITHOUT ROWID;
CREATE TABLE observations (
    tenant TEXT NOT NULL, run TEXT NOT NULL, event TEXT NOT NULL,
    PRIMARY KEY (tenant, run, event)
) WITHOUT ROWID;

-- The cache of step results, with their expiry.
CREATE TABLE results (
    tenant TEXT NOT NULL, key TEXT NOT NULL, until INTEGER, value BLOB NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;
CREATE INDEX results_over ON results (tenant, until) WHERE until IS NOT NULL;

-- Plans of boards and flows that runs are pinned to.
CREATE TABLE plans (
    tenant TEXT NOT NULL, digest TEXT NOT NULL, plan BLOB NOT NULL,
    PRIMARY KEY (tenant, digest)
) WITHOUT ROWID;
