"""The neighbours of Turnloom, one folder each; none knows another."""
