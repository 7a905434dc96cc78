"""Watching: episodes of an environment with random legal actions, or of a run's policy, as an animated GIF."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from agentgym_jax.checks import ConfigError, check_size
from agentgym_jax.io.config import check
from agentgym_jax.io.config.env_numbers import env_numbers
from agentgym_jax.io.config.load import load_experiment
from agentgym_jax.io.matching.players import policy_of
from agentgym_jax.io.running.assemble import DEFAULT_CAP, make_env
from agentgym_jax.rollout.episodes import advance_stats, no_stats, summarise
from envs_jax import multi, registry
from envs_jax.core import Env, TimeStep

_LEAST_SIDE = 280  # pixels of the shorter side at least: pictures of states are small
_CAPTION = 26  # pixels of the line below
_MILLISECONDS, _PAUSE = 250, 1500  # of a frame, and of an episode's last one


class Watched(NamedTuple):
    """What was played, and where its pictures are."""

    name: str
    player: str  # `random play`, or who acted
    episodes: tuple[dict[str, float], ...]  # return, length and the environment's metrics of each
    frames: int
    path: Path

    def line(self) -> str:
        """What happened, means over the episodes, in one line."""
        count = len(self.episodes)
        names = ["return", "length", *(name for name in self.episodes[0] if name not in ("return", "length", "agent_return"))]
        means = {name: np.mean([episode[name] for episode in self.episodes]) for name in names}
        numbers = ", ".join(f"{name} {value:.4g}" for name, value in means.items())
        played = "1 episode" if count == 1 else f"{count} episodes, on average"
        return f"{self.name}, {self.player}, {played}: {numbers}; {self.frames} frames are in {self.path}"


class _Player(NamedTuple):
    name: str
    label: str
    env: Env
    params: Any
    carry: Any
    act: Callable[..., tuple[Any, jax.Array]]  # (carry, timestep, key, first) -> carry, action


def watch(
    target: str,
    out: str | Path | None = None,
    seed: int = 0,
    greedy: bool = True,
    episodes: int = 1,
    overrides: Sequence[str] = (),
    overwrite: bool = False,
) -> Watched:
    """Plays and writes an animated GIF, a frame a state.

    Args:
      target: an environment's id, played at random, or a run directory (`path:seed` for another member than the first).
      out: the file; None: named after the target, in the current folder.
      seed: of starts, chance and actions. greedy: a run acts by its mode, else by its behaviour policy. episodes: ≥ 1.
      overrides: `env.kwargs.size=7` and the like, for an environment; a run keeps its own settings.
      overwrite: replace an existing file.

    Raises:
      ConfigError: in one line, before anything is played, for what is neither environment nor run, for an environment
      without pictures, and for a file that exists or cannot be written.
    """
    episodes, seed = check.whole("episodes", episodes), check.whole("seed", seed, least=0)
    check_size("seed", seed)
    path = _free_path(target, out, overwrite)
    player = _run_player(target, greedy, overrides) if _is_run(target) else _random_player(target, overrides)
    begin, step = _programs(player, _drawing(player))
    steps = player.env.spec.episode_limit or DEFAULT_CAP
    keys = jax.random.split(jax.random.key(seed), (episodes, 1 + steps))
    told, frames, durations = [], [], []
    for number in range(episodes):
        title = f"episode {number + 1}   " if episodes > 1 else ""
        for picture, numbers in (moments := list(_episode(begin, step, keys[number]))):
            frames.append(_frame(picture, f"{title}step {numbers['length']:.0f}   return {numbers['return']:.4g}"))
        durations += [_MILLISECONDS] * (len(moments) - 1) + [_PAUSE]
        told.append(moments[-1][1])
    _save(path, frames, durations)
    return Watched(player.name, player.label, tuple(told), len(frames), path)


def _free_path(target: str, out: str | Path | None, overwrite: bool) -> Path:
    name = Path(target).name if _is_run(target) else target
    path = Path(name.replace("/", "_").replace(":", "-seed") + ".gif") if out is None else Path(out)
    if path.suffix.lower() != ".gif":
        raise ConfigError(f"--out: {path} must end in .gif")
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise ConfigError(
            f"--out: {path} cannot be written: {'it is a folder' if path.is_dir() else 'its folder does not exist'}"
        )
    if path.exists() and not overwrite:
        raise ConfigError(f"--out: {path} exists; choose another --out, or --overwrite to replace it")
    return path


def _is_run(target: str) -> bool:
    """Whether it names a folder, with or without `:seed`."""
    return Path(target).is_dir() or Path(target.rpartition(":")[0] or target).is_dir()


def _run_player(target: str, greedy: bool, overrides: Sequence[str]) -> _Player:
    if overrides:
        raise ConfigError(f"{overrides[0]}: a run keeps its own settings; overrides are for an environment's id")
    _, policy = policy_of(target, greedy, {})
    assembly = policy.assembly
    config = assembly.experiment.env.id
    name = config if isinstance(config, str) else type(config).__name__

    def act(carry: Any, timestep: TimeStep, key: jax.Array, first: jax.Array) -> tuple[Any, jax.Array]:
        return policy(carry, timestep.observation, key, timestep.action_mask, first)

    label = f"{assembly.experiment.name} ({'greedy' if greedy else 'sampled'})"
    return _Player(name, label, assembly.env, assembly.params, policy.init(), act)


def _random_player(target: str, overrides: Sequence[str]) -> _Player:
    try:
        id = registry.resolve(target)
    except ValueError as error:
        raise ConfigError(f"{target} is no run directory, and {error}") from None
    experiment = load_experiment({"env": {"id": id}}, list(overrides))
    env = make_env(experiment.env)

    def act(carry: Any, timestep: TimeStep, key: jax.Array, first: jax.Array) -> tuple[Any, jax.Array]:
        return carry, env.spec.sample_actions(key, timestep)

    return _Player(str(experiment.env.id), "random play", env, env_numbers(env, experiment).params, (), act)


def watchable() -> list[str]:
    """The ids of this project's own environments that draw pictures."""
    return [f"multi/{name}" for name, kind in multi.ENVIRONMENTS.items() if kind.render is not Env.render]


