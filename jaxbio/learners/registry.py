"""Ready pairings by name; a wrapper and its base share delta as the paper's theorems have it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from jaxbio import checks
from jaxbio.checks import names
from jaxbio.core import Learner
from jaxbio.learners.bold import BOLD
from jaxbio.learners.elimination import SuccessiveElimination
from jaxbio.learners.exp3 import DAdaExp3, Exp3
from jaxbio.learners.hindsight import HindsightExp3, HindsightTsallis
from jaxbio.learners.metaadabio import MetaAdaBIO
from jaxbio.learners.metabio import MetaBIO
from jaxbio.learners.nsd import NSDUCRL2
from jaxbio.learners.qpmd import QPMD
from jaxbio.learners.restarting import Restarting
from jaxbio.learners.state_thompson import StateThompson
from jaxbio.learners.thompson import ThompsonSampling
from jaxbio.learners.tsallis import TsallisINF
from jaxbio.learners.ucb import UCB1

KEYWORD = inspect.Parameter.KEYWORD_ONLY
INSIDE = ("base", "after")  # fields that hold learners


def pairing(
    about: str,
    kinds: dict[Any, int],
    after: int | None = None,
    fixed: Mapping[str, Any] | None = None,
    **defaults: Any,
) -> Callable[..., Any]:
    """A builder of learners inside each other, whose options are the fields of their classes.

    about: a line for people. kinds: the outermost first; class -> what the delta of the whole is
      divided by to be that of this class. after: the same for the base from a fresh switch on.
      fixed: fields that are no options. defaults: where they are not those of the classes.
    """
    set_here = {} if fixed is None else fixed
    fields = {f.name: f.default for kind in reversed(kinds) for f in dataclasses.fields(kind)}
    known = {n: v for n, v in (fields | defaults).items() if n not in {*INSIDE, *set_here}}

    def build(**options: Any) -> Any:
        given = {**known, **set_here, **options}
        base: dict[str, Any] = {}
        delta: Any = 1.0  # of those that have none
        if "delta" in given:
            delta = checks.probability_of_error("delta", given["delta"])
        for kind, share in reversed(kinds.items()):
            own = {f.name: given[f.name] for f in dataclasses.fields(kind) if f.name in given}
            own |= {"delta": delta / share} if "delta" in own else {}
            base["base"] = kind(**base, **own)
        made = base["base"]
        if after is None or made.at_switch != "fresh":
            return made
        return dataclasses.replace(made, after=dataclasses.replace(made.base, delta=delta / after))

    build.__doc__ = about
    build.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, KEYWORD, default=value) for name, value in known.items()]
    )
    return build


LEARNERS: dict[str, Callable[..., Any]] = {
    "dada-exp3": pairing("DAda-Exp3 alone: delta' = delta / 2.", {DAdaExp3: 1}),
    "dada-exp3-skipping": pairing(
        "DAda-Exp3 that stops counting rounds that are outstanding for too long.",
        {DAdaExp3: 1},
        fixed={"skipping": True},
    ),
    "tsallis-inf": TsallisINF,
    "ucb1": UCB1,
    "nsd-ucrl2": NSDUCRL2,
    "thompson": ThompsonSampling,
    "exp3": Exp3,
    "metabio": pairing("MetaBIO(delta) over DAda-Exp3(delta / 2).", {MetaBIO: 1, DAdaExp3: 2}),
    "metabio-skipping": pairing(
        "MetaBIO over DAda-Exp3 with skipping.",
        {MetaBIO: 1, DAdaExp3: 2},
        fixed={"skipping": True},
    ),
    "metabio-mean": pairing(
        "MetaBIO(delta) over DAda-Exp3(delta / 2) with plain means, without a bound.",
        {MetaBIO: 1, DAdaExp3: 2},
        estimator="mean",
    ),
    "surrogate-exp3": pairing(
        "MetaBIO over DAda-Exp3 that never waits, a surrogate index (Athey et al. 2019); no bound.",
        {MetaBIO: 1, DAdaExp3: 2},
        fixed={"threshold": "delay", "delay": 0},
        estimator="mean",
    ),
    "metabio-tsallis": pairing(
        "MetaBIO over Tsallis-INF with plain means: the expectation version.",
        {MetaBIO: 1, TsallisINF: 1},
        estimator="mean",
    ),
    "metaadabio": pairing(
        "MetaAdaBIO(delta) over DAda-Exp3(delta / 3); after a fresh switch DAda-Exp3(delta / 4).",
        {MetaAdaBIO: 1, DAdaExp3: 3},
        after=4,
    ),
    "metaadabio-tsallis": pairing(
        "MetaAdaBIO over Tsallis-INF with plain means and the expectation rule.",
        {MetaAdaBIO: 1, TsallisINF: 1},
        rule="expected",
        estimator="mean",
    ),
    "successive-elimination": SuccessiveElimination,
    "qpmd-ucb1": pairing("QPM-D over UCB1.", {QPMD: 1, UCB1: 1}),
    "bold-exp3": pairing(
        "BOLD over Exp3; its default rate is tuned for `horizon` rounds of each copy.",
        {BOLD: 1, Exp3: 1},
    ),
    "metabio-restarting": pairing(
        "MetaBIO(delta) over a DAda-Exp3(delta / 2) that begins anew every `period` rounds.",
        {MetaBIO: 1, Restarting: 1, DAdaExp3: 2},
        period=1000,
    ),
    "hindsight-exp3": HindsightExp3,
    "hindsight-tsallis": HindsightTsallis,
    "state-thompson": StateThompson,
}


OWN = frozenset(LEARNERS)
GROUP = "jaxbio.learners"  # of entry points: names of learners that installed packages bring


def learner_names() -> tuple[str, ...]:
    """The names that `make_learner` knows."""
    return (*LEARNERS, *(name for name in _installed() if name not in LEARNERS))


def make_learner(name: str, **options: Any) -> Learner:
    """A ready learner; see `learner_names()`. Its options are the fields of its classes."""
    build = learner_builder(name)
    checks.options(name, options, inspect.signature(build))
    return checks.learner(f"what {name!r} makes", build(**options))


def learner_builder(name: str) -> Callable[..., Any]:
    """What makes the learner of this name, of its options."""
    known = names.in_any_case(name, LEARNERS)
    if isinstance(known, str) and known in LEARNERS:  # quickly, without asking what is installed
        return LEARNERS[known]
    found = checks.name_of("learner name", name, learner_names())
    entry = _installed()[found]
    try:
        names.register(LEARNERS, OWN, "learner name", found, entry.load(), replace=False)
    except Exception as error:  # whatever a package raises while it is imported
        raise ValueError(f"learner {found!r}: {entry.value} cannot be used: {error!r}") from error
    return LEARNERS[found]


def register_learner(name: str, make: Callable[..., Any], *, replace: bool = False) -> None:
    """Add a learner to those with a name, for this process.

    name: small letters, digits and . _ + -. make: a class of learners, or a function that makes
    one; its arguments are the options, each with a default. `make_learner`, sweep files and
    commands run from this process know the name. replace: an earlier one of yours with this name
    goes; those of jaxbio stay.
    """
    names.register(LEARNERS, OWN, "learner name", name, make, replace)


@cache
def _installed() -> dict[str, EntryPoint]:
    """Learners of installed packages: the entry points of `GROUP`, not imported yet."""
    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in OWN}
