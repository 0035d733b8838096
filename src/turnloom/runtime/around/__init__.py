"""What stands around turns and calls: hooks, components, guards, selection."""
