-- What a message costs does not grow with those that wait: the ones whose events are stored are
-- found by their empty content. Asking the log about each that waits took a second for 10,000.
CREATE INDEX turnloom_inbox_cleared ON turnloom_inbox (tenant, run) WHERE message = '';

CREATE OR REPLACE FUNCTION turnloom_offer(
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
    DELETE FROM turnloom_inbox WHERE n = ANY (ARRAY(
        SELECT n FROM turnloom_inbox
        WHERE tenant = _tenant AND run = _run AND message = '' FOR UPDATE SKIP LOCKED));
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
