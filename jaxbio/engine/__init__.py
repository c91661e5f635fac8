"""The engine: thousands of runs of one step, as straight-line code.

Words that have one meaning everywhere in the package:

- run: one game of one learner, a function of (seed, run index); round: one step of it;
- setting: a point of a grid, with runs of its own;
- block: the runs that one call plays together;
- lane: one of several losses that arrive in a round; slot: a place in the ring;
- stop: a round at which something is recorded;
- program: the straight-line form of a step; back-end: what turns a program into play.
"""
