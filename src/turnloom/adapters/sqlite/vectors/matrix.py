"""All vectors of a collection as one matrix, and a search for its best rows."""

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnloom.adapters.sqlite.vectors import queries

Numbers = NDArray[np.int64]
Bits = NDArray[np.bool_]
Floats = NDArray[np.floating[Any]]

# The stored format of vectors: little-endian 32-bit floats.
DTYPE = "<f4"
# Vectors read at once.
BATCH = 4_096
# The tolerance of scores that count as equal, which covers rounding errors.
SLACK = 2e-6
# Below this share of rows, they are selected before the multiplication.
SPARSE = 0.25


class Matrix(NamedTuple):
    """The vectors of a collection at a generation, ordered by chunk number, with the document and
    the tenant of each row."""

    generation: str
    chunks: Numbers
    documents: Numbers
    tenants: Numbers
    vectors: NDArray[np.float32]


def read_matrix(
    connection: sqlite3.Connection, collection: int, generation: str, last: Matrix
) -> Matrix:
    """The current matrix; only vectors that are not in the last one are read."""
    known = connection.execute(queries.HAS_GENERATION, (collection, last.generation)).fetchone()
    if not known:  # the file may have been replaced
        last = empty_matrix(last.vectors.shape[1])
    rows = connection.execute(queries.CHUNKS, (collection,)).fetchall()
    chunks, documents, tenants = np.array(rows, np.int64).reshape(-1, 3).T.copy()
    stayed = np.isin(last.chunks, chunks, assume_unique=True)
    old = int(np.count_nonzero(stayed))
    vectors = np.empty((len(chunks), last.vectors.shape[1]), np.float32)
    vectors[:old] = last.vectors if old == len(stayed) else last.vectors[stayed]
    highest = int(last.chunks[-1]) if len(last.chunks) else 0
    cursor = connection.execute(queries.VECTORS_AFTER, (collection, highest))
    while blobs := cursor.fetchmany(BATCH):
        read = np.frombuffer(b"".join(blob for (blob,) in blobs), DTYPE)
        vectors[old : old + len(blobs)] = read.reshape(len(blobs), -1)
        old += len(blobs)
    return Matrix(generation, chunks, documents, tenants, vectors=vectors)


def empty_matrix(dimensions: int) -> Matrix:
    """The matrix of an empty collection."""
    none = np.empty(0, np.int64)
    return Matrix("", none, none, none, vectors=np.empty((0, dimensions), np.float32))


def blob_of(vector: Sequence[float]) -> bytes:
    """A vector in its stored format."""
    return np.asarray(vector, DTYPE).tobytes()


def similarity(matrix: Matrix, rows: Numbers, vector: Sequence[float]) -> Floats:
    """The cosine similarity of these rows with a vector; all have length 1."""
    query = np.asarray(vector, np.float32)
    if len(rows) == len(matrix.chunks):
        return matrix.vectors @ query
    if len(rows) < SPARSE * len(matrix.chunks):
        return matrix.vectors[rows] @ query
    return (matrix.vectors @ query)[rows]


def precise(matrix: Matrix, rows: Numbers, vector: Sequence[float]) -> Floats:
    """The same for a few rows in double precision, so that equal rows get equal scores."""
    query = np.asarray(vector, np.float32).astype(np.float64)
    return (matrix.vectors[rows].astype(np.float64) * query).sum(axis=1)


def best(scores: Floats, top_k: int, min_relevance: float) -> Numbers:
    """The indices of the `top_k` best scores, and of those that may equal the last one."""
    near = np.flatnonzero(scores >= min_relevance - SLACK)
    if len(near) > top_k:
        cut = np.partition(scores[near], len(near) - top_k)[len(near) - top_k]
        near = near[scores[near] >= cut - SLACK]
    return near
