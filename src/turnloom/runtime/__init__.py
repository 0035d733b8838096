"""How a run moves: one way to take a turn, one driver, one write path."""
