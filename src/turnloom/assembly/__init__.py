"""Assembly of the context of a turn, piece by piece, each with its origin."""
