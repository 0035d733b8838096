"""Who answers, what makes it answer, and what a run knows while it asks."""
