"""Starts nx-27017, which cannot have `_id` in an index of several fields, as if it could.

SQLite ends every index with the row's own number, and nx-27017 numbers rows as they come, so an
index without `_id` serves the same lookups.
"""

import sys
from typing import Any

from neosqlite.collection.index_manager import IndexManager
from nx_27017.nx_27017 import main

make_index = IndexManager.create_index


def create_index(self: IndexManager, key: Any, *args: Any, **options: Any) -> str:
    if isinstance(key, list) and len(key) > 1:
        key = [part for part in key if part[0] != "_id"]
        key = key[0][0] if len(key) == 1 else key
    return make_index(self, key, *args, **options)


if __name__ == "__main__":
    IndexManager.create_index = create_index
    sys.exit(main())
