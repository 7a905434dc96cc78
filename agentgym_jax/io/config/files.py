"""Experiment files as plain data: YAML or JSON, `base:` to inherit, dotted overrides. Imports no jax.

OmegaConf reads them: it takes 1e-4 for a number, unlike plain YAML, refuses a key that is written twice, merges and
interpolates.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config import check
from envs_jax.names import unknown

SECTIONS = ("env", "algorithm", "network", "train", "eval", "log", "seeds", "sweep", "search")
_SUFFIXES = (".yaml", ".yml", ".json")
_PACKAGE = Path(__file__).resolve().parents[2]


def config_root() -> Path:
    """The shipped files: in an installed wheel they travel with the package, in a checkout they are `experiments/configs`."""
    installed = _PACKAGE / "_configs"
    return installed if installed.is_dir() else _PACKAGE.parent / "experiments" / "configs"


def shipped_configs() -> list[str]:
    """The names of all shipped experiment files, such as `gymnax/cartpole_ppo`."""
    root = config_root()
    return sorted(path.relative_to(root).with_suffix("").as_posix() for path in root.glob("*/*.yaml"))


def find_config(config: str | Path, relative_to: Path | None = None) -> Path:
    """The file of a config: a path (relative to the file that names it, or to here), or a shipped name.

    Raises ConfigError with the nearest names when there is none.
    """
    text = str(config)
    if Path(text).suffix in _SUFFIXES:
        for folder in (relative_to, Path()):
            if folder is not None and os.path.isfile(folder / text):
                return (folder / text).resolve()
        raise ConfigError(f"config file {text} does not exist")
    if text in shipped_configs():
        return (config_root() / f"{text}.yaml").resolve()
    raise ConfigError(str(unknown("config", text, shipped_configs(), "(or give the path of a .yaml file)")))


def load_plain(config: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> dict[str, Any]:
    """A config name, file or mapping with its bases and the overrides, merged into plain data.

    Raises ConfigError for what cannot be found or read, and for an unknown section; keys inside a section are not looked at.
    """
    label = "the config" if isinstance(config, Mapping) else str(config)
    try:
        merged = _with_bases(OmegaConf.create(dict(config)), ()) if isinstance(config, Mapping) else _read(config, ())
        plain: Any = OmegaConf.to_container(_merged(merged, _dotted(overrides)), resolve=True)
    except (OmegaConfBaseException, YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{label}: {one_line(error)}") from None
    except TypeError:
        raise ConfigError(f"{label}: a list stands where a section is a mapping, such as env: {{id: ...}}") from None
    check.known_keys("", plain, SECTIONS)
    return plain


def one_line(error: Exception) -> str:
    """An error's message without line breaks and without OmegaConf's notes about its own objects."""
    lines = (line.strip() for line in str(error).splitlines())
    return " ".join(line for line in lines if not line.startswith(("full_key", "object_type", "reference_type")))


def _read(config: str | Path, chain: tuple[Path, ...]) -> Any:
    path = find_config(config, chain[-1].parent if chain else None)
    if path in chain:
        raise ConfigError(f"base: {' -> '.join(str(p) for p in (*chain, path))} goes round in a circle")
    try:
        loaded = OmegaConf.load(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from None
    if not OmegaConf.is_dict(loaded):
        raise ConfigError(f"{path}: must be a mapping with the sections {', '.join(SECTIONS)}")
    return _with_bases(loaded, (*chain, path))


def _with_bases(loaded: Any, chain: tuple[Path, ...]) -> Any:
    base = loaded.pop("base", None)
    return loaded if base is None else _merged(_read(base, chain), loaded)


def _merged(lower: Any, upper: Any) -> Any:
    """`upper` laid over `lower`; a section that `lower` gives by its name alone, `env: probe/constant`, can be added to."""
    for section, key in (("env", "id"), ("algorithm", "name")):
        if isinstance(lower.get(section), str) and OmegaConf.is_dict(upper.get(section)):
            lower[section] = {key: lower[section]}
    return OmegaConf.merge(lower, upper)


def _dotted(overrides: Sequence[str]) -> Any:
    for override in overrides:
        if not re.match(r"[A-Za-z_][\w.]*=", override):
            raise ConfigError(f"override {override!r} must read key=value, for example algorithm.gamma=0.98")
    return OmegaConf.from_dotlist(list(overrides))
