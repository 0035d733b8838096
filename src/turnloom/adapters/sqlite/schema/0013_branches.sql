-- The positions of a branch that other runs recorded, and those runs. The runs have no gaps, so a
-- segment ends where the next one begins.
CREATE TABLE branches (
    n INTEGER NOT NULL, above INTEGER NOT NULL, upto INTEGER NOT NULL, source INTEGER NOT NULL,
    PRIMARY KEY (n, above)
) WITHOUT ROWID;
CREATE INDEX branches_of ON branches (source);

-- Events one by one, for people: those of a branch include what other runs recorded of it.
DROP VIEW log;
CREATE VIEW log AS
    SELECT held.tenant AS tenant, held.id AS run, json_extract(value, '$.seq') AS seq,
        json_extract(value, '$.id') AS id, json_extract(value, '$.at') AS at,
        json_extract(value, '$.kind') AS kind, json_extract(value, '$.actor') AS actor,
        json_extract(value, '$.data') AS data
    FROM (
        SELECT n, tenant, id, n << 32 AS above, (n + 1) << 32 AS upto FROM runs
        UNION ALL
        SELECT runs.n, tenant, id, (source << 32) + above, (source << 32) + upto
        FROM branches JOIN runs ON runs.n = branches.n
    ) AS held
    JOIN batches ON pos > held.above AND pos <= held.upto
    JOIN json_each('[' || replace(CAST(batches.data AS TEXT), char(10), ',') || ']')
    ORDER BY held.n, pos & 0xffffffff, key;
