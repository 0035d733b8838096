"""A database of customers as a SQLite file: one table with the columns id and doc."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

CUSTOMERS = [
    {"user_id": "ann", "app_id": "acme", "plan": "free", "contact": {"name": "Ann Lee"}},
    {
        "user_id": "ann",
        "app_id": "acme",
        "plan": "paid",
        "contact": {"name": "Ann Lee"},
        "account": "DE02 1203 0000",
        "notes": ["Writes in capitals.", "Order 1187 was broken.", "Likes the courier."],
    },
    {"user_id": "ann", "app_id": "globex", "plan": "free", "contact": {"name": "Another Ann"}},
]

folder = Path(".turnloom/documents")
folder.mkdir(parents=True, exist_ok=True)
with closing(sqlite3.connect(folder / "crm.db")) as database, database:
    database.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, doc TEXT)")
    rows = [(json.dumps(customer),) for customer in CUSTOMERS]
    database.executemany("INSERT INTO customers (doc) VALUES (?)", rows)
