"""Baselines that share no code with jaxbio: plain NumPy and hand-fused Numba."""
