"""The results as a table and as JSON."""

import platform
from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.table import Table

from bench.measures import Measure

COLUMNS = ("scenario", "case", "measured", "", "compared with", "ratio", "target", "")
NUMBERS = ("measured", "ratio", "target")


def show(measures: Sequence[Measure], console: Console) -> None:
    """Print the table."""
    table = Table(box=None, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, justify="right" if column in NUMBERS else "left", no_wrap=True)
    scenario = ""
    for each in measures:
        if scenario and each.scenario != scenario:
            table.add_section()
        table.add_row(each.scenario if each.scenario != scenario else "", *_cells(each))
        scenario = each.scenario
    console.print(table)


def _cells(each: Measure) -> tuple[str, ...]:
    value = f"{each.value:,.0f}" if each.value >= 100 else f"{each.value:.1f}"
    target, verdict = "", ""
    if each.target is not None:
        target = f"{each.target:g}x"
        verdict = "[red]OVER[/]" if each.over else "[green]OK[/]"
    return each.case, value, each.unit, each.against, f"{each.ratio:.2f}x", target, verdict


def as_json(measures: Sequence[Measure], *, quick: bool) -> str:
    """The results as JSON, with Python version and system."""
    document = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "quick": quick,
        "measures": [msgspec.to_builtins(each) | {"over": each.over} for each in measures],
    }
    return msgspec.json.format(msgspec.json.encode(document)).decode()
