"""When learners that look at states do worse than those that do not."""
