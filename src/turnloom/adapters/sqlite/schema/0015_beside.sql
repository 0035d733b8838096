-- What stands beside runs: who gets in, who did what, what people think, and what starts by itself.

-- API keys; of a token, only its digest. The number orders the keys of a tenant.
CREATE TABLE api_keys (
    n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL,
    user TEXT NOT NULL, role TEXT NOT NULL, scopes TEXT NOT NULL, name TEXT NOT NULL,
    created INTEGER NOT NULL, created_by TEXT NOT NULL, expires INTEGER, revoked INTEGER,
    last_used INTEGER, digest TEXT NOT NULL
);
CREATE INDEX api_keys_of ON api_keys (tenant);

-- The audit trail. Positions count the entries of a tenant.
CREATE TABLE audit (
    tenant TEXT NOT NULL, position INTEGER NOT NULL, who TEXT NOT NULL, action TEXT NOT NULL,
    what TEXT NOT NULL, at INTEGER NOT NULL, outcome TEXT NOT NULL, via TEXT NOT NULL,
    PRIMARY KEY (tenant, position)
) WITHOUT ROWID;
CREATE INDEX audit_by ON audit (tenant, who, position);
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN SELECT raise(ABORT, 'the audit trail is append-only'); END;
CREATE TRIGGER audit_is_not_removed BEFORE DELETE ON audit
BEGIN SELECT raise(ABORT, 'the audit trail is append-only'); END;

-- Feedback on runs (turn 0) and turns. The number orders it.
CREATE TABLE feedback (
    n INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, run TEXT NOT NULL,
    turn INTEGER NOT NULL, name TEXT NOT NULL, who TEXT NOT NULL, score REAL, label TEXT,
    comment TEXT NOT NULL, at INTEGER NOT NULL, UNIQUE (tenant, run, turn, name, who)
);
CREATE INDEX feedback_by ON feedback (tenant, who);

-- The last firing of each schedule, and starts planned for an instant.
CREATE TABLE firings (
    tenant TEXT NOT NULL, schedule TEXT NOT NULL, at INTEGER NOT NULL, run TEXT NOT NULL,
    error TEXT NOT NULL, PRIMARY KEY (tenant, schedule)
) WITHOUT ROWID;
CREATE TABLE planned_starts (
    tenant TEXT NOT NULL, run TEXT NOT NULL, at INTEGER NOT NULL, workflow TEXT NOT NULL,
    user TEXT NOT NULL, state TEXT NOT NULL, entry TEXT NOT NULL, error TEXT NOT NULL,
    PRIMARY KEY (tenant, run)
) WITHOUT ROWID;
CREATE INDEX due_starts ON planned_starts (at) WHERE error = '';
CREATE INDEX planned_of ON planned_starts (tenant, at);
