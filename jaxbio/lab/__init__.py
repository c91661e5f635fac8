"""Studies: what the paper answers by bounds, answered by experiment."""
