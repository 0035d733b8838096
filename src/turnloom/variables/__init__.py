"""Context variables: their sources, changes and exposure."""
