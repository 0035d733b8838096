"""What is asked of the code of a board."""
