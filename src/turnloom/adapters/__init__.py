"""Adapters to libraries, databases and the operating system, one folder each. They do not import
each other."""
