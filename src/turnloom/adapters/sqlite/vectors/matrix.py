"""All vectors of a collection as one matrix, and the best rows of it."""

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnloom.adapters.sqlite.vectors import queries

Numbers = NDArray[np.int64]
Bits = NDArray[np.bool_]
Floats = NDArray[np.floating[Any]]

# How a vector is written: 32-bit floats, the lowest byte first.
DTYPE = "<f4"
# How many vectors are read at once.
BATCH = 4_096
# By how much scores may differ that are told as equal, and by how much sums go astray.
SLACK = 2e-6
# A part of the rows smaller than this is taken out before it is multiplied.
SPARSE = 0.25


class Matrix(NamedTuple):
    """The vectors of a collection as of a generation, by the numbers of their chunks; each row has
    the numbers of its document and of its tenant."""

    generation: str
    chunks: Numbers
    documents: Numbers
    tenants: Numbers
    vectors: NDArray[np.float32]


def read_matrix(
    connection: sqlite3.Connection, collection: int, generation: str, last: Matrix
) -> Matrix:
    """The matrix as it is now: only what is not in the last one is read."""
    known = connection.execute(queries.HAS_GENERATION, (collection, last.generation)).fetchone()
    if not known:  # of another file in this place, perhaps
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
    """The matrix of a collection that nothing is in."""
    none = np.empty(0, np.int64)
    return Matrix("", none, none, none, vectors=np.empty((0, dimensions), np.float32))


def blob_of(vector: Sequence[float]) -> bytes:
    """A vector as it is kept."""
    return np.asarray(vector, DTYPE).tobytes()


def similarity(matrix: Matrix, rows: Numbers, vector: Sequence[float]) -> Floats:
    """The cosine of each of these rows with a vector; all of them are of length 1."""
    query = np.asarray(vector, np.float32)
    if len(rows) == len(matrix.chunks):
        return matrix.vectors @ query
    if len(rows) < SPARSE * len(matrix.chunks):
        return matrix.vectors[rows] @ query
    return (matrix.vectors @ query)[rows]


def precise(matrix: Matrix, rows: Numbers, vector: Sequence[float]) -> Floats:
    """The same for a few rows and to more digits, so that equal rows are equally near."""
    query = np.asarray(vector, np.float32).astype(np.float64)
    return (matrix.vectors[rows].astype(np.float64) * query).sum(axis=1)


def best(scores: Floats, top_k: int, min_relevance: float) -> Numbers:
    """Where the best scores are: `top_k` of them, and those that may be equal to the last one."""
    near = np.flatnonzero(scores >= min_relevance - SLACK)
    if len(near) > top_k:
        cut = np.partition(scores[near], len(near) - top_k)[len(near) - top_k]
        near = near[scores[near] >= cut - SLACK]
    return near
