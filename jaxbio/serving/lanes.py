"""How many losses a round looks at: programs for few and for many of them."""

LANES = tuple(8**i for i in range(6))  # 1, 8, 64, 512, 4,096, 32,768
MOST = LANES[-1]  # of older rounds that one round learns from; what is beyond them waits


def lanes_for(losses: int) -> int:
    """The first number of lanes that is enough for so many losses, at most `MOST`."""
    return next(lanes for lanes in LANES if lanes >= losses)
