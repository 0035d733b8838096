"""Reactions: artifacts wake the agents that subscribe to them."""
