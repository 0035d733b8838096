"""The neighbours of Weft, one folder each; none knows another."""
