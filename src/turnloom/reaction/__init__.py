"""Artifacts wake the agents that subscribe to them."""
