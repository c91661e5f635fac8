"""Which learner for which class of problems, each tuned, and which one for all of them."""
