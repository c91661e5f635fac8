"""The figures of the paper's experiments, and those that the paper does not have."""
