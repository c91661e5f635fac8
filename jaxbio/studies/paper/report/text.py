"""report.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxbio.studies.paper.report.choices import Sensitivity
from jaxbio.studies.paper.report.section import Section, contradictions, in_short, margin, tally

TITLE = "Delayed bandits with intermediate observations: the paper's experiments"
QUESTION = (
    "When a loss arrives late but a state is seen at once, how much does the state help? "
    "MetaBIO uses it, DAda-Exp3 does not; MetaAdaBIO decides as it goes. Each claim of the "
    "paper's experiment section is tested here on runs of our own."
)
PROCEDURE = (
    "A claim about means is a paired difference over common runs, positive if the claim is true: "
    "its mean, its 95 % interval (Student's) and the p-value of a t-test, corrected by Holm's "
    "method over the claims of the experiment. Yes or no is said at a corrected p of at most 0.05, "
    "else undecided. A claim about facts must hold in every run."
)
PAPER = (
    "Esposito, Masoudian, Qiu, van der Hoeven, Cesa-Bianchi and Seldin: Delayed Bandits: When Do "
    "Intermediate Observations Help? ICML 2023."
)
SENSITIVITY = (
    "The verdicts under choices that the paper leaves open, with the mean margin (positive where "
    "the claim is true)."
)


def markdown(sections: Sequence[Section]) -> str:
    parts = [f"# {TITLE}", QUESTION, f"Paper: {PAPER}", "## Summary", _summary(sections)]
    parts += ["How claims are tested: " + PROCEDURE]
    for section in sections:
        parts += _section(section)
    return "\n\n".join(parts) + "\n"


def _summary(sections: Sequence[Section]) -> str:
    rows = [(f"{s.number}. {s.title}", s.about, tally(s.verdicts)) for s in sections]
    return table(("experiment", "what the paper says", "verdicts"), rows)


def _section(section: Section) -> list[str]:
    parts = [
        f"## Experiment {section.number}: {_plain(section.title)}",
        f"{_plain(section.about)}.",
    ]
    for picture in section.pictures:
        files = picture.files
        links = ", ".join(f"[{_plain(variant)}]({files[variant]})" for variant in files)
        caption = _plain(picture.caption)
        parts += [f"![{caption}]({files['light']})\n\n{caption} ({links})"]
    verdicts = [(v.statement, f"**{v.outcome}**", margin(v)) for v in section.verdicts]
    parts += ["### Verdicts", table(("claim", "outcome", "margin [95 % interval]"), verdicts)]
    parts += ["\n".join(f"- {_plain(sentence)}" for sentence in contradictions(section))]
    if section.sensitivity:
        parts += ["### Sensitivity", SENSITIVITY, _sensitivity(section.sensitivity)]
    parts += ["### Settings", table(("setting", "value"), section.settings.items())]
    parts += [f"Data: [{section.data}]({section.data})"]
    parts += ["### Versions", _plain(", ".join(f"{n} {v}" for n, v in section.versions.items()))]
    commands = [
        f"{_plain(label)}:\n\n```sh\n{line}\n```" for label, line in section.commands.items()
    ]
    return [*parts, "### Commands", *commands]


def _sensitivity(found: Sensitivity) -> str:
    rows = [
        (claim.statement, *(f"{c[i].outcome} {in_short(c[i])}".strip() for c in found.verdicts))
        for i, claim in enumerate(found.verdicts[0])
    ]
    return table(("claim", *found.choices), rows)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(value: object) -> str:
    return _plain(value).replace("|", "\\|")


def _plain(value: object) -> str:
    """One line without tags and links: what comes from a file may hold anything."""
    line = " ".join(str(value).split())
    for mark, shown in (("<", "\\<"), ("](", "]\\("), ("]:", "]\\:")):
        line = line.replace(mark, shown)
    return line
