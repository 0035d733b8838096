"""Loaded by programs that tests start while `--store postgres` is in force."""

from tests.support.on_postgres.stands import install

install()
