"""What guards decide, and how what happens changes what they know."""
