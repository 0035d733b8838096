"""What flows decide, fold and check."""
