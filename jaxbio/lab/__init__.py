"""Studies: when do intermediate observations help? Each is a function, a command and a figure."""
