"""The experiments by number."""

from __future__ import annotations

from jaxbio.studies.paper import adversarial, stochastic, switching, utility
from jaxbio.studies.paper.experiment import Experiment

EXPERIMENTS: dict[int, Experiment] = {
    experiment.number: experiment
    for experiment in (
        stochastic.EXPERIMENT,
        adversarial.EXPERIMENT,
        utility.EXPERIMENT,
        switching.FEW_STATES,
        switching.MANY_STATES,
    )
}
