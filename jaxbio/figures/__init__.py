"""What all figures share: how they look, lines with their labels, and files."""
