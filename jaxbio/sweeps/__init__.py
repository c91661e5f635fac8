"""Many games: played by one call, or as the blocks of a grid that can be kept and resumed."""
