"""The shared store of typed things: artifacts, who may see them, and how they are asked for."""
