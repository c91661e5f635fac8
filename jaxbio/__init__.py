"""jaxbio: delayed bandits with intermediate observations, many games side by side in JAX."""

from jaxbio.cli import starting  # noqa: F401  to be first, see there

# isort: split
from jaxbio import plot, theory
from jaxbio.analysis.compare import compare, compare_points
from jaxbio.analysis.comparison import Comparison, Row
from jaxbio.analysis.tune import tune
from jaxbio.analysis.tuned import Tuned
from jaxbio.analysis.windows import sweep_windows
from jaxbio.core import Arrivals, Known, Learner, Play
from jaxbio.data.betas import Table
from jaxbio.data.delays import DelayFit, fit_delays, law_by_state
from jaxbio.data.dropped import Dropped
from jaxbio.data.example import Shop, example_log
from jaxbio.data.fitted import Fit
from jaxbio.data.fitting import fit
from jaxbio.data.holding.check import Check, ModelChecks
from jaxbio.data.holding.model import check_model
from jaxbio.data.log import Log
from jaxbio.data.playing import play_log
from jaxbio.data.reading import LogWarning, read_log
from jaxbio.data.replaying.replay import replay
from jaxbio.data.replaying.result import Replay
from jaxbio.engine.rollout import Record, rollout, trajectory
from jaxbio.engine.round import Round
from jaxbio.engine.sizing import ring_sizes
from jaxbio.environment.delays import (
    FixedDelay,
    GeometricDelay,
    LaplaceDelay,
    TableDelay,
    UniformDelay,
)
from jaxbio.environment.empirical import EmpiricalDelay
from jaxbio.environment.environment import Environment, sample_world
from jaxbio.environment.heavy_tails import LogNormalDelay, ParetoDelay
from jaxbio.environment.instances import (
    environment_names,
    make_environment,
    register_environment,
)
from jaxbio.environment.losses import (
    BernoulliLosses,
    BetaLosses,
    BlockBernoulliLosses,
    ConstantLosses,
    EventLosses,
    TableLosses,
)
from jaxbio.environment.mappings import AlternatingMapping, StochasticMapping, TableMapping
from jaxbio.environment.negative_binomial import NegativeBinomialDelay
from jaxbio.environment.windowed import WindowedDelay
from jaxbio.figures.accessor import SweepAccessor
from jaxbio.learners.bold import BOLD
from jaxbio.learners.elimination import SuccessiveElimination
from jaxbio.learners.exp3 import DAdaExp3, Exp3
from jaxbio.learners.hindsight import HindsightExp3, HindsightTsallis
from jaxbio.learners.known_losses import KnownLosses
from jaxbio.learners.metaadabio import MetaAdaBIO
from jaxbio.learners.metabio import MetaBIO
from jaxbio.learners.nsd import NSDUCRL2
from jaxbio.learners.qpmd import QPMD
from jaxbio.learners.registry import learner_names, make_learner, register_learner
from jaxbio.learners.restarting import Restarting
from jaxbio.learners.state_thompson import StateThompson
from jaxbio.learners.thompson import ThompsonSampling
from jaxbio.learners.tsallis import TsallisINF
from jaxbio.learners.ucb import UCB1
from jaxbio.serving.agent import Agent
from jaxbio.serving.tickets import TicketError
from jaxbio.studies.advise.log_advice import LogAdvice
from jaxbio.studies.advise.study import advise
from jaxbio.studies.advise.writing import write_report
from jaxbio.studies.beyond.study import play_beyond
from jaxbio.studies.contest.study import contest
from jaxbio.studies.guarantees.study import check_guarantees
from jaxbio.studies.phase.study import phase_diagram
from jaxbio.studies.phase.tuned import worth_diagram
from jaxbio.studies.rates.study import measure_rates
from jaxbio.studies.regimes.study import play_regimes
from jaxbio.studies.violations.study import violations
from jaxbio.studies.waiting.study import Waiting, worth_of_waiting
from jaxbio.sweeps.result import Result
from jaxbio.sweeps.simulate import simulate
from jaxbio.sweeps.sweep import plan_sweep, sweep
from jaxbio.trees import pytree, static

__version__ = "0.1.0"

__all__ = [
    "BOLD",
    "NSDUCRL2",
    "QPMD",
    "UCB1",
    "Agent",
    "AlternatingMapping",
    "Arrivals",
    "BernoulliLosses",
    "BetaLosses",
    "BlockBernoulliLosses",
    "Check",
    "Comparison",
    "ConstantLosses",
    "DAdaExp3",
    "DelayFit",
    "Dropped",
    "EmpiricalDelay",
    "Environment",
    "EventLosses",
    "Exp3",
    "Fit",
    "FixedDelay",
    "GeometricDelay",
    "HindsightExp3",
    "HindsightTsallis",
    "Known",
    "KnownLosses",
    "LaplaceDelay",
    "Learner",
    "Log",
    "LogAdvice",
    "LogNormalDelay",
    "LogWarning",
    "MetaAdaBIO",
    "MetaBIO",
    "ModelChecks",
    "NegativeBinomialDelay",
    "ParetoDelay",
    "Play",
    "Record",
    "Replay",
    "Restarting",
    "Result",
    "Round",
    "Row",
    "Shop",
    "StateThompson",
    "StochasticMapping",
    "SuccessiveElimination",
    "SweepAccessor",
    "Table",
    "TableDelay",
    "TableLosses",
    "TableMapping",
    "ThompsonSampling",
    "TicketError",
    "TsallisINF",
    "Tuned",
    "UniformDelay",
    "Waiting",
    "WindowedDelay",
    "__version__",
    "advise",
    "check_guarantees",
    "check_model",
    "compare",
    "compare_points",
    "contest",
    "environment_names",
    "example_log",
    "fit",
    "fit_delays",
    "law_by_state",
    "learner_names",
    "make_environment",
    "make_learner",
    "measure_rates",
    "phase_diagram",
    "plan_sweep",
    "play_beyond",
    "play_log",
    "play_regimes",
    "plot",
    "pytree",
    "read_log",
    "register_environment",
    "register_learner",
    "replay",
    "ring_sizes",
    "rollout",
    "sample_world",
    "simulate",
    "static",
    "sweep",
    "sweep_windows",
    "theory",
    "trajectory",
    "tune",
    "violations",
    "worth_diagram",
    "worth_of_waiting",
    "write_report",
]
