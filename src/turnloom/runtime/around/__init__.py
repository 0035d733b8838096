"""Around turns and calls: hooks, components, guards, selection."""
