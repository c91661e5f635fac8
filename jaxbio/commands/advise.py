"""jaxbio advise: a learner for a problem of this size, with evidence."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from jaxbio.commands import specs
from jaxbio.lab.advise import Advice, advise

STORES = Path("results") / "advise" / "store"


def ask(options: Any) -> Advice:
    learners = dict(specs.learner(text) for text in options.learners) if options.learners else None
    return advise(
        actions=options.actions,
        states=options.states,
        horizon=options.horizon,
        delays=specs.delays(options.delay),
        family=specs.family(options.family),
        learners=learners,
        seconds=options.seconds,
        seed=options.seed,
        store=options.store or STORES / _name(options),
        progress=not options.quiet,
    )


def _name(options: Any) -> str:
    """Of the parts of these very options: sizes to read, and a digest of all that they play."""
    sizes = (options.actions, options.states, options.horizon)
    rest = [options.delay, options.family, options.learners, options.seed]
    digest = hashlib.sha256(repr(rest).encode()).hexdigest()[:12]
    return "-".join([*map(str, sizes), digest])


def draw(found: Advice, options: Any) -> None:
    """Save the figure."""
    from jaxbio import plot  # matplotlib takes a while to import
    from jaxbio.figures.advice import advice

    title = (
        f"K = {options.actions}, S = {options.states}, T = {options.horizon:,}, "
        f"delay {options.delay}"
    )
    plot.save_as(advice(found.overall, title, plot.Look()), options.figure)


def as_dict(found: Advice) -> dict[str, Any]:
    """For JSON."""
    robust = None if found.robust is None else found.robust.to_dict()
    return {
        "stationary mapping": found.overall.to_dict(),
        "learners for a mapping that may change": robust,
        "runs": found.runs,
        "seconds": round(found.seconds, 1),
    }


def as_text(found: Advice) -> str:
    lines = [str(found.overall), "", f"If the mapping is stationary: {found.overall.verdict}."]
    if found.robust is not None:
        lines.append(
            "If it may change, choose among those whose regret is bounded then. While it does not: "
            f"{found.robust.verdict}."
        )
        lines.append("If losses are adversarial too, states tell nothing: run DAda-Exp3.")
    return "\n".join(lines)
