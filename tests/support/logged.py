"""What a test wrote to the program's log."""

import pytest


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """All that a test has logged so far, with tracebacks, also when its fixtures are torn down: by
    then `caplog.text` is empty."""
    phases = ("setup", "call", "teardown")
    records = [record for phase in phases for record in caplog.get_records(phase)]
    return "\n".join(caplog.handler.format(record) for record in records)
