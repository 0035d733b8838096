-- Runs, their log, mail, claims, snapshots, artifacts, beliefs, results and plans.
--
-- Each append is one row of turnloom_batches, with its events as lines of JSON. Calls that change
-- something are functions: one statement, one transaction, one round trip. A function refuses
-- before it changes anything, or raises an error, which undoes all of it.

-- Artifacts and beliefs may be there already: they had tables of their own first.
DO $$
BEGIN
    IF EXISTS (SELECT FROM turnloom_schema WHERE (part, version) NOT IN (('board', 3), ('beliefs', 2))
        AND part IN ('board', 'beliefs'))
    THEN
        RAISE EXCEPTION USING ERRCODE = 'WF004',
            MESSAGE = 'its artifacts or beliefs belong to an earlier release of Turnloom';
    END IF;
    DELETE FROM turnloom_schema WHERE part IN ('board', 'beliefs');
END $$;

-- Numbers are used once: what is remembered of a run that was removed fits no other. The first
-- event says workflow, user_name and started, the last one status, and of a run that ended, ended.
CREATE TABLE turnloom_runs (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
    workflow text, user_name text, started bigint NOT NULL, status text NOT NULL, ended bigint,
    is_branch boolean NOT NULL DEFAULT false,
    UNIQUE (tenant, id)) WITH (fillfactor = 80);
CREATE INDEX turnloom_runs_of ON turnloom_runs (tenant, n);
CREATE INDEX turnloom_runs_by_status ON turnloom_runs (tenant, status, n);
CREATE INDEX turnloom_runs_ended ON turnloom_runs (tenant, ended, n) WHERE ended IS NOT NULL;

-- The digest of a batch covers that of the batch before it.
CREATE TABLE turnloom_batches (
    run bigint NOT NULL, first bigint NOT NULL, last bigint NOT NULL,
    data bytea NOT NULL, digest bytea NOT NULL,
    PRIMARY KEY (run, first));

-- The ids of events, as digests: they are of one size, however long an id is.
CREATE TABLE turnloom_ids (
    run bigint NOT NULL, key bytea NOT NULL, seq bigint NOT NULL,
    PRIMARY KEY (run, key));

-- The positions of a branch that other runs recorded, and those runs. The segments of a branch of
-- a branch refer to the same runs, so no reader follows a chain.
CREATE TABLE turnloom_branches (
    n bigint NOT NULL, above bigint NOT NULL, upto bigint NOT NULL, source bigint NOT NULL,
    PRIMARY KEY (n, above));
CREATE INDEX turnloom_branches_of ON turnloom_branches (source);

-- Events one by one, for people: those of a branch include what other runs recorded of it.
CREATE VIEW turnloom_log AS
    SELECT held.tenant, held.id AS run, (event ->> 'seq')::bigint AS seq, event ->> 'id' AS id,
        event ->> 'at' AS at, event ->> 'kind' AS kind, event ->> 'actor' AS actor,
        event -> 'data' AS data
    FROM (
        SELECT n AS source, tenant, id, 0::bigint AS above, 9223372036854775807 AS upto
        FROM turnloom_runs
        UNION ALL
        SELECT source, tenant, id, above, upto
        FROM turnloom_branches JOIN turnloom_runs USING (n)
    ) AS held
    JOIN turnloom_batches ON run = source AND first > above AND first <= upto
    CROSS JOIN LATERAL (
        SELECT line::json AS event
        FROM regexp_split_to_table(convert_from(turnloom_batches.data, 'UTF8'), E'\n') AS line
    ) AS lines;

CREATE TABLE turnloom_inbox (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL, run text COLLATE "C" NOT NULL, key bytea NOT NULL,
    id text NOT NULL, message bytea NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (tenant, run, key));

-- A fence is part of a key, so that an append can hold on to a claim while it is renewed, and not
-- while it is taken over. Their numbers only grow.
CREATE SEQUENCE turnloom_fences;
CREATE TABLE turnloom_claims (
    fence bigint PRIMARY KEY, tenant text COLLATE "C" NOT NULL, run text COLLATE "C" NOT NULL,
    owner text NOT NULL, ticket text NOT NULL,
    renewed timestamptz NOT NULL, until timestamptz NOT NULL,
    UNIQUE (tenant, run)) WITH (fillfactor = 80);
