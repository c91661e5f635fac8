"""Benchmarks: jaxbio side by side with what a user would otherwise write."""
