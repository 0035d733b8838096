-- What stands beside runs: who gets in, who did what, what people think, and what starts by itself.

-- API keys; of a token, only its digest. The number orders the keys of a tenant.
CREATE TABLE turnloom_api_keys (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE,
    tenant text COLLATE "C" NOT NULL, user_name text NOT NULL, role text NOT NULL,
    scopes text NOT NULL, name text NOT NULL, created bigint NOT NULL, created_by text NOT NULL,
    expires bigint, revoked bigint, last_used bigint, digest text NOT NULL);
CREATE INDEX turnloom_api_keys_of ON turnloom_api_keys (tenant, n);

-- The audit trail. Positions count the entries of a tenant; the number makes a repeated append
-- known.
CREATE SEQUENCE turnloom_audit_numbers;
CREATE TABLE turnloom_audit (
    tenant text COLLATE "C" NOT NULL, position bigint NOT NULL, n bigint NOT NULL UNIQUE,
    who text NOT NULL, action text NOT NULL, what text NOT NULL, at bigint NOT NULL,
    outcome text NOT NULL, via text NOT NULL,
    PRIMARY KEY (tenant, position));
CREATE INDEX turnloom_audit_by ON turnloom_audit (tenant, who, position);

CREATE FUNCTION turnloom_audit_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail is append-only';
END $$;
CREATE TRIGGER turnloom_audit_is_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON turnloom_audit
    FOR EACH STATEMENT EXECUTE FUNCTION turnloom_audit_is_kept();

CREATE FUNCTION turnloom_audit_append(
    of_tenant text, number bigint, by_whom text, did text, to_what text, instant bigint,
    came text, by_means text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    place bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('turnloom audit ' || of_tenant, 0));
    SELECT position INTO place FROM turnloom_audit WHERE n = number;
    IF place IS NULL THEN
        SELECT coalesce(max(position), 0) + 1 INTO place FROM turnloom_audit
        WHERE tenant = of_tenant;
        INSERT INTO turnloom_audit VALUES (
            of_tenant, place, number, by_whom, did, to_what, instant, came, by_means);
    END IF;
    RETURN place;
END $$;

-- Feedback on runs (turn 0) and turns. The number orders it.
CREATE TABLE turnloom_feedback (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL, run text COLLATE "C" NOT NULL, turn bigint NOT NULL,
    name text NOT NULL, who text NOT NULL, score double precision, label text,
    comment text NOT NULL, at bigint NOT NULL,
    UNIQUE (tenant, run, turn, name, who));
CREATE INDEX turnloom_feedback_by ON turnloom_feedback (tenant, who);

-- The last firing of each schedule, and starts planned for an instant.
CREATE TABLE turnloom_firings (
    tenant text COLLATE "C" NOT NULL, schedule text COLLATE "C" NOT NULL, at bigint NOT NULL,
    run text NOT NULL, error text NOT NULL,
    PRIMARY KEY (tenant, schedule));
CREATE TABLE turnloom_planned_starts (
    tenant text COLLATE "C" NOT NULL, run text COLLATE "C" NOT NULL, at bigint NOT NULL,
    workflow text NOT NULL, user_name text NOT NULL, state text NOT NULL, entry text NOT NULL,
    error text NOT NULL,
    PRIMARY KEY (tenant, run));
CREATE INDEX turnloom_due_starts ON turnloom_planned_starts (at) WHERE error = '';
CREATE INDEX turnloom_planned_of ON turnloom_planned_starts (tenant, at);
