"""A folder that a reviewer can read: figures, data, verdicts, and how to make them again."""

from jaxbio.studies.paper.report.choices import Sensitivity, sensitivity
from jaxbio.studies.paper.report.folder import check, write

__all__ = ["Sensitivity", "check", "sensitivity", "write"]
