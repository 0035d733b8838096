"""What can be said of agents without touching the world."""
