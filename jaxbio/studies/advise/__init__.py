"""A learner for a problem, found by playing it."""
