"""What can be said of a conversation without touching the world."""
