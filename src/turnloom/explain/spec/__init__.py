"""What explanations are made of; each says itself in plain text, and in JSON through msgspec."""
