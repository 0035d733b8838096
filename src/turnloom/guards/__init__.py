"""What can stop or steer a run: budget, loop detection, and who of several gets a turn."""
