"""What the three forms of a run share."""
