-- What was removed: when and by whom it was asked for, and how many things of each kind there were.
CREATE TABLE removals (
    tenant TEXT NOT NULL, at INTEGER NOT NULL, by TEXT NOT NULL, what TEXT NOT NULL,
    kind TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (tenant, at, by, what, kind)
) WITHOUT ROWID;

-- Runs that later ones are counted from, and that were removed: their ids are not used again.
CREATE TABLE removed_runs (
    tenant TEXT NOT NULL, run TEXT NOT NULL, PRIMARY KEY (tenant, run)
) WITHOUT ROWID;

-- Whose a cached result is; empty: it is shared.
ALTER TABLE results ADD COLUMN user TEXT NOT NULL DEFAULT '';
CREATE INDEX results_of ON results (tenant, user) WHERE user <> '';
