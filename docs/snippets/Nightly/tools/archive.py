"""Lifecycle hooks around the report: they open, fill and close an archive."""

from turnloom import Context


class Archive:
    """Stands for a connection: it is not JSON."""

    def __init__(self) -> None:
        self.reports: list[int] = []
        self.is_busy = True

    def add(self, number: int) -> None:
        if self.is_busy:
            self.is_busy = False
            raise ConnectionError("The archive is busy.")
        self.reports.append(number)


def open_archive(context_variables: Context) -> None:
    context_variables["number"] = 41
    context_variables["archive"] = Archive()


async def file_report(context_variables: Context) -> str:
    context_variables["archive"].add(context_variables["number"])
    return f"report {context_variables['number']} is filed"


def wake_somebody() -> None:
    """Call a telephone."""


def close_archive(context_variables: Context) -> dict[str, str]:
    context_variables.remove("archive")
    return {"ended as": context_variables["run_status"]}
