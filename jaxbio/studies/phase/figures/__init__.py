"""The figures of the phase diagrams."""
