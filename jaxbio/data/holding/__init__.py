"""Does the model hold for a log? Tests with effect sizes, in words."""
