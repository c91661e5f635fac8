"""Studies: what the paper answers by bounds, answered by experiment. A folder for each."""
