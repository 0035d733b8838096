"""Message hooks of the nightly report."""

import re
from typing import Any


def add_style(agent: Any, messages: list[dict[str, Any]]) -> None:
    number = agent.context_variables["number"]
    agent.update_system_message(f"{agent.system_message} This is report {number}.")


def only_the_last(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return messages[-1:]


def mask_accounts(content: str) -> str:
    return re.sub(r"[A-Z]{2}\d\d[ \d]+\d", "an account", content)


def sign(sender: str, message: str, recipient: str, silent: bool) -> str:
    return f"{message} ({sender})"
