"""Code for group chats of AG2's classic line: what goes wrong there without a word."""

from turnloom.conversation.logic.chats.checking import check_chats, check_tool
from turnloom.conversation.logic.chats.programs import classic

__all__ = ["check_chats", "check_tool", "classic"]
