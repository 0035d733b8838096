"""A tool server: a separate program that knows workdays."""

from datetime import date, timedelta

from mcp.server import MCPServer

server = MCPServer("calendar")


@server.tool()
def next_workday(day: str) -> str:
    """The next day on which banks work."""
    found = date.fromisoformat(day) + timedelta(days=1)
    while found.weekday() > 4:
        found += timedelta(days=1)
    return found.isoformat()


@server.tool()
def is_workday(day: str) -> bool:
    """Whether banks work on a day."""
    return date.fromisoformat(day).weekday() < 5


if __name__ == "__main__":
    server.run()
