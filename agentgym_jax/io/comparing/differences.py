"""What tells two runs apart: settings, environment and library versions, hardware."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentgym_jax.io.comparing.stored import StoredRun

Facts = dict[tuple[str, str], Any]  # {(kind, field): value}
BLOCKING = ("environment", "evaluation", "budget")  # kinds that forbid a verdict
_KINDS = {
    "env": "environment", "eval": "evaluation", "train": "training", "network": "network", "algorithm": "algorithm",
    "seeds": "seeds",
}  # fmt: skip
_MACHINE = ("platform", "backend", "device_kind", "cores", "xla_flags", "x64", "prng")
_SAME_BUDGET = 1.01  # budgets are rounded up to whole iterations and points
ABSENT = "–"


def facts(run: StoredRun, setting: Mapping[str, Any]) -> Facts:
    """Everything that a run's numbers depend on, at one of its swept settings."""
    found: Facts = {}
    for section, kind in _KINDS.items():
        found |= {(kind, field): value for field, value in _flat(section, run.config.get(section))}
    for key, value in setting.items():
        found[_KINDS.get(key.partition(".")[0], "algorithm"), key] = value
    found["summary", "eval.threshold"] = found.pop(("evaluation", "eval.threshold"), None)
    found["budget", "train.total_steps"] = found.pop(("training", "train.total_steps"), None)
    found["budget", "steps that ran"] = run.summary["total_steps"]
    found["environment", "version"] = run.summary.get("protocol", {}).get("environment_version")
    return found | surroundings(run.provenance) | _library(run)


def surroundings(provenance: Mapping[str, Any]) -> Facts:
    """Library versions, this project's commit and the hardware of a provenance record."""
    machine = provenance["machine"]
    found: Facts = {("versions", name): version for name, version in provenance["versions"].items()}
    found |= {("hardware", name): machine.get(name) for name in _MACHINE}
    found["hardware", "devices"] = len(machine.get("devices", ()))
    git = provenance.get("agentgym_jax_git")
    commit = git and git["commit"][:12] + (" changed" if git.get("changed") else "")
    found["versions", "agentgym_jax commit"] = commit
    return found


def differences(all_facts: Sequence[Facts]) -> list[dict[str, Any]]:
    """[{kind, field, values}] of every fact in which not all agree; `values` has one for each, None where it is absent."""
    keys = list(dict.fromkeys(key for each in all_facts for key in each))
    result = []
    for kind, field in keys:
        values = [each.get((kind, field)) for each in all_facts]
        if len({json.dumps(value, sort_keys=True) for value in values}) > 1:
            result.append({"kind": kind, "field": field, "values": values})
    order = [*BLOCKING, "training", "network", "algorithm", "seeds", "summary", "versions", "hardware"]
    return sorted(result, key=lambda each: order.index(each["kind"]))


def forbidding(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The kinds of difference that leave no verdict. Budgets that ran within 1 % of each other are the same."""
    kinds = []
    for each in found:
        budget = each["kind"] == "budget"
        if budget and (each["field"] != "steps that ran" or max(each["values"]) <= _SAME_BUDGET * min(each["values"])):
            continue
        if each["kind"] in BLOCKING and each["kind"] not in kinds:
            kinds.append(each["kind"])
    return kinds


def in_words(difference: Mapping[str, Any], labels: Sequence[str]) -> str:
    """`env.params.gravity: 9.8 (first, third), 10 (second)`."""
    groups: dict[str, list[str]] = {}
    for label, value in zip(labels, difference["values"], strict=True):
        groups.setdefault(ABSENT if value is None else _shown(value), []).append(label)
    return f"{difference['field']}: " + ", ".join(f"{value} ({', '.join(who)})" for value, who in groups.items())


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _library(run: StoredRun) -> Facts:
    """The package that holds the environment, whose version is a part of the environment's."""
    versions, suite = run.provenance["versions"], str(run.summary["env"]).partition("/")[0]
    package = suite if suite in versions else "agentgym-jax"
    return {("environment", f"version of {package}"): versions.get(package)}


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, each in value.items():
            yield from _flat(f"{name}.{key}", each)
    elif value not in (None, {}):
        yield name, value
