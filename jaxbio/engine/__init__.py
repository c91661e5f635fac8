"""The engine: thousands of runs of one step, as straight-line code.

Words that have one meaning everywhere in the package:

- run: one game of one learner, a function of (seed, run index); round: one step of it;
- setting: a point of a grid, with runs of its own;
- block: the runs that one call plays together;
- ring: where plays wait until their loss arrives; slot: the place in the ring of one round;
- lane: one of several losses that arrive in a round;
- stop: a round at which something is recorded; pause: one at which a call ends and nothing is;
- carry: what a run takes along from one round to the next;
- program: the straight-line form of a step; back-end: what turns a program into play;
- vector: the runs that one machine instruction, or a few, work on together.

Where to begin: `round` has the step of one run, and `ring` where its plays wait. `flatten` turns
the jaxpr of the step (JAX's own list of its operations) into a `program`. `backends.choice` says
which back-end plays it. `player` plays a block call by call, `rollout` a single run in plain JAX.
"""
