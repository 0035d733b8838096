"""What agents answer with when an answer is more than text."""
