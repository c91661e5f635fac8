"""The paper's experiments: settings, and the claims that each of them checks."""
