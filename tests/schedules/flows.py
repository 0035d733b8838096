"""A flow that schedules start."""

from pydantic import BaseModel

from turnloom import Flow


class Report(BaseModel, frozen=True):
    """What a report is about."""

    day: str = "today"
    pages: int = 0


def write(state: Report) -> dict[str, int]:
    return {"pages": state.pages + 1}


report = Flow("report", Report).start_with(write)
