-- What was removed: when and by whom it was asked for, and how many things of each kind there were.
CREATE TABLE turnloom_removals (
    tenant text COLLATE "C" NOT NULL, at bigint NOT NULL, by_whom text COLLATE "C" NOT NULL,
    what text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, count bigint NOT NULL,
    PRIMARY KEY (tenant, at, by_whom, what, kind));

-- Runs that later ones are counted from, and that were removed: their ids are not used again.
CREATE TABLE turnloom_removed_runs (
    tenant text COLLATE "C" NOT NULL, run text COLLATE "C" NOT NULL, PRIMARY KEY (tenant, run));

-- Whose a cached result is; empty: it is shared.
ALTER TABLE turnloom_results ADD COLUMN user_name text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX turnloom_results_of ON turnloom_results (tenant, user_name) WHERE user_name <> '';
