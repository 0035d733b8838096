"""Replay: drive a run again over its log, and compare everything that it decides."""
