"""Cached checks of workflow folders."""

from collections import OrderedDict
from threading import Lock
from typing import Any

from turnloom.conversation.logic.checking import check
from turnloom.conversation.spec import Conversation
from turnloom.errors import Diagnostic
from turnloom.kernel.digests import fingerprint
from turnloom.kernel.documents import Folder

# Number of folders in the cache.
FOLDERS = 32

_Checked = tuple[Conversation | None, tuple[Diagnostic, ...]]


class CheckedFolders:
    """Cache of checked folders, by the contents of their files."""

    def __init__(self) -> None:
        self._checked: OrderedDict[tuple[Any, ...], _Checked] = OrderedDict()
        self._lock = Lock()

    def check(
        self, folder: Folder, broken: frozenset[str], set_aside: frozenset[str]
    ) -> tuple[Conversation | None, list[Diagnostic]]:
        """Return the conversation that a folder declares, and its diagnostics."""
        key = (_contents(folder), broken, set_aside)
        with self._lock:
            found = self._checked.get(key)
        if found is None:
            conversation, problems = check(folder, broken, set_aside)
            found = conversation, tuple(problems)
            with self._lock:
                self._checked[key] = found
                if len(self._checked) > FOLDERS:
                    self._checked.popitem(last=False)
        return found[0], [*found[1]]


def _contents(folder: Folder) -> str:
    """Digest of everything that a check reads."""
    texts = (each for part, d in folder.documents.items() for each in (part, d.file, d.text))
    code = (each for pair in folder.code.items() for each in pair)
    return fingerprint(folder.name, folder.root, str(len(folder.code)), *code, *texts)