CREATE INDEX turnloom_claims_by_owner ON turnloom_claims (owner);

CREATE TABLE turnloom_snapshots (
    tenant text COLLATE "C" NOT NULL, run text COLLATE "C" NOT NULL,
    seq bigint NOT NULL, state bytea NOT NULL,
    PRIMARY KEY (tenant, run));

CREATE TABLE turnloom_results (
    tenant text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL,
    until bigint, value bytea NOT NULL,
    PRIMARY KEY (tenant, key));
CREATE INDEX turnloom_results_over ON turnloom_results (tenant, until) WHERE until IS NOT NULL;

CREATE TABLE turnloom_plans (
    tenant text COLLATE "C" NOT NULL, digest text COLLATE "C" NOT NULL, plan bytea NOT NULL,
    PRIMARY KEY (tenant, digest));

-- Artifacts by number, and their index: each term with the artifact's time, number and opening
-- time. A term includes the tenant.
CREATE SEQUENCE IF NOT EXISTS turnloom_artifact_numbers;
CREATE TABLE IF NOT EXISTS turnloom_artifacts (
    n bigint PRIMARY KEY, tenant text NOT NULL, id text NOT NULL, digest text NOT NULL,
    at bigint NOT NULL, opens bigint, shared boolean NOT NULL, visibility text NOT NULL,
    data text NOT NULL, UNIQUE (tenant, id));
CREATE INDEX IF NOT EXISTS turnloom_openings ON turnloom_artifacts (tenant, opens)
    WHERE opens IS NOT NULL;
CREATE INDEX IF NOT EXISTS turnloom_shared_openings ON turnloom_artifacts (opens)
    WHERE shared AND opens IS NOT NULL;
CREATE INDEX IF NOT EXISTS turnloom_shared_ids ON turnloom_artifacts (id) WHERE shared;
CREATE TABLE IF NOT EXISTS turnloom_terms (
    term bigint NOT NULL, at bigint NOT NULL, n bigint NOT NULL, opens bigint,
    PRIMARY KEY (term, at, n) INCLUDE (opens));
CREATE TABLE IF NOT EXISTS turnloom_consumptions (
    tenant text NOT NULL, artifact text NOT NULL, subscription text NOT NULL,
    run text NOT NULL, turn bigint NOT NULL, agent text NOT NULL, at bigint NOT NULL,
    PRIMARY KEY (tenant, artifact, subscription, run, turn));
CREATE INDEX turnloom_consumptions_by ON turnloom_consumptions (tenant, run);

-- Beliefs about agents, and the events that they are based on.
CREATE TABLE IF NOT EXISTS turnloom_beliefs (
    tenant text NOT NULL, workflow text NOT NULL, category text NOT NULL, agent text NOT NULL,
    successes double precision NOT NULL, failures double precision NOT NULL,
    PRIMARY KEY (tenant, workflow, category, agent));
CREATE TABLE IF NOT EXISTS turnloom_observations (
    tenant text NOT NULL, run text NOT NULL, event text NOT NULL,
    PRIMARY KEY (tenant, run, event));

