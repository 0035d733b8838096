-- Which runs waited for the limit of their tenant, and several jobs per fetch.
--
-- What only moves a run through the queue commits without waiting for the disk. If the server crashes
-- then, the last of it may be lost, and is made up for: a wake by the sweep of workers, a fetch by the
-- claim of the run, an end by the heartbeat, which gives back what its worker does not drive. Appends
-- do wait, and what they follow is on disk with them. Without this, a tenant's lock, and the lock of all
-- notifications, would be held until the disk answers.

ALTER TABLE turnloom_queue
    ADD COLUMN since timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN held double precision NOT NULL DEFAULT 0;    -- seconds it waited for its tenant's limit

CREATE FUNCTION turnloom_relax() RETURNS void LANGUAGE sql AS $$
    SELECT set_config('synchronous_commit', 'off', true);
$$;

CREATE FUNCTION turnloom_limit(_tenant text) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT coalesce(
        (SELECT most FROM turnloom_limits WHERE tenant = _tenant),
        (SELECT most FROM turnloom_limits WHERE tenant = '*')
    );
$$;

CREATE OR REPLACE FUNCTION turnloom_admit(_tenant text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _most integer;
    _free bigint;
    _last bigint;
    _round bigint;
    _run text;
BEGIN
    IF NOT EXISTS (SELECT FROM turnloom_queue WHERE tenant = _tenant AND job IS NULL) THEN
        RETURN;
    END IF;
    _most := turnloom_limit(_tenant);
    SELECT coalesce(_most, 1000) - count(*), max(tag)
        FROM turnloom_queue WHERE tenant = _tenant AND job IS NOT NULL INTO _free, _last;
    IF _free <= 0 THEN
        RETURN;
    END IF;
    SELECT coalesce(-max(priority), 0) FROM procrastinate_jobs WHERE status = 'todo' INTO _round;
    FOR _run IN SELECT run FROM turnloom_queue WHERE tenant = _tenant AND job IS NULL
        ORDER BY number LIMIT _free FOR UPDATE
    LOOP
        _last := least(greatest(_round, coalesce(_last + 1, 0)), 2147483647);
        UPDATE turnloom_queue SET tag = _last,
            -- One that is admitted in the transaction that woke it did not wait.
            held = CASE WHEN _most IS NULL THEN 0
                ELSE greatest(extract(epoch FROM now() - since), 0) END,
            job = coalesce(
                (SELECT id FROM procrastinate_jobs
                    WHERE queueing_lock = turnloom_name(_tenant, _run) AND status = 'todo'),
                (procrastinate_defer_jobs_v1(ARRAY[ROW(
                    'turnloom', 'turnloom.drive', -_last,
                    turnloom_name(_tenant, _run), turnloom_name(_tenant, _run),
                    jsonb_build_object('tenant', _tenant, 'run', _run), NULL
                )::procrastinate_job_to_defer_v1]))[1]
            ) WHERE tenant = _tenant AND run = _run;
    END LOOP;
END;
$$;

CREATE OR REPLACE FUNCTION turnloom_wake(_tenant text, _run text)
    RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM turnloom_relax();
    PERFORM turnloom_lock(_tenant);
    INSERT INTO turnloom_queue AS known (tenant, run) VALUES (_tenant, _run)
        ON CONFLICT (tenant, run) DO UPDATE SET again = known.job IS NOT NULL;
    PERFORM turnloom_admit(_tenant);
END;
$$;

-- Take the next jobs for a worker that lacks the code of some queues; with the limit of the tenant, and
-- the seconds that the run waited for it.
DROP FUNCTION turnloom_fetch(bigint, text[]);
CREATE FUNCTION turnloom_fetch(_worker bigint, _lacking text[], _count integer)
    RETURNS TABLE (job bigint, tenant text, run text, held double precision, most integer)
    LANGUAGE plpgsql AS $$
DECLARE
    _queues varchar[] := ARRAY(SELECT queue FROM turnloom_needs WHERE queue <> ALL (_lacking))
        || 'turnloom'::text;
    _found procrastinate_jobs;
BEGIN
    PERFORM turnloom_relax();
    FOR _ IN 1 .. _count LOOP
        _found := procrastinate_fetch_job_v2(_queues, _worker);
        EXIT WHEN _found.id IS NULL;
        job := _found.id;
        tenant := _found.args ->> 'tenant';
        run := _found.args ->> 'run';
        held := 0;
        UPDATE turnloom_queue AS known SET again = false
            WHERE known.tenant = _found.args ->> 'tenant' AND known.run = _found.args ->> 'run'
            RETURNING known.held INTO held;
        most := CASE WHEN held > 0 THEN turnloom_limit(_found.args ->> 'tenant') END;
        DELETE FROM turnloom_timers AS timer
            WHERE timer.tenant = _found.args ->> 'tenant' AND timer.run = _found.args ->> 'run';
        RETURN NEXT;
    END LOOP;
END;
$$;

CREATE OR REPLACE FUNCTION turnloom_settle(_job bigint, _tenant text, _run text)
    RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM procrastinate_finish_job_v1(_job, 'succeeded', true);
    DELETE FROM turnloom_queue
        WHERE tenant = _tenant AND run = _run AND job = _job AND NOT again;
    UPDATE turnloom_queue
        SET job = NULL, again = false, tag = 0, number = DEFAULT, since = DEFAULT, held = 0
        WHERE tenant = _tenant AND run = _run AND job = _job;
END;
$$;

CREATE OR REPLACE FUNCTION turnloom_finish(
    _job bigint, _worker bigint, _tenant text, _run text, _due timestamptz
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM turnloom_relax();
    PERFORM turnloom_lock(_tenant);
    PERFORM FROM procrastinate_jobs
        WHERE id = _job AND worker_id = _worker AND status = 'doing' FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM turnloom_settle(_job, _tenant, _run);
    DELETE FROM turnloom_refused WHERE tenant = _tenant AND run = _run;
    IF _due <= clock_timestamp() THEN
        INSERT INTO turnloom_queue (tenant, run) VALUES (_tenant, _run)
            ON CONFLICT (tenant, run) DO NOTHING;
    ELSIF _due IS NOT NULL THEN
        INSERT INTO turnloom_timers AS known VALUES (_tenant, _run, _due)
            ON CONFLICT (tenant, run) DO UPDATE SET due = least(known.due, excluded.due);
    END IF;
    PERFORM turnloom_admit(_tenant);
    RETURN true;
END;
$$;

CREATE OR REPLACE FUNCTION turnloom_sweep() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _tenant text;
BEGIN
    UPDATE turnloom_queue AS lost SET job = NULL, since = DEFAULT, held = 0 WHERE job IS NOT NULL
        AND NOT EXISTS (SELECT FROM procrastinate_jobs WHERE id = lost.job);
    FOR _tenant IN SELECT DISTINCT tenant FROM turnloom_queue WHERE job IS NULL LOOP
        IF pg_try_advisory_xact_lock(hashtextextended('turnloom:' || _tenant, 0)) THEN
            PERFORM turnloom_admit(_tenant);
        END IF;
    END LOOP;
END;
$$;

-- Limit these tenants and no others. Runs that were admitted beyond a limit wait again, unless they
-- are driven already. Nobody admits runs meanwhile.
CREATE FUNCTION turnloom_set_limits(_tenants text[], _most integer[])
    RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _job bigint;
BEGIN
    LOCK TABLE turnloom_queue IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM turnloom_limits WHERE tenant <> ALL (_tenants);
    INSERT INTO turnloom_limits SELECT * FROM unnest(_tenants, _most)
        ON CONFLICT (tenant) DO UPDATE SET most = excluded.most;
    FOR _job IN
        SELECT id FROM procrastinate_jobs WHERE status = 'todo' AND id IN (
            SELECT job FROM (
                SELECT known.tenant, known.job, row_number() OVER (
                    PARTITION BY known.tenant ORDER BY admitted.status <> 'doing', known.number
                ) AS place
                FROM turnloom_queue AS known
                JOIN procrastinate_jobs AS admitted ON admitted.id = known.job
            ) AS placed WHERE place > turnloom_limit(tenant)
        ) FOR UPDATE SKIP LOCKED
    LOOP
        PERFORM procrastinate_cancel_job_v1(_job, false, true);
        UPDATE turnloom_queue SET job = NULL, tag = 0, since = DEFAULT WHERE job = _job;
    END LOOP;
END;
$$;
