"""Baselines that share no code with jaxbio: plain NumPy, scalar Numba and SIMD Numba."""
