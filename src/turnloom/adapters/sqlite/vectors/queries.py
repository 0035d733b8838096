"""All SQL statements of collections in a SQLite file.

A document is stored once, under its tenant and id. Each of its facts and chunks has a row. The
vectors are in a separate table, so that all of them can be read without the texts. Chunks refer to
tenants by number. Chunk numbers only grow: those above the highest known number are new. Each write
creates a generation of its collection, a digest of everything written so far. So a reader that
knows a listed generation knows a part of the current content.
"""

# Marks a file as collections ("LVEC"), and the version of its schema.
APPLICATION = 0x4C564543
VERSION = 3

SCHEMA = (
    """CREATE TABLE collections (
        n INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, embedder TEXT NOT NULL,
        version TEXT NOT NULL, dimensions INTEGER NOT NULL, generation TEXT NOT NULL
    )""",
    """CREATE TABLE generations (
        collection INTEGER NOT NULL, generation TEXT NOT NULL, PRIMARY KEY (collection, generation)
    ) WITHOUT ROWID""",
    "CREATE TABLE tenants (n INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    """CREATE TABLE documents (
        n INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL, tenant INTEGER NOT NULL,
        id TEXT NOT NULL, digest TEXT NOT NULL, metadata TEXT NOT NULL, visibility TEXT NOT NULL,
        shared INTEGER NOT NULL, UNIQUE (collection, tenant, id)
    )""",
    """CREATE INDEX restricted ON documents (collection, tenant, visibility, n)
        WHERE visibility <> ''""",
    "CREATE INDEX shared_documents ON documents (collection, visibility, n) WHERE shared",
    """CREATE TABLE facts (
        collection INTEGER NOT NULL, fact TEXT NOT NULL, document INTEGER NOT NULL,
        PRIMARY KEY (collection, fact, document)
    ) WITHOUT ROWID""",
    "CREATE INDEX facts_of ON facts (document)",
    """CREATE TABLE chunks (
        n INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL,
        document INTEGER NOT NULL, tenant INTEGER NOT NULL, place INTEGER NOT NULL,
        content TEXT NOT NULL
    )""",
    "CREATE INDEX chunks_of ON chunks (document)",
    "CREATE INDEX all_chunks ON chunks (collection, n, document, tenant)",
    "CREATE TABLE vectors (chunk INTEGER PRIMARY KEY, vector BLOB NOT NULL)",
    "CREATE VIRTUAL TABLE words USING fts5 (content, content='chunks', content_rowid='n')",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)

APPLICATION_ID = "PRAGMA application_id"
USER_VERSION = "PRAGMA user_version"
IS_EMPTY = "SELECT count(*) = 0 FROM sqlite_master"
USE_WAL = "PRAGMA journal_mode = WAL"
SETTINGS = ("PRAGMA synchronous = NORMAL",)

BEGIN = "BEGIN"
BEGIN_WRITING = "BEGIN IMMEDIATE"
COMMIT = "COMMIT"

COLLECTION = """
    SELECT n, embedder, version, dimensions, generation FROM collections WHERE name = ?"""
ADD_COLLECTION = """
    INSERT INTO collections (name, embedder, version, dimensions, generation)
    VALUES (?, ?, ?, ?, '')"""
BECOME = "UPDATE collections SET generation = ?2 WHERE n = ?1"
ADD_GENERATION = "INSERT INTO generations VALUES (?, ?)"
HAS_GENERATION = "SELECT 1 FROM generations WHERE collection = ? AND generation = ?"
LAST_CHUNK = "SELECT max(seq) FROM sqlite_sequence WHERE name = 'chunks'"

TENANT = "SELECT n FROM tenants WHERE name = ?"
ADD_TENANT = "INSERT OR IGNORE INTO tenants (name) VALUES (?)"

DIGESTS = """
    SELECT d.id, d.digest FROM json_each(?3) j
    JOIN documents d ON d.collection = ?1 AND d.tenant = ?2 AND d.id = j.value"""
NUMBERS = """
    SELECT d.n FROM json_each(?3) j
    JOIN documents d ON d.collection = ?1 AND d.tenant = ?2 AND d.id = j.value"""
# To delete from the word index, FTS5 needs the full text.
FORGET_WORDS = """
    INSERT INTO words (words, rowid, content)
    SELECT 'delete', c.n, c.content FROM json_each(?) j JOIN chunks c ON c.document = j.value"""
DROP_VECTORS = """
    DELETE FROM vectors WHERE chunk IN (
        SELECT c.n FROM json_each(?) j JOIN chunks c ON c.document = j.value)"""
DROP_CHUNKS = "DELETE FROM chunks WHERE document IN (SELECT value FROM json_each(?))"
DROP_FACTS = """
    DELETE FROM facts WHERE (collection, fact, document) IN (
        SELECT f.collection, f.fact, f.document FROM json_each(?) j
        JOIN facts f ON f.document = j.value)"""
DROP_DOCUMENTS = "DELETE FROM documents WHERE n IN (SELECT value FROM json_each(?))"

ADD_DOCUMENT = """
    INSERT INTO documents (collection, tenant, id, digest, metadata, visibility, shared)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""
ADD_FACT = "INSERT INTO facts VALUES (?, ?, ?)"
ADD_CHUNK = """
    INSERT INTO chunks (collection, document, tenant, place, content) VALUES (?, ?, ?, ?, ?)"""
ADD_VECTOR = "INSERT INTO vectors VALUES (?, ?)"
ADD_WORDS = "INSERT INTO words (rowid, content) VALUES (?, ?)"

CHUNKS = "SELECT n, document, tenant FROM chunks WHERE collection = ? ORDER BY n"
VECTORS_AFTER = """
    SELECT v.vector FROM chunks c CROSS JOIN vectors v ON v.chunk = c.n
    WHERE c.collection = ? AND c.n > ? ORDER BY c.n"""
DOCUMENTS_WITH = """
    SELECT DISTINCT f.document FROM json_each(?2) j
    JOIN facts f ON f.collection = ?1 AND f.fact = j.value"""
HAVING = """
    SELECT d.id FROM facts f JOIN documents d ON d.n = f.document
    WHERE f.collection = ?1 AND d.tenant = ?2 AND f.fact = ?3"""
# One index lookup per visibility, regardless of the number of documents.
VISIBILITIES = """
    WITH RECURSIVE found (visibility) AS (
        SELECT min(visibility) FROM documents
        WHERE collection = ?1 AND tenant = ?2 AND visibility <> ''
        UNION ALL
        SELECT (SELECT min(d.visibility) FROM documents d
                WHERE d.collection = ?1 AND d.tenant = ?2
                AND d.visibility <> '' AND d.visibility > found.visibility)
        FROM found WHERE found.visibility IS NOT NULL
    ) SELECT visibility FROM found WHERE visibility IS NOT NULL"""
SHARED_VISIBILITIES = """
    WITH RECURSIVE found (visibility) AS (
        SELECT min(visibility) FROM documents WHERE collection = ?1 AND shared
        UNION ALL
        SELECT (SELECT min(d.visibility) FROM documents d
                WHERE d.collection = ?1 AND d.shared AND d.visibility > found.visibility)
        FROM found WHERE found.visibility IS NOT NULL
    ) SELECT visibility FROM found WHERE visibility IS NOT NULL"""
ANY_DOCUMENT = """
    SELECT 1 FROM documents WHERE collection = ?1 AND (tenant = ?2 OR shared) LIMIT 1"""
DOCUMENTS_FOR = """
    SELECT d.n FROM json_each(?3) j
    JOIN documents d ON d.collection = ?1 AND d.tenant = ?2
    AND d.visibility <> '' AND d.visibility = j.value"""
DOCUMENTS_SHARED = """
    SELECT d.n FROM json_each(?2) j
    JOIN documents d ON d.collection = ?1 AND d.shared AND d.visibility = j.value"""
CHUNKS_WITH_WORD = "SELECT rowid FROM words WHERE words MATCH ?"
SOURCES = """
    SELECT c.n, d.id, c.place FROM json_each(?1) j
    JOIN chunks c ON c.n = j.value JOIN documents d ON d.n = c.document
    JOIN tenants t ON t.n = d.tenant ORDER BY t.name <> ?2, t.name"""
CONTENT = """
    SELECT c.content, d.metadata, d.visibility FROM chunks c JOIN documents d ON d.n = c.document
    WHERE c.n = ?"""
