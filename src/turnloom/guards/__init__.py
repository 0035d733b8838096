"""Guards, which can stop or steer a run: budget, loop detection, agent selection."""
