"""The command line, and the commands that belong to no study."""
