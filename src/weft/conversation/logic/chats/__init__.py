"""Code for group chats of AG2's classic line: what goes wrong there without a word."""

from weft.conversation.logic.chats.checking import check_chats, check_tool
from weft.conversation.logic.chats.programs import classic

__all__ = ["check_chats", "check_tool", "classic"]
