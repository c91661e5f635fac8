"""The report: complete, self-contained, and red where a learner is broken."""

from __future__ import annotations

import dataclasses
import errno
import html.parser
import json
import re
import shutil
from pathlib import Path
from typing import Any

import browser
import numpy as np
import pytest
import xarray as xr

from jaxbio.cli import main as cli
from jaxbio.learners.exp3 import DAdaExp3
from jaxbio.learners.metabio import MetaBIO
from jaxbio.learners.registry import make_learner
from jaxbio.storage import netcdf
from jaxbio.studies.paper import report
from jaxbio.studies.paper.experiment import Experiment, Options
from jaxbio.studies.paper.registry import EXPERIMENTS
from jaxbio.studies.paper.report.choices import _only_judged, variants
from jaxbio.studies.paper.report.folder import _rebuild, check
from jaxbio.studies.paper.report.section import VARIANTS, contradictions, load, margin
from jaxbio.studies.paper.verdicts import Verdict, judge
from jaxbio.trees import pytree

TINY = Options(horizon=300, runs=4, rounds=30)
COMMAND = "jaxbio reproduce 4 --horizon 300 --runs 4"
SWITCHING = EXPERIMENTS[4]


class Tags(html.parser.HTMLParser):
    """Every tag with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.found if tag == name]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path], list[Verdict]]:
    folder = tmp_path_factory.mktemp("report")
    data = SWITCHING.play(TINY, progress=False)
    verdicts = judge(SWITCHING.claims(TINY), data)
    files = report.write(folder, SWITCHING, data, TINY, verdicts, COMMAND)
    return folder, files, verdicts


def test_all_files_are_there(written: Any) -> None:
    folder, files, _ = written
    names = {path.relative_to(folder).as_posix() for path in files}
    assert {"report.md", "report.html", "data/experiment-4.nc"} <= names
    for kind in ("regret", "final", "waiting", "bounds"):
        for variant in ("light.png", "light.pdf", "dark.png", "dark.pdf", "light-narrow.png"):
            assert f"figures/experiment-4-{kind}-{variant}" in names
    assert all(path.stat().st_size > 0 for path in files)


def test_the_page_needs_nothing_from_elsewhere(written: Any) -> None:
    page = (written[0] / "report.html").read_text(encoding="utf-8")
    tags = Tags(page)
    for _, attributes in tags.found:
        for name in ("src", "href", "srcset"):
            assert (attributes.get(name) or "#").startswith(("#", "data:"))
    assert not tags.named("script")
    assert not any(name.startswith("on") for _, found in tags.found for name in found)
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_the_page_shows_all_figures_and_verdicts(written: Any) -> None:
    folder, _, verdicts = written
    tags = Tags((folder / "report.html").read_text(encoding="utf-8"))
    assert len(tags.named("img")) == 4
    assert len(tags.named("source")) == 3 * 4
    assert all(image["alt"] and image["width"] for image in tags.named("img"))
    for name in ("report.html", "report.md"):
        text = (folder / name).read_text(encoding="utf-8").replace("&#x27;", "'")
        assert COMMAND in text
        for verdict in verdicts:
            assert verdict.statement in text
    outcomes = [span["class"] for span in tags.named("span")]
    assert outcomes == [f"outcome {verdict.outcome}" for verdict in verdicts]


def test_the_data_are_as_they_were(written: Any) -> None:
    with xr.open_dataset(written[0] / "data/experiment-4.nc", engine="scipy") as kept:
        assert [str(name) for name in kept.learner.values] == list(SWITCHING.learners(TINY))
        assert kept.regret.shape == (4, TINY.runs, TINY.rounds)
        assert json.loads(kept.attrs["horizon"]) == [TINY.horizon]


def test_netcdf_holds_what_it_usually_cannot(tmp_path: Path) -> None:
    data = xr.Dataset(
        {"big": ("x", np.array([2**40, 1])), "small": ("x", np.array([1, 2]))},
        {"x": ["a", "b"]},
        {"paired": True, "nothing": None},
    ).assign(flag=("x", np.array([True, False])), thing=("x", np.array([Path("p"), 3], object)))
    with xr.open_dataset(netcdf.save(data, tmp_path / "x.nc"), engine="scipy") as kept:
        assert kept.big.values.tolist() == [2**40, 1]
        assert kept.small.dtype == np.int32
        assert kept.flag.values.tolist() == [1, 0]
        assert kept.attrs["paired"] == "True"


def test_a_second_experiment_joins_the_report(written: Any) -> None:
    """From the kept section alone: nothing is drawn anew."""
    folder = written[0]
    kept = json.loads((folder / "data/experiment-4.json").read_text(encoding="utf-8"))
    other = folder / "data/experiment-9.json"
    other.write_text(json.dumps(kept | {"number": 9, "title": "Another"}), encoding="utf-8")
    _rebuild(folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    other.unlink()
    _rebuild(folder)
    assert page.index("Experiment 4:") < page.index("Experiment 9: Another")


EVIL = '"><script>alert(1)</script>'


def kept_with(folder: Path, **changes: Any) -> Path:
    """A section beside that of the report, with entries that somebody else has written."""
    kept = json.loads((folder / "data/experiment-4.json").read_text(encoding="utf-8"))
    other = folder / "data/experiment-9.json"
    other.write_text(json.dumps(kept | {"number": 9} | changes), encoding="utf-8")
    return other


VERDICT = {"statement": "birds swim", "outcome": "yes", "detail": "by far"}
FILES = {variant: f"figures/experiment-4-regret-{variant}.png" for variant in VARIANTS[:4]}


def picture(**changes: str) -> list[Any]:
    return [{"name": "x", "caption": "y", "files": FILES | changes}]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"number": EVIL}, "number"),
        ({"number": True}, "number"),
        ({"number": 8}, "experiment"),
        ({"title": 3}, "title"),
        ({"data": EVIL}, "data"),
        ({"data": "data/../../x.nc"}, "data"),
        ({"verdicts": [VERDICT | {"outcome": EVIL}]}, "outcome"),
        ({"verdicts": [VERDICT | {"mean": EVIL}]}, "mean"),
        ({"verdicts": [VERDICT | {"more": 1}]}, "more"),
        ({"verdicts": {}}, "verdicts"),
        ({"settings": {}}, "runs"),
        ({"settings": {"runs": [EVIL]}}, "runs"),
        ({"versions": {"jax": 1}}, "versions.jax"),
        ({"commands": {"a": "b\n```\n" + EVIL}}, "commands.a"),
        ({"sensitivity": {"choices": ["a"], "verdicts": [[]]}}, "sensitivity"),
        ({"sensitivity": {"choices": [1], "verdicts": []}}, "choices"),
        ({"pictures": []}, "pictures"),
        ({"pictures": picture(light="../secret.txt")}, "files.light"),
        ({"pictures": picture(dark="figures/../secret.png")}, "files.dark"),
        ({"pictures": picture(light="/etc/passwd")}, "files.light"),
        ({"pictures": picture(dark="data/experiment-4.json")}, "files.dark"),
        ({"pictures": [{"name": "x", "caption": "y", "files": {}}]}, "files"),
        ({"pictures": picture(light="figures/text.png")}, "text.png"),
        ({"pictures": picture(light="figures/none.png")}, "there is no such file"),
        ({"title": "\ud800"}, "experiment-9.json is not JSON"),
        ({"verdicts": [VERDICT | {"mean": 10**400}]}, "mean"),
        ({"pictures": picture(light="figures/link.png")}, "link.png"),
    ],
)
def test_a_section_of_a_stranger_is_refused(written: Any, changes: Any, named: str) -> None:
    """Nothing is written, and the error says what is wrong in which file."""
    folder = written[0]
    before = (folder / "report.html").read_bytes()
    secret = folder.parent / "secret.txt"
    secret.write_text("secret")
    (folder / "figures/text.png").write_text("secret")
    shutil.copy(folder / FILES["light"], folder.parent / "private.png")
    (folder / "figures/link.png").symlink_to(folder.parent / "private.png")
    other = kept_with(folder, **changes)
    try:
        with pytest.raises(ValueError, match=re.escape(named)) as refused:
            _rebuild(folder)
    finally:
        for path in (other, folder / "figures/text.png", folder / "figures/link.png"):
            path.unlink()
    assert str(folder) in str(refused.value)
    assert (folder / "report.html").read_bytes() == before


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "[]", "null"])
def test_a_section_that_is_none_is_named(written: Any, text: str) -> None:
    other = kept_with(written[0])
    other.write_text(text)
    with pytest.raises(ValueError, match=r"experiment-9\.json"):
        _rebuild(written[0])
    other.unlink()


def test_words_of_a_stranger_are_words_on_the_page(written: Any) -> None:
    """Every text of a section that may hold anything, in the page and in the Markdown."""
    folder = written[0]
    verdict = VERDICT | {"statement": EVIL, "detail": EVIL, "outcome": "no"}
    own = picture()[0] | {"name": EVIL, "caption": EVIL}
    other = kept_with(
        folder,
        title=EVIL,
        about=EVIL,
        pictures=[own],
        verdicts=[verdict],
        settings={"runs": EVIL, EVIL: EVIL},
        versions={EVIL: EVIL},
        commands={EVIL: "b"},
        sensitivity={"choices": [EVIL], "verdicts": [[verdict]]},
    )
    _rebuild(folder)
    page, text = ((folder / f"report.{kind}").read_text("utf-8") for kind in ("html", "md"))
    other.unlink()
    _rebuild(folder)
    tags = Tags(page)
    assert not tags.named("script")
    assert page.count("&lt;script&gt;") >= 12
    assert not re.search(r"(?<!\\)<script", text)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"number": "9"}, "experiment-9.json.number must be an integer"),
        ({"pictures": picture(light="figures/none.png")}, "none.png must be a PNG of the report"),
    ],
)
def test_a_stranger_is_refused_before_anything_is_played(
    written: Any,
    changes: Any,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)
    monkeypatch.setattr(Experiment, "play", lambda *_, **__: pytest.fail("played"))
    other = kept_with(written[0], **changes)
    assert cli.main(["reproduce", "1", "--folder", str(written[0])]) == 2
    assert said in capsys.readouterr().err
    other.unlink()


def test_an_experiment_whose_pictures_are_gone_can_be_played_again(written: Any) -> None:
    kept_with(written[0], pictures=picture(light="figures/none.png"))
    check(written[0], 9)
    with pytest.raises(ValueError, match=r"none\.png"):
        check(written[0], 4)
    (written[0] / "data/experiment-9.json").unlink()


@pytest.mark.parametrize("missing", ["mean", "low", "high", "p"])
def test_a_margin_that_is_not_whole_is_told_in_words(missing: str) -> None:
    numbers: Any = dict.fromkeys(("mean", "low", "high", "p"), 1.0) | {missing: None}
    assert margin(Verdict("birds swim", "yes", "by far", **numbers)) == "by far"


def test_contradictions_are_said_plainly(written: Any) -> None:
    section = load(written[0] / "data/experiment-4.json")
    no, maybe = (Verdict("birds swim", word, "margin -1") for word in ("no", "undecided"))
    said = contradictions(dataclasses.replace(section, verdicts=[no, maybe]))
    assert said[0].startswith('Contradicts the paper: "birds swim"')
    assert said[1].startswith("Not decided by 4 runs")
    assert "Nothing" in contradictions(dataclasses.replace(section, verdicts=[]))[0]


def test_variants_cover_what_the_paper_leaves_open() -> None:
    names = [name for name, _, _ in variants(EXPERIMENTS[2], Options())]
    assert names == [
        "as reported",
        "tuning anytime",
        "tuning printed",
        "delta 0.01",
        "delta 0.5",
        "growth of phases: log",
        "NSD-UCRL2 window 500",
    ]
    assert "DAda-Exp3" not in _only_judged(EXPERIMENTS[2], TINY).learners(TINY)


@pytree
class Inverted(MetaBIO):
    """MetaBIO with the waiting rule turned round: it waits where it knows enough."""

    def waits(self, arrived: Any, needed: Any) -> Any:
        return arrived >= needed


def stochastic_with(metabio: Any) -> Experiment:
    """Experiment 1 with DAda-Exp3 and what is called MetaBIO."""
    learners = {"DAda-Exp3": make_learner("dada-exp3"), "MetaBIO": metabio}
    return dataclasses.replace(EXPERIMENTS[1], learners=lambda options: learners)


def outcomes(experiment: Experiment, options: Options) -> list[str]:
    data = experiment.play(options, progress=False)
    return [verdict.outcome for verdict in judge(experiment.claims(options), data)]


@pytest.mark.slow
def test_a_broken_learner_turns_the_verdicts_red() -> None:
    options = Options(horizon=3000, runs=20, rounds=10)
    good = outcomes(stochastic_with(make_learner("metabio")), options)
    broken = outcomes(stochastic_with(Inverted(DAdaExp3(0.05), 0.1)), options)
    assert good == ["yes"] * 4
    assert "no" in broken
    assert "yes" not in broken


# --- in a real browser, on a phone and on a desk; CI installs one

in_browser = pytest.mark.skipif(browser.CHROMIUM is None, reason="Chromium is not installed")


@in_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_all_figures_are_visible_and_the_console_is_empty(
    written: Any, width: int, tmp_path: Path
) -> None:
    seen = browser.look_at(written[0] / "report.html", width, tmp_path)
    assert seen.console == []
    assert seen.width == width
    assert seen.needed <= width, "the page must be scrolled sideways"
    assert len(seen.images) == 4
    for image in seen.images:
        assert image["shown"]
        assert image["natural"] > 0
        assert image["height"] > 100
        assert 0 <= image["left"] < image["right"] <= width
        assert image["right"] - image["left"] > 0.7 * min(width, 1080)


@in_browser
@pytest.mark.parametrize(
    ("said", "what"),
    [
        ('<script>console.error("wrong")</script>', "console"),
        ('<img src="missing.png" width="50" height="200">', "images"),
        ('<div style="width: 500px; height: 1px"></div>', "needed"),
    ],
)
def test_the_browser_sees_what_is_wrong(said: str, what: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(f"<!doctype html><title>x</title><body>{said}</body>")
    seen = browser.look_at(page, 390, tmp_path)
    wrong = {
        "console": any("wrong" in line for line in seen.console),
        "images": any(image["natural"] == 0 for image in seen.images),
        "needed": seen.needed > 390,
    }
    assert wrong[what]


def test_a_full_disk_is_named_and_leaves_the_report_as_it_was(
    written: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = written[0]
    before = (folder / "report.md").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr("jaxbio.storage.atomic.os.fsync", full)
        with pytest.raises(OSError, match=r"No space left on device: .*report\.md"):
            _rebuild(folder)
    assert (folder / "report.md").read_bytes() == before
