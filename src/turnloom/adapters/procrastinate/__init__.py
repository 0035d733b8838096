"""Drives spread over workers by Procrastinate, on PostgreSQL. Needs the extra `workers`."""

from turnloom.errors import UsageError

try:
    from turnloom.adapters.procrastinate.scheduler import ProcrastinateScheduler
except ModuleNotFoundError as error:
    if error.name not in ("procrastinate", "psycopg", "psycopg_pool"):
        raise
    raise UsageError(
        f"Scheduler 'procrastinate' needs the package {error.name!r}, which is not installed. "
        'Install it with: pip install "turnloom[workers]"'
    ) from error

__all__ = ["ProcrastinateScheduler"]
