"""The board's decisions: which agent gets which artifacts, and when."""
