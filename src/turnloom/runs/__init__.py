"""The state, actions and protocols that all three forms share."""
