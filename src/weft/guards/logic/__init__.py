"""Who is chosen, and what is learned from it."""