-- Raises an error for an artifact that exists with other content.
CREATE OR REPLACE FUNCTION turnloom_refuse(id text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'WF001', MESSAGE = id;
END $$;

-- Adds artifacts in order, those that exist excepted. Rows are inserted by id, so that concurrent
-- writers of the same artifacts cannot deadlock.
CREATE FUNCTION turnloom_put(_artifacts json) RETURNS void LANGUAGE sql AS $$
    WITH given AS MATERIALIZED (
        SELECT nextval('turnloom_artifact_numbers') AS n, ordered.* FROM (
            SELECT * FROM ROWS FROM (json_to_recordset(_artifacts) AS (
                tenant text, id text, digest text, at bigint, opens bigint, shared boolean,
                visibility text, data text, terms bigint[])) WITH ORDINALITY
            ORDER BY ordinality
        ) AS ordered
    ), kept AS (
        INSERT INTO turnloom_artifacts AS there
        SELECT n, tenant, id, digest, at, opens, shared, visibility, data FROM given ORDER BY id
        ON CONFLICT (tenant, id) DO UPDATE SET digest = turnloom_refuse(there.id)
            WHERE there.digest <> excluded.digest
        RETURNING n
    )
    INSERT INTO turnloom_terms
    SELECT DISTINCT term, given.at, given.n, given.opens
    FROM kept JOIN given USING (n) CROSS JOIN unnest(given.terms) AS term
$$;

-- Adds consumptions, those that exist excepted; ordered by key, for the same reason.
CREATE FUNCTION turnloom_consume(_consumptions json) RETURNS void LANGUAGE sql AS $$
    INSERT INTO turnloom_consumptions
    SELECT tenant, artifact, subscription, run, turn, agent, at
    FROM json_to_recordset(_consumptions) AS rows (
        tenant text, artifact text, subscription text, run text, turn bigint, agent text, at bigint)
    ORDER BY 1, 2, 3, 4, 5 ON CONFLICT DO NOTHING
$$;

-- Adds outcomes, each once. Writers to a pool take a lock one after the other, pool by pool, so
-- that they cannot deadlock.
CREATE FUNCTION turnloom_observe(_observations json) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    seen record;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('turnloom_beliefs'), pool) FROM (
        SELECT DISTINCT hashtext(json_build_array(tenant, workflow, category)::text) AS pool
        FROM json_to_recordset(_observations) AS rows (tenant text, workflow text, category text)
        ORDER BY 1
    ) AS pools;
    FOR seen IN SELECT * FROM json_to_recordset(_observations) AS rows (
        tenant text, workflow text, category text, run text, event text, agent text,
        credit double precision, kept double precision)
    LOOP
        INSERT INTO turnloom_observations VALUES (seen.tenant, seen.run, seen.event)
        ON CONFLICT DO NOTHING;
        CONTINUE WHEN NOT FOUND;
        IF seen.kept < 1 THEN
            UPDATE turnloom_beliefs
            SET successes = successes * seen.kept, failures = failures * seen.kept
            WHERE tenant = seen.tenant AND workflow = seen.workflow AND category = seen.category;
        END IF;
        INSERT INTO turnloom_beliefs AS known VALUES (
            seen.tenant, seen.workflow, seen.category, seen.agent, seen.credit, 1 - seen.credit)
        ON CONFLICT (tenant, workflow, category, agent) DO UPDATE SET
            successes = known.successes + excluded.successes,
            failures = known.failures + excluded.failures;
    END LOOP;
END $$;

-- Clears messages whose events are stored. Their rows stay for readers that have not seen them
-- yet, until the next message arrives or the run ends.
CREATE FUNCTION turnloom_clear_mail(
    _tenant text, _run text, _keys bytea[], _is_over boolean
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF _is_over THEN
        DELETE FROM turnloom_inbox WHERE tenant = _tenant AND run = _run;
    ELSIF cardinality(_keys) > 0 THEN
        UPDATE turnloom_inbox SET message = ''
        WHERE tenant = _tenant AND run = _run AND key = ANY (_keys);
    END IF;
END $$;

-- What belongs to an append besides its events.
CREATE FUNCTION turnloom_follow(_side json) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF _side -> 'artifacts' IS NOT NULL THEN
        PERFORM turnloom_put(_side -> 'artifacts');
    END IF;
    IF _side -> 'consumptions' IS NOT NULL THEN
        PERFORM turnloom_consume(_side -> 'consumptions');
    END IF;
    IF _side -> 'observations' IS NOT NULL THEN
        PERFORM turnloom_observe(_side -> 'observations');
    END IF;
END $$;

-- Whether a run recorded an event of this id, or began with one as a branch.
CREATE FUNCTION turnloom_has(_n bigint, _key bytea) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM turnloom_ids WHERE run = _n AND key = _key)
        OR EXISTS (
            SELECT FROM turnloom_branches b JOIN turnloom_ids i
                ON i.run = b.source AND i.key = _key AND i.seq > b.above AND i.seq <= b.upto
            WHERE b.n = _n)
$$;

CREATE FUNCTION turnloom_digest(_previous bytea, _data bytea)
RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT substr(sha256(_previous || _data), 1, 16)
$$;

