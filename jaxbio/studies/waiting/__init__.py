"""What it is worth to wait longer for conversions, by a log."""
