"""Bars of progress: in a notebook where its widgets are installed, else in text."""

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "IProgress not found")  # a bar in text will do
    from tqdm.auto import tqdm

__all__ = ["tqdm"]
