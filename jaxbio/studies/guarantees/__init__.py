"""The theorems' bounds against many runs."""
