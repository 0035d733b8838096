"""How models are asked."""
