"""Backtests: an edited definition decides recorded runs again."""
