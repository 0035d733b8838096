"""The board: artifacts, their visibility, and queries."""
