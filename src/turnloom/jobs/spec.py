"""Jobs, and their results."""

from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

JobStatus = Literal["running", "done", "failed", "cancelled", "interrupted"]

RUNNING: JobStatus = "running"


class StoredJob(msgspec.Struct, frozen=True):
    """Work on `total` runs, of which `done` are worked on. `by` is the person who began it, `name`
    the workflow that it is about, `problem` what made it fail, as JSON. The process that works on
    it was `alive` at an instant; the job has `begun` at another."""

    id: str
    kind: str
    by: str
    total: int
    begun: datetime
    alive: datetime
    name: str = ""
    done: int = 0
    status: JobStatus = RUNNING
    problem: str = ""


class JobResult(NamedTuple):
    """What a job has to say about a run: its number in the job, from 1, and JSON."""

    number: int
    run: str
    result: bytes
