"""What can be said of variables without touching the world."""
