"""What counts as the same code, for stores and for compiled programs."""
