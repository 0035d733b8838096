"""One module per command, imported on demand."""
