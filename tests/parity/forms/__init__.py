"""Every feature of a turn in each form: how it is written, and a run that shows what it does."""
