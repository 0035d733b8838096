"""Pure logic of agents."""
