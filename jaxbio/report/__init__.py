"""A folder that a reviewer can read: figures, data, verdicts, and how to make them again."""

from jaxbio.report.choices import Sensitivity, sensitivity
from jaxbio.report.folder import check, write

__all__ = ["Sensitivity", "check", "sensitivity", "write"]
