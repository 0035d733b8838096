"""Who sees what, what matches, and how stores keep and find artifacts."""
