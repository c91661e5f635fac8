"""Back-ends: what plays a block of runs. Each is one file; `choice` says which one plays."""
