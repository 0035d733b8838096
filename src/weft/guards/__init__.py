"""What can stop or steer a run: budget, loop detection."""