def _drawing(player: _Player) -> Callable[[Any, TimeStep], jax.Array]:
    """How a moment becomes a picture: as the environment draws it, or its observation where that is an image."""
    env, key = player.env, jax.random.key(0)
    shapes = jax.eval_shape(env.reset, key, player.params)
    try:
        jax.eval_shape(env.render, shapes[0])
        return lambda state, timestep: env.render(state)
    except NotImplementedError:
        space = env.spec.observation_space
        if env.spec.num_agents is None and len(getattr(space, "shape", ())) == 3:
            return lambda state, timestep: planes(timestep.observation)
    raise ConfigError(
        f"{player.name} draws no pictures, and it is not one agent that observes an image; to be watched are"
        f" {', '.join(watchable())}, all of jaxmarl, jumanji's LevelBasedForaging, Connector and Cleaner, and environments of"
        " one agent that observe an image, such as gymnax/Breakout-MinAtar"
    )


def planes(observation: jax.Array) -> jax.Array:
    """An image of C planes [h, w, C] for people, uint8 [h, w, 3]: bytes of three planes as they are, else a colour a plane."""
    if observation.dtype == jnp.uint8 and observation.shape[-1] == 3:
        return observation
    count, image = observation.shape[-1], observation.astype(jnp.float32)
    bright = jnp.abs(image) / jnp.maximum(jnp.max(jnp.abs(image)), 1e-6)
    hue = jnp.arange(count)[:, None] / count + jnp.asarray([0, 2 / 3, 1 / 3])[None]
    colours = 0.55 + 0.45 * jnp.cos(2 * math.pi * hue)
    lit = bright[..., None] * colours[None, None]
    return jnp.round(24 + 231 * jnp.max(lit, axis=2)).astype(jnp.uint8)


def _programs(player: _Player, draw: Callable[[Any, TimeStep], jax.Array]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """begin(key) and step(moment, key, first) -> moment, picture, numbers; a moment is (carry, state, timestep, statistics)."""
    env, spec = player.env, player.env.spec

    def shown(carry: Any, state: Any, timestep: TimeStep, stats: Any) -> tuple[Any, jax.Array, dict[str, jax.Array]]:
        numbers = {name: value[0] for name, value in summarise(spec, stats).items()}
        length = stats.length[0].astype(jnp.float32)  # also of an episode that has not begun
        return (carry, state, timestep, stats), draw(state, timestep), numbers | {"length": length}

    def begin(key: jax.Array) -> Any:
        return shown(player.carry, *env.reset(key, player.params), no_stats(spec, 1))

    def step(moment: Any, key: jax.Array, first: jax.Array) -> Any:
        carry, state, timestep, stats = moment
        key_act, key_env = jax.random.split(key)
        carry, action = player.act(carry, timestep, key_act, first)
        state, timestep = env.transition(key_env, state, action, player.params)
        reward = timestep.reward[None] if spec.num_agents is None else timestep.reward
        stats = advance_stats(spec, stats, jax.tree.map(lambda x: x[None], timestep.replace(reward=reward)))
        return shown(carry, state, timestep, stats)

    return jax.jit(begin), jax.jit(step)


def _episode(
    begin: Callable[..., Any], step: Callable[..., Any], keys: jax.Array
) -> Iterator[tuple[np.ndarray, dict[str, float]]]:
    """The picture of every state of one episode, and its numbers so far; `keys`: of its start, then of every step."""
    moment, picture, numbers = begin(keys[0])
    yield np.asarray(picture), {name: float(value) for name, value in numbers.items()}
    for time, key in enumerate(keys[1:]):
        moment, picture, numbers = step(moment, key, time == 0)
        yield np.asarray(picture), {name: float(value) for name, value in numbers.items()}
        if bool(moment[2].last):
            return


def _frame(picture: np.ndarray, caption: str) -> Image.Image:
    """The picture, enlarged by a whole factor, above its caption."""
    factor = max(1, math.ceil(_LEAST_SIDE / min(picture.shape[:2])))
    height, width = (factor * side for side in picture.shape[:2])
    frame = Image.new("RGB", (width, height + _CAPTION), (12, 12, 16))
    frame.paste(Image.fromarray(picture).resize((width, height), Image.Resampling.NEAREST))
    ImageDraw.Draw(frame).text((8, height + 5), caption, fill=(224, 228, 236), font=ImageFont.load_default(14))
    return frame.quantize(128, dither=Image.Dither.NONE)


def _save(path: Path, frames: list[Image.Image], durations: list[int]) -> None:
    """Writes the whole file at once."""
    written = io.BytesIO()
    frames[0].save(written, "GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0)
    try:
        path.write_bytes(written.getvalue())
    except OSError as error:
        raise ConfigError(f"--out: {path} cannot be written: {error.strerror or error}") from None
