"""The page as a browser would take it, without a browser."""

import csv
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from agentgym_jax.io.html.measures import AGGREGATES
from agentgym_jax.io.html.page import _number
from agentgym_jax.statistics import bootstrap
from agentgym_jax.statistics.comparisons import improvement_interval, probability_of_improvement
from agentgym_jax.statistics.curves import sample_efficiency, sample_efficiency_band
from agentgym_jax.statistics.normalise import min_max
from tests.io.html.conftest import CARTPOLE, PENDULUM, QUICK

VOID = {"meta", "br", "hr"}


class Page(HTMLParser):
    """Tags, attributes and text; whether every tag is closed where it should be."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text, self.tables = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data


@pytest.fixture(scope="module")
def parsed(written):
    return Page(written.page)


def table(written, name):
    with open(written.folder / "tables" / f"{name}.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_the_page_is_well_formed_and_every_run_is_on_it(written, parsed):
    assert not parsed.open
    text = " ".join(parsed.text)
    rows = next(rows for rows in parsed.tables if rows[0][0] == "task")[1:]
    assert {(row[0], row[1].removesuffix(" external")) for row in rows} == set(written.curves)
    for source in ("CartPole-v1_ppo", "Pendulum-v1_pqn", "group-000", "group-001", "elsewhere.json"):
        assert source in text
    assert "12: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11" in text
    assert "Made <up>" in text, "titles are escaped"
    for word in ("hidden:", "jax 0.10.2", "abc123", "2026-01-02", "agentgym train gymnax/cartpole_ppo"):
        assert word in text
    assert "/home/somebody" not in written.page, "a page tells nothing of the folders of a machine"


def test_nothing_is_fetched_and_nothing_runs(written, parsed):
    tags = {tag for tag, _ in parsed.tags}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "video", "audio", "source", "base", "form", "use"}
    names = [name for _, attributes in parsed.tags for name in attributes]
    assert not [name for name in names if name in ("src", "srcset", "xlink:href", "style", "action") or name.startswith("on")]
    ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in parsed.tags:
        if "href" in attributes:
            assert tag == "a"
            assert attributes["href"].removeprefix("#") in ids
        for identity in attributes.get("aria-labelledby", "").split():
            assert identity in ids
    for word in ("http:", "https:", "url(", "@import", "@font-face", "javascript:"):
        assert word not in written.page


def test_pictures_are_sound_described_and_inside_their_frame(written):
    pictures = [ElementTree.fromstring(text) for text in re.findall(r"<svg.*?</svg>", written.page, re.S)]
    described = [picture for picture in pictures if picture.find("desc") is not None]
    assert len(described) == 3 + 2 * 2
    for picture in described:
        assert picture.find("title").text
        assert len(picture.find("desc").text) > 40
        width, height = map(float, picture.get("viewBox").split()[2:])
        for path in picture.iter("path"):
            if path.get("class", "").startswith(("line", "band")):
                numbers = np.array(re.findall(r"-?\d+\.\d|-?\d+", path.get("d")), float).reshape(-1, 2)
                assert np.all(numbers >= 0)
                assert np.all(numbers <= (width, height))
    lines = [path for picture in described for path in picture.iter("path") if path.get("class") == "line"]
    assert len(lines) == 2 * 2 + 2 * 6 + 2 * 3
    assert len({path.get("stroke-dasharray") for path in lines}) > 4, "patterns tell them apart without colours"
    tips = [tip.text for picture in described for tip in picture.iter("title")]
    assert any(re.fullmatch(r"ppo at 6.4e\+04: [\d.]+ \[[\d.]+, [\d.]+\]", tip) for tip in tips)


def test_leaderboards_hold_the_numbers_of_the_statistics(written, parsed):
    rows = table(written, "gymnax-cartpole-v1_leaderboard")
    algorithms = {name for task, name in written.curves if task == CARTPOLE}
    assert {row["algorithm"] for row in rows} == algorithms
    assert [float(row["IQM"]) for row in rows] == sorted((float(row["IQM"]) for row in rows), reverse=True)
    both = {name: np.column_stack([written.curves[CARTPOLE, name], written.absolute[CARTPOLE, name]]) for name in algorithms}
    scaled = {name: x[:, 0, -1:] for name, x in min_max({name: x[:, None] for name, x in both.items()}).items()}
    shown = next(rows for rows in parsed.tables if rows[0][0] == "#" and len(rows) == 7)
    for row, cells in zip(rows, shown[1:], strict=True):
        scores = written.absolute[CARTPOLE, row["algorithm"]][:, None]
        assert cells[1:3] == [row["algorithm"], row["seeds"]] == [row["algorithm"], str(len(scores))]
        for name, statistic in AGGREGATES.items():
            own = scaled[row["algorithm"]] if name == "optimality gap" else scores
            low, high = bootstrap.interval(statistic, own, QUICK.aggregates)
            assert float(row[name]) == statistic(own)
            assert (float(row[f"{name} low 95 %"]), float(row[f"{name} high 95 %"])) == (low, high)
            place = 3 + list(AGGREGATES).index(name) + (name != "IQM")
            assert cells[place] == f"{_number(float(statistic(own)))} [{_number(low)}, {_number(high)}]"
        assert float(row["worst seed"]) == scores.min()


def test_algorithms_that_ran_on_every_task_are_compared_over_all(written):
    rows = table(written, "all-tasks_leaderboard")
    assert {row["algorithm"]: row["seeds"] for row in rows} == {"ppo": "10", "pqn": "10"}
    assert "Of pqn the first 10 seeds of each task" in written.page
    assert "learning_rate=0.01, theirs." in written.page
    columns = []
    for task in (CARTPOLE, PENDULUM):
        both = {
            name: np.column_stack([x, written.absolute[task, name]])[:, None]
            for (t, name), x in written.curves.items()
            if t == task
        }
        columns.append(min_max(both)["ppo"][:10, 0, -1])
    (ppo,) = [row for row in rows if row["algorithm"] == "ppo"]
    assert float(ppo["mean"]) == AGGREGATES["mean"](np.stack(columns, axis=1))


def test_pairs_are_compared_where_they_were_measured_alike(written):
    rows = table(written, "gymnax-pendulum-v1_probability-of-improvement")
    pairs = {(row["first"], row["second"]): row for row in rows}
    assert {frozenset(pair) for pair in pairs} == {
        frozenset(pair) for pair in (("ppo", "theirs"), ("ppo", "pqn"), ("theirs", "pqn"))
    }
    row = pairs["ppo", "pqn"]
    x, y = (written.absolute[PENDULUM, name][:, None] for name in ("ppo", "pqn"))
    assert float(row["probability"]) == probability_of_improvement(x, y)
    ends = (float(row["probability low 95 %"]), float(row["probability high 95 %"]))
    assert ends == improvement_interval(x, y, QUICK.comparisons)
    assert row["verdict"] == "ppo is better"


def test_curves_are_the_iqm_over_seeds_with_its_band(written):
    with open(written.folder / "figures" / "gymnax-pendulum-v1_learning-curves.csv", newline="") as file:
        heading, *rows = csv.reader(file)
    assert heading == ["algorithm", "environment steps of one seed", "return", "low 95 %", "high 95 %"]
    own = np.array([row[1:] for row in rows if row[0] == "pqn"], float)
    curves = written.curves[PENDULUM, "pqn"][:, None]
    np.testing.assert_array_equal(own[:, 0], [16_000, 32_000, 48_000, 64_000])
    np.testing.assert_array_equal(own[:, 1], sample_efficiency(curves))
    np.testing.assert_array_equal(own[:, 2:].T, sample_efficiency_band(curves, QUICK.bands))


def test_every_picture_is_there_as_png_and_csv(written):
    for folder, suffix in (("figures", ".png"), ("figures", ".csv"), ("tables", ".csv")):
        names = [path.name for path in (written.folder / folder).iterdir() if path.suffix == suffix]
        assert len(names) == (7 if folder == "figures" else 1 + 2 + 3 + 3)
    for path in (written.folder / "figures").glob("*.png"):
        with Image.open(path) as image:
            assert image.width > 600
            assert image.convert("L").getextrema()[0] < 100, "something is drawn"
    assert len(written.page) < 200_000
    assert sum(path.stat().st_size for path in written.folder.rglob("*") if path.is_file()) < 1_000_000


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_light_and_dark_are_both_complete_and_legible(written):
    style = re.search(r"<style>(.*?)</style>", written.page, re.S).group(1)
    light, dark = re.findall(r":root \{(.*?)\}", style, re.S)
    assert style.index("prefers-color-scheme: dark") < style.index(dark)
    themes = [dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", block)) for block in (light, dark)]
    assert set(themes[0]) == set(themes[1]) == set(re.findall(r"var\((--[\w-]+)\)", style))
    for theme in themes:
        for paper in ("--paper", "--panel"):
            assert contrast(theme["--ink"], theme[paper]) > 7
            assert contrast(theme["--soft"], theme[paper]) > 4.5
            assert contrast(theme["--link"], theme[paper]) > 4.5
            assert min(contrast(theme[f"--c{i}"], theme[paper]) for i in range(8)) > 4.5
        assert contrast(theme["--warn"], theme["--warn-paper"]) > 4.5
    assert 'name="viewport" content="width=device-width' in written.page
    assert ".scroll { overflow-x: auto;" in style


def test_every_wide_table_scrolls_in_its_own_box(written, parsed):
    boxes = len(re.findall(r'<div class="scroll"[^>]*><table', written.page))
    assert boxes == len(parsed.tables)
