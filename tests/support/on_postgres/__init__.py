"""`pytest --store postgres`: whatever store a test opens, it is one in PostgreSQL.

A store in memory becomes an empty one, a file one that is found by its path, by this process and by
the programs that a test starts. All of them are schemas of one database, emptied after each test.
"""
