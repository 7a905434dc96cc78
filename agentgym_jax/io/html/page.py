"""The page: HTML that fetches nothing and runs nothing. Anchors inside it are its only links."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentgym_jax import __version__
from agentgym_jax.io.html import svg
from agentgym_jax.io.html.content import Content, Section
from agentgym_jax.io.html.figures import Figure, Lines
from agentgym_jax.io.html.measures import Estimate
from agentgym_jax.io.html.results import Result
from agentgym_jax.io.html.tables import Forest, Named, Table

_UNNAMED = '<span class="hidden">interval</span>'
_STYLE = Path(__file__).with_name("style.css")
_READING = (
    ("IQM", "interquartile mean: the mean of the middle half of all runs. Less swayed by a single run than the mean, less"
     " coarse than the median."),
    ("optimality gap", "how far normalised scores stay below 1 on average; lower is better."),
    ("95 % interval", "stratified percentile bootstrap over seeds, within each task. With few seeds it is too narrow; one seed"
     " has none."),
    ("probability of improvement", "Mann–Whitney U divided by the number of pairs of runs, mean over tasks."),
    ("performance profile", "for each score τ the share of runs above it. A curve above another everywhere is better whatever"
     " the aggregate."),
    ("absolute metric", "the policy of each seed that was best at any evaluation point, played again on ten times as many fresh"
     " episodes."),
    ("sources", "Agarwal et al. 2021 (arXiv 2108.13264) for the statistics, Gorsane et al. 2022 (arXiv 2209.10485) for the"
     " protocol."),
)  # fmt: skip


def render(content: Content, made: str) -> str:
    """The page as text. `made`: when, as it shall be read."""
    tasks, algorithms = ({getattr(result, name) for result in content.results} for name in ("task", "algorithm"))
    runs = sum(len(result.seeds) for result in content.results)
    told = [_count(len(tasks), "task"), _count(len(algorithms), "algorithm"), _count(runs, "training run"), made]
    links = "".join(f'<a href="#s-{section.anchor}">{_text(section.title)}</a>' for section in content.sections)
    body = [
        f"<header><h1>{_text(content.title)}</h1>",
        f'<p class="told">{" · ".join(map(_text, told))} · agentgym_jax {__version__}</p>',
        f'<nav aria-label="sections">{links}<a href="#protocol">Protocol</a><a href="#configurations">Configurations</a>'
        '<a href="#reading">How to read this</a></nav></header><main>',
        _warnings(content.warnings),
        *(_section(section, number) for number, section in enumerate(content.sections)),
        f'<section id="protocol"><h2>Protocol</h2>{_table(content.protocol, "report")}</section>',
        '<section id="configurations"><h2>Configurations and provenance</h2>',
        *(_details(result, content.styles[result.algorithm]) for result in content.results),
        '</section><section id="reading"><h2>How to read this</h2><dl>',
        *(f"<dt>{_text(term)}</dt><dd>{_text(meaning)}</dd>" for term, meaning in _READING),
        "</dl></section></main>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f"<title>{_text(content.title)}</title><style>\n{_STYLE.read_text()}</style></head><body>\n"
        + "\n".join(part for part in body if part)
        + "\n</body></html>\n"
    )


def _section(section: Section, number: int) -> str:
    notes = "".join(f"<p>{_text(note)}</p>" for note in section.notes)
    board, *others = section.tables
    pictures = "".join(_figure(figure, f"f{number}-{place}") for place, figure in enumerate(section.figures))
    return (
        f'<section id="s-{section.anchor}"><h2>{_text(section.title)}</h2>{notes}{_table(board, section.anchor)}'
        f'<div class="figures">{pictures}</div>{"".join(_table(other, section.anchor) for other in others)}</section>'
    )


def _figure(figure: Figure, identity: str) -> str:
    legend = ""
    if isinstance(figure, Lines):
        items = "".join(f"<li>{svg.swatch(each.style)}{_text(each.label)}</li>" for each in figure.series)
        legend = f'<ul class="legend">{items}</ul>'
    return f"<figure><figcaption>{_text(figure.title)}</figcaption>{legend}{svg.draw(figure, identity)}</figure>"


def _table(table: Table, anchor: str) -> str:
    """Wide tables scroll inside their box, which the keyboard reaches too; what they show is told above it."""
    numeric = [all(_is_number(row[column]) for row in table.rows) for column in range(len(table.headings))]
    head = "".join(
        f'<th scope="col"{_align(right)}>{_text(heading) or _UNNAMED}</th>'
        for heading, right in zip(table.headings, numeric, strict=True)
    )
    rows = "".join(f"<tr>{''.join(map(_cell, row, numeric))}</tr>" for row in table.rows)
    identity = f"t-{anchor}-{table.kind}"
    return (
        f'<p class="caption" id="{identity}">{_text(table.caption)}</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-labelledby="{identity}"><table class="{table.kind}"'
        f' aria-labelledby="{identity}"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _cell(cell: Any, right: bool) -> str:
    if isinstance(cell, Named):
        badge = ' <span class="badge">external</span>' if cell.external else ""
        return f'<th scope="row">{svg.swatch(cell.style)}{_text(cell.label)}{badge}</th>'
    if isinstance(cell, Forest):
        return f'<td class="forest">{_forest(cell)}</td>'
    if isinstance(cell, Estimate):
        ends = f' <span class="ends">[{_number(cell.low)}, {_number(cell.high)}]</span>' if math.isfinite(cell.low) else ""
        return f"<td{_align(right)}>{_number(cell.value)}{ends}</td>"
    return f"<td{_align(right)}>{_number(cell) if _is_number(cell) else _text(cell)}</td>"


def _forest(cell: Forest) -> str:
    span = cell.high - cell.low or 1.0

    def across(value: float) -> float:
        return 6 + (value - cell.low) / span * 108

    value, low, high = cell.estimate
    return (
        f'<svg class="{svg.class_of(cell.style)}" viewBox="0 0 120 18" role="img" aria-label="{svg.told(cell.estimate)}">'
        f'<path class="track" d="M6 9H114"/>{svg.bar(low, high, across, 9)}{svg.mark(cell.style, across(value), 9)}</svg>'
    )


def _details(result: Result, style: int) -> str:
    facts = {"source": result.source, "seeds": ", ".join(result.seeds), **provenance_facts(result)}
    rows = "".join(f'<tr><th scope="row">{_text(name)}</th><td>{_text(value)}</td></tr>' for name, value in facts.items())
    config = f"<pre>{_text(result.config)}</pre>" if result.config else "<p>It brings no configuration.</p>"
    return (
        f"<details><summary>{svg.swatch(style)}{_text(result.algorithm)} on {_text(result.task)}</summary>"
        f'<div class="scroll"><table class="facts"><tbody>{rows}</tbody></table></div>{config}</details>'
    )


def provenance_facts(result: Result) -> dict[str, str]:
    """What a reader needs to make a result again; folders of the machine it was made on are left out."""
    known = result.provenance
    if not known:
        return {}
    machine, command = known.get("machine", {}), [str(word) for word in known.get("command", [])]
    git = known.get("agentgym_jax_git") or known.get("git") or {}
    facts = {
        "started": known.get("started", ""),
        "command": " ".join(Path(word).name if Path(word).is_absolute() else word for word in command),
        "commit": f"{git['commit']}{' with changes' if git.get('changed') else ''}" if "commit" in git else "",
        "versions": ", ".join(f"{name} {version}" for name, version in known.get("versions", {}).items()),
        "devices": f"{len(machine.get('devices', []))} × {machine.get('device_kind', '')} ({machine.get('backend', '')})",
        "cores": machine.get("cores", ""),
        "platform": machine.get("platform", ""),
        "flags": machine.get("xla_flags", ""),
    }
    return {name: str(value) for name, value in facts.items() if value}


def _warnings(lines: Sequence[str]) -> str:
    if not lines:
        return ""
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return f'<aside class="warnings" aria-label="warnings"><h2>Before you trust these numbers</h2><ul>{items}</ul></aside>'


def _is_number(cell: Any) -> bool:
    return isinstance(cell, Estimate | int | float) and not isinstance(cell, bool)


def _number(value: float) -> str:
    """Four digits that count; whole numbers in full, with separators."""
    if isinstance(value, int) or abs(value) >= 10_000:
        return f"{value:,.0f}".replace("-", "−")
    return f"{value:#.4g}".rstrip(".").replace("-", "−")


def _align(right: bool) -> str:
    return ' class="n"' if right else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _text(value: Any) -> str:
    return html.escape(str(value))
