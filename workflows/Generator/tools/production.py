"""The variable `production` of the Generator."""

import os

from turnloom import Context


def note_production(context_variables: Context) -> None:
    """Let the agents know whether they write for production."""
    context_variables["production"] = (
        os.environ.get("ENVIRONMENT", "").strip().lower() == "production"
    )
