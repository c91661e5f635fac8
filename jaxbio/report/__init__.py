"""A folder that a reviewer can read: figures, data, verdicts, and how to make them again."""

from jaxbio.report.sensitivity import Sensitivity, sensitivity
from jaxbio.report.write import write

__all__ = ["Sensitivity", "sensitivity", "write"]
