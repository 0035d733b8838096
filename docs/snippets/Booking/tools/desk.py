from turnloom import Context, use_ui_tool


def free_tables(day: str, guests: int) -> list[int]:
    """The tables that are free on a day."""
    return [4, 7]


async def confirm(table: int, context_variables: Context) -> bool:
    """Have the guest confirm a table."""
    held = await context_variables.once("hold", lambda: f"table {table} is held")
    answer = await use_ui_tool("confirm", {"question": f"Is table {table} fine?", "note": held})
    context_variables.set("confirmed", answer["confirmed"])
    return answer["confirmed"]


def send_receipt() -> str:
    return "sent"
