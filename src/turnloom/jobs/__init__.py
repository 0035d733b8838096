"""Work on many runs, kept beside the runs."""
