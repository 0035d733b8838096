"""The table of features and forms, as a page of the documentation has it.

`python -m tests.parity.forms.table` writes it again.
"""

from collections.abc import Mapping
from pathlib import Path

from tests.parity.forms.boards import BOARD
from tests.parity.forms.cells import Cell, Works
from tests.parity.forms.flows import FLOW
from tests.parity.forms.talks import CONVERSATION

FORMS: dict[str, Mapping[str, Cell]] = {
    "conversation": CONVERSATION,
    "board": BOARD,
    "flow": FLOW,
}
PAGE = Path(__file__).parents[3] / "docs" / "forms.md"
BEGIN, END = "<!-- the table of forms -->\n", "<!-- the end of the table -->\n"


def table() -> str:
    """The features in rows and the forms in columns."""
    head = ["feature", "[conversation](write-a-workflow.md)", "[board](reactions.md)"]
    lines = [[*head, "[flow](flows.md)"], ["---"] * 4]
    lines += [[row, *(shown(cells[row]) for cells in FORMS.values())] for row in CONVERSATION]
    return "".join(f"| {' | '.join(line)} |\n".replace("| --- ", "|---") for line in lines)


def shown(cell: Cell) -> str:
    """A cell as the page has it: how the feature is written, or why there is none."""
    if isinstance(cell, Works):
        return f"[{cell.written}]({cell.page})"
    return f"no: {cell.why} (`{cell.code}`)"


def parts(text: str) -> tuple[str, str, str]:
    """What stands before the table of a page, the table, and what stands behind it."""
    before, _, rest = text.partition(BEGIN)
    found, _, after = rest.partition(END)
    return before, found, after


if __name__ == "__main__":
    before, _, after = parts(PAGE.read_text("utf-8"))
    PAGE.write_text(f"{before}{BEGIN}{table()}{END}{after}", "utf-8")