-- Adds the ids of a batch; raises an error with the place of one that is taken.
CREATE FUNCTION turnloom_take(_n bigint, _expected bigint, _keys bytea[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    added bigint;
BEGIN
    INSERT INTO turnloom_ids (run, key, seq)
    SELECT _n, key, _expected + place FROM unnest(_keys) WITH ORDINALITY AS given (key, place)
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS added = ROW_COUNT;
    IF added < cardinality(_keys) THEN
        RAISE EXCEPTION USING ERRCODE = 'WF002', MESSAGE = (
            SELECT min(place)::text FROM unnest(_keys) WITH ORDINALITY AS given (key, place)
            JOIN turnloom_ids i ON i.run = _n AND i.key = given.key
            WHERE i.seq <> _expected + place);
    END IF;
END $$;

-- Appends events after a position. The outcome is one of
--   stored     they are stored;
--   lost       the claim of this fence has ended;
--   elsewhere  the log is at another position, which is returned;
--   damaged    the run has lost its events;
-- or an error: WF001 an artifact exists with other content, WF002 an id is taken.
--
-- The row of the claim is held until the commit, so a claim that is being taken over waits for the
-- append, and an append that waited finds its claim gone. Two appends after one position insert the
-- same key.
CREATE FUNCTION turnloom_append(
    _tenant text, _run text, _expected bigint, _fence bigint, _keys bytea[], _data bytea,
    _workflow text, _user text, _started bigint, _status text, _ended bigint,
    _mail bytea[], _side json,
    OUT outcome text, OUT reached bigint
) LANGUAGE plpgsql AS $$
DECLARE
    there record;
    before record;
    is_new boolean := false;
BEGIN
    outcome := 'stored';
    reached := _expected + cardinality(_keys);
    IF _fence IS NOT NULL THEN
        PERFORM FROM turnloom_claims
        WHERE fence = _fence AND tenant = _tenant AND run = _run AND until > clock_timestamp()
        FOR KEY SHARE;
        IF NOT FOUND THEN
            outcome := 'lost';
            RETURN;
        END IF;
    END IF;
    SELECT n, status, is_branch INTO there FROM turnloom_runs
    WHERE tenant = _tenant AND id = _run;
    IF NOT FOUND AND _expected = 0 THEN
        INSERT INTO turnloom_runs (tenant, id, workflow, user_name, started, status, ended)
        VALUES (_tenant, _run, _workflow, _user, _started, _status, _ended)
        ON CONFLICT DO NOTHING RETURNING n, status, is_branch INTO there;
        is_new := FOUND;
    END IF;
    IF there.n IS NULL THEN
        outcome := 'elsewhere';
        reached := 0;
        RETURN;
    END IF;
    SELECT last, digest INTO before FROM turnloom_batches
    WHERE run = there.n ORDER BY first DESC LIMIT 1;
    IF coalesce(before.last, 0) <> _expected THEN
        outcome := 'elsewhere';
        reached := before.last;
        RETURN;
    END IF;
    IF before.last IS NULL AND NOT is_new THEN
        outcome := 'damaged';
        RETURN;
    END IF;
    INSERT INTO turnloom_batches VALUES (
        there.n, _expected + 1, reached, _data, turnloom_digest(coalesce(before.digest, ''), _data))
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        outcome := 'elsewhere';
        SELECT max(last) INTO reached FROM turnloom_batches WHERE run = there.n;
        RETURN;
    END IF;
    IF there.is_branch THEN
        PERFORM turnloom_refuse_taken(there.n, _keys);
    END IF;
    PERFORM turnloom_take(there.n, _expected, _keys);
    IF there.status <> _status THEN
        UPDATE turnloom_runs SET status = _status, ended = _ended WHERE n = there.n;
    END IF;
    IF _side IS NOT NULL THEN
        PERFORM turnloom_follow(_side);
    END IF;
    IF _ended IS NOT NULL OR _mail IS NOT NULL THEN
        PERFORM turnloom_clear_mail(_tenant, _run, _mail, _ended IS NOT NULL);
    END IF;
END $$;

-- Raises an error if a branch began with an event of one of these ids.
CREATE FUNCTION turnloom_refuse_taken(_n bigint, _keys bytea[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    taken bigint;
BEGIN
    SELECT min(place) INTO taken FROM unnest(_keys) WITH ORDINALITY AS given (key, place)
    WHERE turnloom_has(_n, key);
    IF taken IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'WF002', MESSAGE = taken::text;
    END IF;
END $$;

-- Starts a run with the first events of another one, and appends events to it. The outcome is one
-- of stored, elsewhere (the same branch is there), exists (another run is there), unknown (there is
-- no origin), outside (the origin ends at the returned position), damaged (the event is missing),
-- inside (the batch ends at the returned position).
CREATE FUNCTION turnloom_branch(
    _tenant text, _run text, _origin text, _at bigint, _keys bytea[], _data bytea,
    _started bigint, _status text, _ended bigint, _mail bytea[], _side json,
    OUT outcome text, OUT reached bigint
) LANGUAGE plpgsql AS $$
DECLARE
    origin record;
    cut record;
    own bigint;
    existing bigint;
    segments text;
BEGIN
    outcome := 'unknown';
    SELECT n, workflow, user_name INTO origin FROM turnloom_runs
    WHERE tenant = _tenant AND id = _origin FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT b.last, b.digest INTO cut FROM turnloom_batches b
    WHERE b.run = coalesce((
            SELECT source FROM turnloom_branches
            WHERE n = origin.n AND above < _at AND _at <= upto), origin.n)
        AND b.first <= _at ORDER BY b.first DESC LIMIT 1;
    IF _at < 1 OR cut.last IS NULL OR cut.last < _at THEN
        SELECT max(last) INTO reached FROM turnloom_batches WHERE run = origin.n;
        outcome := CASE WHEN _at > 0 AND _at <= reached THEN 'damaged' ELSE 'outside' END;
        RETURN;
    END IF;
    IF cut.last <> _at THEN
        outcome := 'inside';
        reached := cut.last;
        RETURN;
    END IF;
    INSERT INTO turnloom_runs (
        tenant, id, workflow, user_name, started, status, ended, is_branch)
    VALUES (_tenant, _run, origin.workflow, origin.user_name, _started, _status, _ended, true)
    ON CONFLICT DO NOTHING RETURNING n INTO own;
    SELECT string_agg(format('%s-%s-%s', above, least(upto, _at), source), ' ' ORDER BY above)
    INTO segments FROM turnloom_parts(origin.n) WHERE above < _at;
    IF own IS NULL THEN
        SELECT n INTO existing FROM turnloom_runs WHERE tenant = _tenant AND id = _run;
        outcome := CASE WHEN segments = (
            SELECT string_agg(format('%s-%s-%s', above, upto, source), ' ' ORDER BY above)
            FROM turnloom_branches WHERE n = existing) THEN 'elsewhere' ELSE 'exists' END;
        RETURN;
    END IF;
    INSERT INTO turnloom_branches
    SELECT own, above, least(upto, _at), source FROM turnloom_parts(origin.n) WHERE above < _at;
    outcome := 'stored';
    reached := _at + cardinality(_keys);
    INSERT INTO turnloom_batches
    VALUES (own, _at + 1, reached, _data, turnloom_digest(cut.digest, _data));
    PERFORM turnloom_take(own, _at, _keys);
    IF _side IS NOT NULL THEN
        PERFORM turnloom_follow(_side);
    END IF;
    IF _ended IS NOT NULL OR _mail IS NOT NULL THEN
        PERFORM turnloom_clear_mail(_tenant, _run, _mail, _ended IS NOT NULL);
    END IF;
END $$;

-- The runs that recorded the positions of a run, its own last.
CREATE FUNCTION turnloom_parts(_n bigint)
RETURNS TABLE (source bigint, above bigint, upto bigint) LANGUAGE sql STABLE AS $$
    SELECT source, above, upto FROM turnloom_branches WHERE n = _n
    UNION ALL
    SELECT _n, coalesce((SELECT max(upto) FROM turnloom_branches WHERE n = _n), 0),
        9223372036854775807
$$;

-- Keeps a message, unless its id is known. The outcome is one of new, recorded (the log has it),
-- kept (the inbox has it; the stored message is returned), full (as many wait as may).
CREATE FUNCTION turnloom_offer(
    _tenant text, _run text, _key bytea, _id text, _message bytea, _most bigint,
    OUT outcome text, OUT number bigint, OUT kept bytea
) LANGUAGE plpgsql AS $$
DECLARE
    own bigint;
BEGIN
    SELECT n INTO own FROM turnloom_runs WHERE tenant = _tenant AND id = _run;
    IF turnloom_has(own, _key) THEN
        outcome := 'recorded';
        RETURN;
    END IF;
    DELETE FROM turnloom_inbox WHERE n IN (
        SELECT n FROM turnloom_inbox
        WHERE tenant = _tenant AND run = _run AND turnloom_has(own, key) FOR UPDATE SKIP LOCKED);
    SELECT message INTO kept FROM turnloom_inbox
    WHERE tenant = _tenant AND run = _run AND key = _key;
    IF FOUND THEN
        outcome := 'kept';
        RETURN;
    END IF;
    IF _most IS NOT NULL THEN
        SELECT count(*) INTO number FROM turnloom_inbox WHERE tenant = _tenant AND run = _run;
        IF number >= _most THEN
            outcome := 'full';
            RETURN;
        END IF;
    END IF;
    outcome := 'new';
    INSERT INTO turnloom_inbox (tenant, run, key, id, message)
    VALUES (_tenant, _run, _key, _id, _message) ON CONFLICT DO NOTHING RETURNING n INTO number;
    IF number IS NULL THEN
        outcome := 'kept';
    END IF;
END $$;

-- Raises an error if the schema is not the one that the caller knows.
CREATE FUNCTION turnloom_require(_version integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    present integer;
BEGIN
    SELECT version INTO present FROM turnloom_schema WHERE part = 'store';
    IF present IS DISTINCT FROM _version THEN
        RAISE EXCEPTION USING ERRCODE = 'WF003', MESSAGE = coalesce(present, 0)::text;
    END IF;
END $$;

-- Claims a run for one lease, by the clock of the database: if it is free, its lease is over, or
-- its owner is known to be dead. Otherwise the owner is returned, with the seconds that the lease
-- lasts, and the seconds since it was renewed. The same ticket again gets the same claim.
CREATE FUNCTION turnloom_claim(
    _version integer, _tenant text, _run text, _owner text, _ticket text,
    _lease double precision, _dead text,
    OUT fence bigint, OUT holder text, OUT seconds double precision, OUT silent double precision
) LANGUAGE plpgsql AS $$
DECLARE
    now timestamptz := clock_timestamp();
    there record;
BEGIN
    PERFORM turnloom_require(_version);
    INSERT INTO turnloom_claims AS held VALUES (
        nextval('turnloom_fences'), _tenant, _run, _owner, _ticket,
        now, now + make_interval(secs => _lease))
    ON CONFLICT (tenant, run) DO UPDATE SET
        fence = excluded.fence, owner = excluded.owner, ticket = excluded.ticket,
        renewed = excluded.renewed, until = excluded.until
    WHERE held.until <= clock_timestamp() OR held.owner = _dead
    RETURNING held.fence INTO fence;
    IF fence IS NOT NULL THEN
        RETURN;
    END IF;
    SELECT c.fence, c.owner, c.ticket, c.renewed, c.until INTO there
    FROM turnloom_claims c WHERE c.tenant = _tenant AND c.run = _run;
    IF there.owner = _owner AND there.ticket = _ticket THEN
        fence := there.fence;
        RETURN;
    END IF;
    holder := coalesce(there.owner, '');
    seconds := extract(epoch FROM there.until - clock_timestamp());
    silent := extract(epoch FROM clock_timestamp() - there.renewed);
END $$;

-- Renews the claims of an owner that are not over; returns their fences.
CREATE FUNCTION turnloom_renew(_version integer, _owner text, _lease double precision)
RETURNS SETOF bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM turnloom_require(_version);
    RETURN QUERY UPDATE turnloom_claims
    SET renewed = clock_timestamp(), until = clock_timestamp() + make_interval(secs => _lease)
    WHERE owner = _owner AND until > clock_timestamp() RETURNING fence;
END $$;
