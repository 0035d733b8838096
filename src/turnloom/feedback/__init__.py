"""What people think of runs and turns, kept beside the runs."""
