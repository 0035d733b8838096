"""What can stop or steer a run: here, who of several agents gets a turn."""
