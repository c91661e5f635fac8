"""How often checks fail of logs for which the model holds."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from problem_logs import made
from scipy import stats

import jaxbio as jb
from jaxbio.data.holding import tables

LOGS = 60
SURELY = 1e-5  # of each comparison here; of some 50, one in 2,000 seeds would fail
KINDS: dict[str, dict[str, Any]] = {
    "coins": {"rows": 400, "late": False},
    "late": {"rows": 400, "spread": "beta"},
    "sales": {"rows": 500, "spread": "sales"},
    "conversions": {"rows": 700, "kind": "conversions"},
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_false_alarms(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 5 % of logs have any check that fails, and no p-value is small too often: of LOGS
    logs, as many as chance has with a probability of SURELY. Nor is it large too often, as those of
    a test that sees nothing would be: at least a fifth are below a half. A third of the outcomes
    have not come in the logs that are late.
    """
    monkeypatch.setattr(tables, "DRAWS", 499)
    rng, failed = np.random.default_rng(1), 0
    found = defaultdict(list)
    for seed in range(LOGS):
        checked = jb.check_model(made(rng, **KINDS[kind]), seed=seed)
        failed += any(one.holds is False for one in checked)
        for one in checked:
            if one.p is not None:
                found[one.name].append(one.p)
    assert failed <= stats.binom.isf(SURELY, LOGS, 0.05)
    assert len(found) == {"coins": 4, "late": 6, "sales": 6, "conversions": 5}[kind]
    for name, p in found.items():
        for level in (0.01, 0.05, 0.2):
            count = int((np.array(p) <= level).sum())
            assert count <= stats.binom.isf(SURELY, len(p), level), f"{name}: {count} at {level}"
        assert np.mean(np.array(p) < 0.5) > 0.2, name


@pytest.mark.parametrize("rows", [300, 3_000])
def test_intervals_hold_the_truth(rows: int) -> None:
    """Of three effects that are not there: 0 is in the intervals of 95 % in nearly all of LOGS
    logs; as for false alarms."""
    rng = np.random.default_rng(2)
    missed: dict[str, int] = defaultdict(int)
    for seed in range(LOGS // 2):
        for one in jb.check_model(made(rng, rows, late=False), seed=seed):
            if one.low is not None:
                missed[one.name] += one.low > one.none
    assert len(missed) == 4
    assert max(missed.values()) <= stats.binom.isf(SURELY, LOGS // 2, 0.05)
