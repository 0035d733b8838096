-- Columns that runs are listed and filtered by: the first event says `workflow`, `user` and
-- `started`, the last one `status`.
ALTER TABLE runs ADD COLUMN workflow TEXT;
ALTER TABLE runs ADD COLUMN user TEXT;
ALTER TABLE runs ADD COLUMN started INTEGER;

-- Runs that stand as few do; SQLite ends every index with the number of the row. Most runs never
-- enter it: to begin and end one costs no more than without.
CREATE INDEX rare_runs ON runs (tenant, status) WHERE status = 'failed'
    OR status = 'cancelled' OR status = 'waiting' OR status = 'collecting';

-- An event that cannot be read leaves what is there.
UPDATE runs SET
    workflow = CASE WHEN json_type(first, '$.data.workflow') = 'text'
        THEN json_extract(first, '$.data.workflow') END,
    user = CASE WHEN json_type(first, '$.data.user') = 'text'
        THEN json_extract(first, '$.data.user') END
FROM (
    SELECT n AS number, CASE WHEN json_valid(line) THEN line ELSE '{}' END AS first
    FROM (
        SELECT n, substr(data, 1, instr(data || char(10), char(10)) - 1) AS line
        FROM (
            SELECT runs.n AS n, CAST(batches.data AS TEXT) AS data
            FROM runs JOIN batches ON pos = (runs.n << 32) + 1
        )
    )
)
WHERE n = number AND json_extract(first, '$.kind') = 'run.started';

UPDATE runs SET started = coalesce((
    SELECT strftime('%s', substr(at, 1, 19)) * 1000000
        + CASE WHEN substr(at, 20, 1) = '.'
            THEN CAST(substr(rtrim(substr(at, 21), 'Z') || '000000', 1, 6) AS INTEGER) ELSE 0 END
    FROM (
        SELECT CASE WHEN json_valid(line) THEN json_extract(line, '$.at') END AS at
        FROM (
            SELECT substr(data, 1, instr(data || char(10), char(10)) - 1) AS line
            FROM (SELECT CAST(data AS TEXT) AS data FROM batches WHERE pos = (runs.n << 32) + 1)
        )
    )
), 0);

UPDATE runs SET status = CASE
    WHEN kind IN ('run.finished', 'run.failed', 'run.cancelled') THEN substr(kind, 5)
    WHEN kind <> 'run.paused' THEN 'unfinished'
    WHEN collected IS NULL THEN 'waiting'
    ELSE 'collecting' END
FROM (
    SELECT n AS number, json_extract(line, '$.kind') AS kind,
        json_extract(line, '$.data.collected') AS collected
    FROM (
        SELECT n, (
            SELECT CASE WHEN type = 'object' THEN value END
            FROM json_each(CASE WHEN json_valid(batch) THEN batch ELSE '[]' END)
            ORDER BY key DESC LIMIT 1) AS line
        FROM (
            SELECT runs.n AS n,
                '[' || replace(CAST(data AS TEXT), char(10), ',') || ']' AS batch
            FROM runs JOIN batches ON pos = (
                SELECT max(pos) FROM batches WHERE pos > runs.n << 32 AND pos < (runs.n + 1) << 32)
        )
    )
)
WHERE n = number AND kind IS NOT NULL;
