"""The desk for leave requests; it notes its actions in desk.txt."""

from turnloom import Context, QuestionExpired, use_ui_tool


def note(text: str) -> str:
    with open("desk.txt", "a", encoding="utf-8") as file:
        file.write(f"{text}\n")
    return text


async def request_leave(days: int, context_variables: Context) -> str:
    """Have a request for leave decided."""
    note("entered")
    ticket = await context_variables.once("ticket", lambda: note(f"ticket for {days} days"))
    payload = {"title": f"{days} days off?", "ticket": ticket}
    seconds = context_variables["decide_within"]
    try:
        verdict = await use_ui_tool("request_leave", payload, timeout=seconds)
    except QuestionExpired:
        return "no decision in time"
    context_variables.set("decision", verdict["decision"])
    return verdict["decision"]
