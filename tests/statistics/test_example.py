"""The example of docs/statistics.md gives what it says."""

import re

import pytest


def test_the_example_gives_the_numbers_of_its_comments(root):
    code = re.findall(r"```python\n(.*?)```", (root / "docs" / "statistics.md").read_text(), re.DOTALL)[0]
    names: dict = {}
    exec(code, names)
    ours, theirs = names["ours"], names["theirs"]
    told = re.findall(r"# ([\d.]+)", code)
    assert names["aggregates"].iqm(ours) == pytest.approx(float(told[1]))
    assert (names["low"], names["high"]) == pytest.approx((float(told[2]), 0.9))
    assert names["comparisons"].probability_of_improvement(ours, theirs) == float(told[3])
