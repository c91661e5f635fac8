"""Learners on a user's own log, by rejection: which rows, in which order, and how sure it is."""
