"""The report is one file without a network, and its numbers are those of the events."""

import base64
import json
import re
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from orchestrator.errors import UserError
from orchestrator.events import Event, RateChosen, RunEnded, RunStarted, StepsTrained, Validated, Warned
from orchestrator.history import history
from orchestrator.journal_file import read_journal
from orchestrator.recorders.figures import cost, rates_and_losses, searches
from orchestrator.recorders.report import ReportRecorder, write_report
from orchestrator.recorders.style import LIGHT, png
from orchestrator.summary import summarise
from orchestrator.words import loss_text, rate_text

DATA = Path(__file__).parent.parent / "data"
RUN = read_journal(DATA / "journal_autolrs.jsonl")


class Page(HTMLParser):
    """Collects a page's text, tables and whatever refers to elsewhere; complains about tags left open."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.references += [value or "" for name, value in attributes if name in ("src", "href", "srcset", "action")]
        if tag not in ("meta", "img", "source"):
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "td" in self._open:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with its report."""
    path = tmp_path_factory.mktemp("run")
    (path / "journal.jsonl").write_bytes((DATA / "journal_autolrs.jsonl").read_bytes())
    assert write_report(path) == path / "report.html"
    return path


@pytest.fixture(scope="module")
def page(folder: Path) -> Page:
    """Its page, parsed."""
    return Page((folder / "report.html").read_text())


def test_it_needs_nothing_but_itself(page: Page, folder: Path) -> None:
    assert len(page.references) == 6  # three figures, light and dark
    assert all(reference.startswith("data:image/png;base64,") for reference in page.references)
    html = (folder / "report.html").read_text()
    assert not re.search(r"url\(|@import|<script|<link|<iframe", html)


def test_its_figures_are_pictures_with_something_in_them(page: Page, folder: Path) -> None:
    pages_own = [imread(BytesIO(base64.b64decode(each.partition(",")[2]))) for each in page.references]
    files = [imread(path) for path in sorted((folder / "figures").iterdir())]
    assert len(files) == 3
    for image in [*pages_own, *files]:
        assert image.shape[1] == 1600
        assert float(np.std(image[..., :3])) > 0.02


def test_every_decision_is_in_it(page: Page) -> None:
    for event in RUN:
        if isinstance(event, RateChosen):
            choice = event.choice
            (row,) = (row for row in page.rows if row[:1] == [str(choice.stage)] and len(row) == 8)
            assert row[4] == rate_text(choice.rate)
            assert row[7] == choice.reason
            assert int(row[2]) == choice.steps


def test_every_probe_is_in_it(page: Page) -> None:
    story = history(RUN)
    expected = [
        [str(stage.number), rate_text(probe.rates[-1]), str(len(probe.rates)), loss_text(probe.train_losses[-1]),
         "diverged" if forecast.diverged else loss_text(forecast.loss), f"{forecast.quality:.2f}"]
        for stage in story.stages.values()
        for probe, forecast in zip(stage.probes, stage.forecasts, strict=False)
    ]  # fmt: skip
    assert [row for row in page.rows if len(row) == 6][1:] == expected  # the first is the range test


def test_result_and_configuration_are_whole(page: Page) -> None:
    ended, started = RUN[-1], RUN[0]
    assert isinstance(ended, RunEnded)
    assert isinstance(started, RunStarted)
    shown = {row[0]: row[1] for row in page.rows if len(row) == 2}
    for name, value in ended.result.items():
        assert shown[name] == (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    assert "key_value_heads: 2" in page.text
    for loss in (ended.result["validation_loss"], ended.result["train_loss"], ended.result["test"]["loss"]):
        assert loss_text(loss) in page.text


def test_other_numbers_give_another_report(folder: Path, tmp_path: Path) -> None:
    recorder = ReportRecorder(tmp_path, earlier=RUN[:50])
    for event in RUN[50:]:
        recorder.record(_doubled(event))
    recorder.close()
    assert "2.798" in Page((tmp_path / "report.html").read_text()).text  # twice 1.399
    name = "figures/rates_and_losses.png"
    assert (tmp_path / name).read_bytes() != (folder / name).read_bytes()


def test_a_figure_of_the_same_events_is_the_same_bytes(folder: Path) -> None:
    assert png(cost(summarise(RUN), LIGHT)) == (folder / "figures" / "cost.png").read_bytes()


def test_a_run_without_a_search_and_one_cut_short(tmp_path: Path) -> None:
    cosine = read_journal(DATA / "journal_cosine.jsonl")
    assert searches(history(cosine), LIGHT) is None
    lines = (DATA / "journal_cosine.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "journal.jsonl").write_text("".join(lines[:20]))
    page = Page(write_report(tmp_path).read_text())
    assert "UNFINISHED" in page.text
    assert "Decisions" not in page.text
    assert not (tmp_path / "figures" / "searches.png").exists()


@pytest.mark.parametrize("count", [1, 3])
def test_a_run_that_never_trained(tmp_path: Path, count: int) -> None:
    events = [*RUN[:count], Warned("<b>careful</b>"), RunEnded("FAILED", "no <workers>", {})]
    recorder = ReportRecorder(tmp_path)
    for event in events:
        recorder.record(event)
    text = Page((tmp_path / "report.html").read_text()).text
    assert "no <workers>" in text
    assert "<b>careful</b>" in text


def test_losses_that_are_not_finite_are_drawn_around() -> None:
    nan, inf = float("nan"), float("inf")
    losses = [nan, inf, *[2.0, 4.0] * 150]
    figure = rates_and_losses(history([StepsTrained(0, 0, [0.1] * 302, losses, 1.0)]), LIGHT)
    raw, smooth, _ = (line.get_ydata() for line in figure.axes[1].get_lines())
    assert np.array_equal(raw, losses, equal_nan=True)
    assert smooth[0] == 3.0  # three neighbours to either side, the first two of them lost: 2 and 4
    assert smooth[100] == pytest.approx(3.0, abs=0.2)


def test_no_run_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no run folder"):
        write_report(tmp_path)


def _doubled(event: Event) -> Event:
    if isinstance(event, Validated):
        return Validated(
            event.step, event.split, {name: 2 * value for name, value in event.metrics.items()}, event.seconds
        )
    return event
