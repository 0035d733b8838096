"""Everything one turn is shown, piece by piece, each piece with its origin."""
