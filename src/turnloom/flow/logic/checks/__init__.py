"""What can be wrong with a flow, by what it is about."""
