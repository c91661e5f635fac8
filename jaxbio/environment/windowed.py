"""Outcomes that are waited for until a window ends: what has not come by then counts as none."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbio import checks
from jaxbio.core import Array, Delays, looks, revealed
from jaxbio.environment.delays import LANES, NEVER, VaryingDelay, most_together
from jaxbio.environment.environment import check_part
from jaxbio.trees import host, is_concrete, pytree, set_field, static


@pytree
class WindowedDelay(VaryingDelay):
    """Conversions come by themselves, after the delays of a law; that nothing came is known only
    when the window ends.

    law: the delays of conversions, any law of delays. window: for how many rounds an outcome is
    waited for, an integer >= 0. absent: the loss of a round in which nothing happens (1.0 where an
    event is good, as a purchase; 0.0 where it is bad, as a relapse); any other loss is a
    conversion.

    With the true loss l and the law's delay d the learner is shown

        l       at the end of round t + d       if l is a conversion and d <= window;
        absent  at the end of round t + window  if l is a conversion and d > window (it comes too
                                                late, and nobody looks at it any more);
        absent  at the end of round t + window  if l is none.

    Regret and realised regret count the true losses, so they can be compared across windows: a
    short window is soon known and hides late conversions, a long one is known late. Learners are
    shown mean losses absent + (theta(s) - absent) P(d <= window | s); where these do not order the
    states as theta does, as with other delays in other states, a learner may settle on a wrong
    action, and its regret grows for ever.
    """

    law: Any
    window: Any
    absent: float = static(default=1.0)

    looks = True

    def __post_init__(self) -> None:
        check_part("law", self.law, Delays, "GeometricDelay(20)")
        set_field(self, "window", checks.integer("window", self.window, 0, NEVER))
        if not is_concrete(self.absent):
            raise TypeError("absent must have a value, but got a tracer: it chooses code")
        set_field(self, "absent", checks.number("absent", self.absent, 0, 1))

    @property
    def binary(self) -> bool:
        """Are losses of 0 and 1 shown as such?"""
        inner = not looks(self.law) or getattr(self.law, "binary", False)
        return inner and self.absent in (0.0, 1.0)

    @property
    def num_states(self) -> int | None:
        """Of how many states the law knows the delays."""
        return getattr(self.law, "num_states", None)

    def check(self, horizon: int) -> None:
        self.law.check(horizon)

    def reveal(self, key: Array, t: Array, state: Array, loss: Array) -> tuple[Array, Array]:
        """What the window lets through of a loss, and when."""
        shown, delay = revealed(self.law, key, t, state, loss)
        comes = (shown != self.absent) & (delay <= self.window)
        delay = jnp.where(comes, delay, self.window).astype(jnp.int32)
        return jnp.where(comes, shown, jnp.asarray(self.absent, shown.dtype)), delay

    def longest(self) -> int:
        return int(np.max(host(self.window)))

    def together(self, horizon: int) -> int:
        """Of older rounds, as good as surely: one that ends with its window, and conversions."""
        inner = most_together(self.law, horizon)
        random = not (self.law.constant or self.law.written_down or looks(self.law))
        # 16 are too few for the losses of random delays and one more with probability 1.8e-14.
        return max(1, min(LANES if random else inner + 1, self.longest()))
