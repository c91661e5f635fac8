"""A learner at work: outside of simulation, one decision after the other."""
