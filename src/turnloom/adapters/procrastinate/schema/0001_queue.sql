-- Which runs wait for a drive, and which limits hold, beside the job table of Procrastinate.
--
-- A woken run is a row of turnloom_queue. It becomes a job of Procrastinate when its tenant has room,
-- so that the job table stays small however many runs wait, and tenants take turns.
--
-- Locks are taken in this order, so that there are no deadlocks: the advisory lock of the tenant, the
-- job, the row of the queue, the timer.

CREATE TABLE turnloom_queue (
    tenant text NOT NULL,
    run text NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    job bigint,                             -- while it waits for room: NULL
    tag bigint NOT NULL DEFAULT 0,          -- the round in which it is its tenant's turn
    again boolean NOT NULL DEFAULT false,   -- woken since its drive began
    PRIMARY KEY (tenant, run)
);
CREATE INDEX turnloom_queue_waiting ON turnloom_queue (tenant, number) WHERE job IS NULL;
CREATE INDEX turnloom_queue_admitted ON turnloom_queue (tenant, tag) WHERE job IS NOT NULL;

CREATE TABLE turnloom_timers (
    tenant text NOT NULL,
    run text NOT NULL,
    due timestamptz NOT NULL,
    PRIMARY KEY (tenant, run)
);
CREATE INDEX turnloom_timers_due ON turnloom_timers (due);

-- How many runs of a tenant are driven at once; `*` stands for those that are not named.
CREATE TABLE turnloom_limits (tenant text PRIMARY KEY, most integer NOT NULL);

-- Queues of runs whose code some worker lacks, and the runs that wait there.
CREATE TABLE turnloom_needs (queue text PRIMARY KEY, needs text NOT NULL);
CREATE TABLE turnloom_refused (
    tenant text NOT NULL,
    run text NOT NULL,
    needs text NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, run)
);

-- Who holds a place of a limit, and when places of limits per minute were taken.
CREATE TABLE turnloom_permits (
    name text NOT NULL,
    holder text NOT NULL,
    place text NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (name, holder, place)
);
CREATE INDEX turnloom_permits_holder ON turnloom_permits (holder);
CREATE TABLE turnloom_calls (name text NOT NULL, at timestamptz NOT NULL);
CREATE INDEX turnloom_calls_name ON turnloom_calls (name, at);

CREATE FUNCTION turnloom_lock(_tenant text) RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('turnloom:' || _tenant, 0));
$$;

