"""What `jaxbio` says without a command: where to begin."""

TEXT = """\
jaxbio: delayed bandits with intermediate observations

An action shows a state at once (a click, a check-up), and its loss only after a delay.
Do states help, and which learner should you run? Where to begin, if what you have or want is

  the size of a problem   jaxbio advise --actions 8 --states 12 --horizon 100000 --delay 50
  a log of decisions      jaxbio log check shop.csv --help
  learners to try         jaxbio run paper-utility thompson state-thompson --delay 100
  the paper's experiments jaxbio reproduce 1
  a grid of settings      jaxbio sweep --help

jaxbio list names the problems and learners, jaxbio --help all commands,
jaxbio COMMAND --help the options of one, with an example."""
