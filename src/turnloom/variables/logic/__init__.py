"""Pure logic of variables."""
