"""A user's own log of decisions: read, checked and described."""
