"""Shared basics: JSON values, digests, ids, declaration files, user code in threads and with
deadlines."""
