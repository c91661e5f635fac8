"""The README's Python examples run as printed, each as a script of its own."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import jax
import pytest

README = Path(__file__).parents[1] / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("source", EXAMPLES, ids=lambda s: s.splitlines()[0])
def test_example_runs_and_prints_regrets(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "example.py"
    script.write_text(source)
    with jax.numpy_dtype_promotion("standard"):  # as users run it
        runpy.run_path(str(script), run_name="example")
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) >= 2
    assert all(float(line.split()[1]) > 0 for line in printed)
