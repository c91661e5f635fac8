"""What the runs say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxbio.analysis.comparison import Comparison
from jaxbio.studies.advise.tournament import Outcome


@dataclass(frozen=True)
class Advice:
    """What the runs say.

    stationary: for a mapping that does not change (of a family of the user's: as it makes it).
    changing: for one that does; None where the family has no such problem. robust: the best of
    those with a guarantee whatever the mapping does (see `is_robust`), as far as it stayed or left
    on the stationary problem; None where there is none. runs: of each learner that stayed to the
    end. Where the family has several instances, a run is one on each of them, and its regret their
    mean: what is compared is the mean over these very instances. delays: the law, of the first
    instance, as it was played (a family of the user's may have its own). unfinished: learners that
    time did not allow.
    """

    stationary: Outcome
    changing: Outcome | None
    robust: str | None
    runs: int
    seconds: float
    delays: Any = None
    unfinished: tuple[str, ...] = ()

    @property
    def overall(self) -> Comparison:
        """Of those that stayed to the end, for a mapping that does not change."""
        return self.stationary.comparison

    @property
    def recommended(self) -> str:
        """For a mapping that does not change, whether or not it is sure (see `Outcome.named`)."""
        return self.stationary.named

    @property
    def recommended_if_changing(self) -> str | None:
        """For one that does; None where the family has no such problem."""
        return None if self.changing is None else self.changing.named

    @property
    def decided(self) -> bool:
        """Has every comparison a winner, and is it known what states are worth?"""
        return all(one.decided for one in (self.stationary, self.changing) if one is not None)
