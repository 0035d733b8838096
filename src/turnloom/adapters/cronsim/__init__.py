"""Cron expressions in time zones, by cronsim. Needs the extra `server` or `workers`."""

from turnloom.errors import UsageError

try:
    from turnloom.adapters.cronsim.calendar import CronCalendar
except ModuleNotFoundError as error:
    if error.name != "cronsim":
        raise
    raise UsageError(
        "Schedules need the package 'cronsim', which is not installed. "
        'Install it with: pip install "turnloom[server]"'
    ) from error

__all__ = ["CronCalendar"]