CREATE FUNCTION turnloom_name(_tenant text, _run text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT 'turnloom:' || encode(
        sha256(convert_to(jsonb_build_array(_tenant, _run)::text, 'UTF8')), 'hex');
$$;

-- Make jobs of the tenant's runs that wait, while it has room. The caller holds the tenant's lock.
--
-- A job gets the round after that of the tenant's last one, and none that is over. Its priority is
-- the round, so that a tenant with many runs delays another's first by one drive.
CREATE FUNCTION turnloom_admit(_tenant text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _free bigint;
    _last bigint;
    _round bigint;
    _run text;
BEGIN
    IF NOT EXISTS (SELECT FROM turnloom_queue WHERE tenant = _tenant AND job IS NULL) THEN
        RETURN;
    END IF;
    SELECT coalesce(
            (SELECT most FROM turnloom_limits WHERE tenant = _tenant),
            (SELECT most FROM turnloom_limits WHERE tenant = '*'),
            1000
        ) - count(*), max(tag)
        FROM turnloom_queue WHERE tenant = _tenant AND job IS NOT NULL INTO _free, _last;
    IF _free <= 0 THEN
        RETURN;
    END IF;
    SELECT coalesce(-max(priority), 0) FROM procrastinate_jobs WHERE status = 'todo' INTO _round;
    FOR _run IN SELECT run FROM turnloom_queue WHERE tenant = _tenant AND job IS NULL
        ORDER BY number LIMIT _free FOR UPDATE
    LOOP
        _last := least(greatest(_round, coalesce(_last + 1, 0)), 2147483647);
        UPDATE turnloom_queue SET tag = _last, job = coalesce(
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

CREATE FUNCTION turnloom_wake(_tenant text, _run text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM turnloom_lock(_tenant);
    INSERT INTO turnloom_queue AS known (tenant, run) VALUES (_tenant, _run)
        ON CONFLICT (tenant, run) DO UPDATE SET again = known.job IS NOT NULL;
    PERFORM turnloom_admit(_tenant);
END;
$$;

-- Set the timer of a run; an instant that has passed wakes it.
CREATE FUNCTION turnloom_wake_at(_tenant text, _run text, _due timestamptz)
    RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF _due <= clock_timestamp() THEN
        PERFORM turnloom_wake(_tenant, _run);
    ELSE
        INSERT INTO turnloom_timers VALUES (_tenant, _run, _due)
            ON CONFLICT (tenant, run) DO UPDATE SET due = excluded.due;
    END IF;
END;
$$;

-- Wake runs whose timers are due, of one tenant that no other worker looks at; how many, and the
-- seconds until the next timer.
CREATE FUNCTION turnloom_fire(OUT fired bigint, OUT next double precision)
    LANGUAGE plpgsql AS $$
DECLARE
    _tenant text;
    _runs text[];
BEGIN
    fired := 0;
    SELECT tenant FROM turnloom_timers WHERE due <= clock_timestamp() ORDER BY due LIMIT 1
        INTO _tenant;
    IF _tenant IS NOT NULL
        AND pg_try_advisory_xact_lock(hashtextextended('turnloom:' || _tenant, 0))
    THEN
        _runs := ARRAY(SELECT run FROM turnloom_timers
            WHERE tenant = _tenant AND due <= clock_timestamp() ORDER BY due LIMIT 500);
        INSERT INTO turnloom_queue AS known (tenant, run) SELECT _tenant, unnest(_runs)
            ON CONFLICT (tenant, run) DO UPDATE SET again = known.job IS NOT NULL;
        DELETE FROM turnloom_timers
            WHERE tenant = _tenant AND run = ANY (_runs) AND due <= clock_timestamp();
        GET DIAGNOSTICS fired = ROW_COUNT;
        PERFORM turnloom_admit(_tenant);
    END IF;
    SELECT extract(epoch FROM min(due) - clock_timestamp()) FROM turnloom_timers INTO next;
END;
$$;

-- Take the next job for a worker that lacks the code of some queues.
CREATE FUNCTION turnloom_fetch(
    _worker bigint, _lacking text[], OUT job bigint, OUT tenant text, OUT run text
) LANGUAGE plpgsql AS $$
DECLARE
    _found procrastinate_jobs;
BEGIN
    _found := procrastinate_fetch_job_v2(
        (ARRAY(SELECT queue FROM turnloom_needs WHERE queue <> ALL (_lacking)) || 'turnloom'::text)
            ::varchar[],
        _worker
    );
    job := _found.id;
    tenant := _found.args ->> 'tenant';
    run := _found.args ->> 'run';
    IF job IS NOT NULL THEN
        UPDATE turnloom_queue AS known SET again = false
            WHERE known.tenant = _found.args ->> 'tenant' AND known.run = _found.args ->> 'run';
        DELETE FROM turnloom_timers AS timer
            WHERE timer.tenant = _found.args ->> 'tenant' AND timer.run = _found.args ->> 'run';
    END IF;
END;
$$;

-- The end of a job: the run leaves the queue, or waits in it again.
CREATE FUNCTION turnloom_settle(_job bigint, _tenant text, _run text)
    RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM procrastinate_finish_job_v1(_job, 'succeeded', true);
    DELETE FROM turnloom_queue
        WHERE tenant = _tenant AND run = _run AND job = _job AND NOT again;
    UPDATE turnloom_queue SET job = NULL, again = false, tag = 0, number = DEFAULT
        WHERE tenant = _tenant AND run = _run AND job = _job;
END;
$$;

-- End a drive, unless another worker took the job over; set the run's timer.
CREATE FUNCTION turnloom_finish(
    _job bigint, _worker bigint, _tenant text, _run text, _due timestamptz
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
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

-- Drop what is queued for a run, and its timer; ask its worker to interrupt its drive.
CREATE FUNCTION turnloom_cancel(_tenant text, _run text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _job bigint;
    _status procrastinate_job_status;
BEGIN
    PERFORM turnloom_lock(_tenant);
    SELECT job FROM turnloom_queue WHERE tenant = _tenant AND run = _run INTO _job;
    SELECT status FROM procrastinate_jobs WHERE id = _job FOR UPDATE INTO _status;
    IF _status = 'doing' THEN
        PERFORM procrastinate_cancel_job_v1(_job, true, true);
        UPDATE turnloom_queue SET again = false WHERE tenant = _tenant AND run = _run;
    ELSE
        IF _status = 'todo' THEN
            PERFORM procrastinate_cancel_job_v1(_job, false, true);
        END IF;
        DELETE FROM turnloom_queue WHERE tenant = _tenant AND run = _run;
        DELETE FROM turnloom_refused WHERE tenant = _tenant AND run = _run;
    END IF;
    DELETE FROM turnloom_timers WHERE tenant = _tenant AND run = _run;
    PERFORM turnloom_admit(_tenant);
END;
$$;

CREATE FUNCTION turnloom_notify(_job bigint) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify(
        'procrastinate_any_queue_v1',
        json_build_object('type', 'job_inserted', 'job_id', _job)::text
    );
$$;

-- Let other workers do a job. One that waits for the same run does its work instead.
CREATE FUNCTION turnloom_return(_job bigint, _queue text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _waiting bigint;
BEGIN
    PERFORM procrastinate_retry_job_v2(_job, clock_timestamp(), NULL, _queue, NULL);
    PERFORM turnloom_notify(_job);
EXCEPTION WHEN unique_violation THEN
    SELECT todo.id FROM procrastinate_jobs AS todo JOIN procrastinate_jobs AS doing
        ON todo.queueing_lock = doing.queueing_lock
        WHERE doing.id = _job AND todo.status = 'todo' INTO _waiting;
    PERFORM procrastinate_finish_job_v1(_job, 'failed', true);
    UPDATE turnloom_queue SET job = _waiting WHERE job = _job;
END;
$$;

-- Give a job back that a worker does not do, for any other, or for those with the code it needs.
CREATE FUNCTION turnloom_give_back(_job bigint, _worker bigint, _needs text, _queue text)
    RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _found procrastinate_jobs;
BEGIN
    SELECT * FROM procrastinate_jobs
        WHERE id = _job AND worker_id = _worker AND status = 'doing' FOR UPDATE INTO _found;
    IF _found.id IS NULL THEN
        RETURN;
    END IF;
    IF _found.abort_requested THEN
        PERFORM turnloom_settle(_job, _found.args ->> 'tenant', _found.args ->> 'run');
        RETURN;
    END IF;
    IF _needs IS NOT NULL THEN
        INSERT INTO turnloom_needs VALUES (_queue, _needs) ON CONFLICT DO NOTHING;
        INSERT INTO turnloom_refused (tenant, run, needs)
            VALUES (_found.args ->> 'tenant', _found.args ->> 'run', _needs)
            ON CONFLICT (tenant, run) DO UPDATE SET needs = excluded.needs;
    END IF;
    PERFORM turnloom_return(_job, _queue);
END;
$$;

-- Free the jobs of workers that died; how many.
CREATE FUNCTION turnloom_take_over(_lease double precision) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    _found record;
    _count bigint := 0;
BEGIN
    FOR _found IN
        SELECT job.id, job.abort_requested, job.args ->> 'tenant' AS tenant,
            job.args ->> 'run' AS run
        FROM procrastinate_jobs AS job LEFT JOIN procrastinate_workers AS worker
            ON worker.id = job.worker_id
        WHERE job.status = 'doing' AND job.task_name = 'turnloom.drive'
            AND (worker.id IS NULL
                OR worker.last_heartbeat < clock_timestamp() - make_interval(secs => _lease))
        FOR UPDATE OF job SKIP LOCKED
    LOOP
        IF _found.abort_requested THEN
            PERFORM turnloom_settle(_found.id, _found.tenant, _found.run);
        ELSE
            PERFORM turnloom_return(_found.id, NULL);
        END IF;
        _count := _count + 1;
    END LOOP;
    RETURN _count;
END;
$$;

-- Admit what waits although its tenant has room, and queue runs again whose job is gone.
CREATE FUNCTION turnloom_sweep() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _tenant text;
BEGIN
    UPDATE turnloom_queue AS lost SET job = NULL WHERE job IS NOT NULL
        AND NOT EXISTS (SELECT FROM procrastinate_jobs WHERE id = lost.job);
    FOR _tenant IN SELECT DISTINCT tenant FROM turnloom_queue WHERE job IS NULL LOOP
        IF pg_try_advisory_xact_lock(hashtextextended('turnloom:' || _tenant, 0)) THEN
            PERFORM turnloom_admit(_tenant);
        END IF;
    END LOOP;
END;
$$;

-- Take a place of a limit; the seconds until it is worth asking again, or 0 if it was taken.
CREATE FUNCTION turnloom_acquire(
    _name text, _most integer, _per_minute integer, _holder text, _place text,
    _lease double precision
) RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE
    _now timestamptz;
    _used bigint;
    _oldest timestamptz;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('turnloom-limit:' || _name, 0));
    _now := clock_timestamp();
    IF _most > 0 THEN
        DELETE FROM turnloom_permits WHERE name = _name AND until < _now;
        SELECT count(*) FROM turnloom_permits WHERE name = _name INTO _used;
        IF _used >= _most THEN
            RETURN 0.05;
        END IF;
    END IF;
    IF _per_minute > 0 THEN
        DELETE FROM turnloom_calls WHERE name = _name AND at <= _now - interval '1 minute';
        SELECT count(*), min(at) FROM turnloom_calls WHERE name = _name INTO _used, _oldest;
        IF _used >= _per_minute THEN
            RETURN greatest(extract(epoch FROM _oldest + interval '1 minute' - _now), 0.001);
        END IF;
        INSERT INTO turnloom_calls VALUES (_name, _now);
    END IF;
    IF _most > 0 THEN
        INSERT INTO turnloom_permits
            VALUES (_name, _holder, _place, _now + make_interval(secs => _lease))
            ON CONFLICT (name, holder, place) DO UPDATE SET until = excluded.until;
    END IF;
    RETURN 0;
END;
$$;
