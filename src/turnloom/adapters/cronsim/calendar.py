"""Cron expressions in time zones, by cronsim."""

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

# Any instant: expressions are checked against none in particular.
_SOME = datetime(2026, 1, 1, tzinfo=UTC)

# An expression of five fields is shorter.
MOST = 1000


class CronCalendar:
    """Reads cron expressions of five fields, as Debian's cron does.

    Where clocks are put forward, a firing in the gap comes at its end; where they are put back, an
    hour that comes twice fires once. Expressions that fire every few minutes or hours (`*`) follow
    the elapsed time instead.
    """

    def problem(self, cron: str, timezone: str) -> tuple[str, str] | None:
        """What is wrong, as the name of the field and a sentence; None if nothing is."""
        if len(cron) > MOST or len(cron.split()) != 5:
            return "cron", "A cron expression has five fields."
        try:
            next(CronSim(cron, _SOME))
        except CronSimError as error:
            return "cron", f"Cron expression {cron!r} is invalid: {str(error).lower()}."
        except StopIteration:
            return "cron", f"Cron expression {cron!r} never fires."
        return None if _zone(timezone) else ("timezone", f"Unknown time zone {timezone!r}.")

    def firings(self, cron: str, timezone: str, after: datetime) -> Iterator[datetime]:
        """The instants after an instant at which the expression fires, ascending, in UTC."""
        last, zone = after, _zone(timezone)
        assert zone is not None
        for local in CronSim(cron, after.astimezone(zone)):
            found = local.astimezone(UTC)
            if found > last:  # around a change of the clocks, an instant can come again
                yield found
                last = found


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: a folder of zones
        return None
