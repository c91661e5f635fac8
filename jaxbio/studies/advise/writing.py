"""A page about a log."""

from __future__ import annotations

from pathlib import Path

from jaxbio import checks
from jaxbio.storage import atomic
from jaxbio.studies.advise.log_advice import LogAdvice


def write_report(
    advice: LogAdvice, path: str | Path, *, command: str = "", title: str = ""
) -> Path:
    """Write advice for a log as an HTML page for whoever has to decide, in one file that needs
    nothing else: light and dark, for a desk and for a phone.

    advice: of `jb.advise(log=...)`. command: that makes the page again, to be printed on it.
    title: the name of the log. Returns the path.
    """
    if not isinstance(advice, LogAdvice):
        raise TypeError(
            f"advice must be what jb.advise(log=...) returns, but got {checks.shown(advice)}"
        )
    from jaxbio.studies.advise.report import page  # matplotlib takes a while to import

    path = checks.path("path", path)
    made = page.whole(advice, checks.text("command", command), checks.text("title", title))
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(path, made.encode())
    return path
