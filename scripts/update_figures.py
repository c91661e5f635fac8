"""Make the figures that the README and the documentation show."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ASSETS = Path(__file__).parents[1] / "docs" / "pages" / "assets"
FIGURES = {  # in the report's folder: here
    "experiment-1-regret-light.png": "experiment1.png",
    "experiment-1-regret-dark.png": "experiment1-dark.png",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "jaxbio", "reproduce", "1", "--folder", folder], check=True
        )
        for made, shown in FIGURES.items():
            shutil.copyfile(Path(folder) / "figures" / made, ASSETS / shown)
            print(ASSETS / shown)


if __name__ == "__main__":
    main()
