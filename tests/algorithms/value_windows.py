"""Recorded windows of invented lives, tiny linear networks, and what learners of action values make of both, in loops."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from agentgym_jax.models.base import Model
from agentgym_jax.models.mixers import hypernet_mixer, sum_mixer
from agentgym_jax.types import Batch, Transition
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete

FEATURES, ACTIONS, WORLD, MEMORY = 3, 3, 2, 2
MIXED = {"mixer_embed": 2, "mixer_hidden": 3}


def spec_of(agents: int, reward: str) -> EnvSpec:
    """Agents of `FEATURES` numbers and `ACTIONS` actions in a world of `WORLD` numbers."""
    observation, world = (Box(-math.inf, math.inf, (size,)) for size in (FEATURES, WORLD))
    return EnvSpec(observation, Discrete(ACTIONS), num_agents=agents, reward=reward, world_space=world)


def linear() -> Model:
    """q = x W."""

    def init(key):
        return {"w": jax.random.normal(key, (FEATURES, ACTIONS))}

    return Model(init, lambda shape: (), lambda params, carry, inputs, reset: (inputs @ params["w"], ()))


def remembering() -> Model:
    """h = h / 2 + x U, from 0 after a reset; q = h W."""

    def init(key):
        key_u, key_w = jax.random.split(key)
        return {"u": jax.random.normal(key_u, (FEATURES, MEMORY)), "w": jax.random.normal(key_w, (MEMORY, ACTIONS))}

    def apply(params, carry, inputs, reset):
        def step(h, seen):
            x, new = seen
            h = jnp.where(new[..., None], 0.0, h) / 2 + x @ params["u"]
            return h, h

        _, carries = jax.lax.scan(step, carry, (inputs, reset))
        return carries @ params["w"], carries

    return Model(init, lambda shape: jnp.zeros((*shape, MEMORY)), apply)


def models_of(mixer: str, agents: int, recurrent: bool) -> dict[str, Any]:
    """{network, mixer} as a learner's `make` takes them."""
    world = Box(-math.inf, math.inf, (WORLD,))
    mixers = {"none": {}, "sum": {"mixer": sum_mixer()}}
    mixers["hypernet"] = {"mixer": hypernet_mixer(agents, world, MIXED["mixer_embed"], MIXED["mixer_hidden"])}
    return {"network": remembering() if recurrent else linear(), **mixers[mixer]}


# ---- recorded windows


def _lives(draw: np.random.Generator, length: int, agents: int, team: bool, survivor: bool) -> dict[str, list[Any]]:
    """One environment: agents die and slots are taken anew, with individual reward at once too; two kinds of ends."""
    out: dict[str, list[Any]] = {name: [] for name in ("alive", "next_alive", "discount", "last", "reset")}
    alive, reset = draw.random(agents) < 0.7, draw.random(agents) < 0.3
    mortal = np.arange(agents) >= survivor
    alive |= ~mortal
    for _ in range(length):
        dies = alive & mortal & (draw.random(agents) < 0.35)
        renewed = (~alive | dies & (not team)) & (draw.random(agents) < 0.5)
        after, last = alive & ~dies | renewed, draw.random() < 0.25
        ends = last and draw.random() < 0.5
        lasting = np.ones(agents, bool) if team else ~dies
        discount = np.where(ends, 0.0, lasting)
        for name, value in zip(out, (alive, after, discount, last, reset), strict=True):
            out[name].append(value)
        reset = last | (after & (~alive | (discount == 0)))
        alive = after | last
    return out


def windows(length: int, count: int, agents: int, reward: str, recurrent: bool, survivor: bool = False) -> Batch:
    """Windows [L, B, A, ...] with every kind of end, death and reuse, masks, worlds and probabilities; float32 numbers.

    With a `survivor` agent 0 never dies, so that somebody always lives.
    """
    draw = np.random.default_rng(0)
    lives = [_lives(draw, length, agents, reward == "team", survivor) for _ in range(count)]
    stacked = {name: np.stack([life[name] for life in lives], axis=1) for name in lives[0]}
    shape = (length, count, agents)
    masks = {name: draw.random((*shape, ACTIONS)) < 0.6 for name in ("action_mask", "next_action_mask")}
    for name, living in (("action_mask", "alive"), ("next_action_mask", "next_alive")):
        masks[name][..., 0] |= stacked[living] & ~masks[name].any(-1)
    paid = draw.normal(size=shape)
    steps = Transition(
        observation=jnp.float32(draw.normal(size=(*shape, FEATURES))),
        action=jnp.int32(draw.integers(0, ACTIONS, shape)),
        reward=jnp.float32(np.broadcast_to(paid[..., :1], shape) if reward == "team" else paid),
        discount=jnp.float32(stacked.pop("discount")),
        **{name: jnp.asarray(x) for name, x in (stacked | masks).items()},
        next_observation=jnp.float32(draw.normal(size=(*shape, FEATURES))),
        world=jnp.float32(draw.normal(size=(length, count, WORLD))),
        next_world=jnp.float32(draw.normal(size=(length, count, WORLD))),
    )
    carry = jnp.float32(draw.normal(size=(count, agents, MEMORY))) if recurrent else ()
    return Batch(steps, carry, jnp.arange(count), jnp.float32(draw.uniform(0.01, 0.2, count)))


def spoilt(batch: Batch, reward: str, size: float, paid: float) -> Batch:
    """The same windows with garbage of this size in all that dead agents saw, did and may do.

    With individual reward `paid` is what they got; a team pays its dead as its living, and while nobody lives all rows count.
    """
    draw, steps = np.random.default_rng(1), batch.steps

    def spoil(x, alive, garbage):
        kept = alive | ~alive.any(-1, keepdims=True) if reward == "team" else alive
        return jnp.where(kept.reshape(kept.shape + (1,) * (x.ndim - kept.ndim)), x, jnp.asarray(garbage, x.dtype))

    def noise(x):
        return size * draw.normal(size=x.shape)

    changed = {
        "observation": spoil(steps.observation, steps.alive, noise(steps.observation)),
        "next_observation": spoil(steps.next_observation, steps.next_alive, noise(steps.observation)),
        "action": spoil(steps.action, steps.alive, draw.integers(0, ACTIONS, steps.action.shape)),
        "next_action_mask": spoil(steps.next_action_mask, steps.next_alive, noise(steps.next_action_mask) > 0),
        "reward": steps.reward if reward == "team" else spoil(steps.reward, steps.alive, paid),
    }
    return dataclasses.replace(batch, steps=steps.replace(**changed))


# ---- the same in float64 and loops


def host(tree: Any) -> Any:
    """float64 and plain numpy of a tree."""
    return jax.tree.map(lambda x: np.float64(x) if np.asarray(x).dtype == np.float32 else np.asarray(x), tree)


def elu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1)


def slow_hypernet(params: Any, values: np.ndarray, world: np.ndarray) -> float:
    """QMIX of one team: values [A], world [W]."""

    def layer(name, x):
        return x @ params["params"][name]["kernel"] + params["params"][name]["bias"]

    def weights(name):
        hidden = f"{name}_hidden"
        return layer(f"{name}_weights", np.maximum(layer(hidden, world), 0) if hidden in params["params"] else world)

    first = np.abs(weights("first")).reshape(len(values), -1)
    mixed = elu(values @ first + layer("first_bias", world))
    offset = layer("state_value", np.maximum(layer("state_hidden", world), 0))
    return float(mixed @ np.abs(weights("second")) + offset[0])


@dataclasses.dataclass
class Slow:
    """A learner's values of recorded windows, row by row; rows are (t, b)."""

    steps: Any  # of `host`
    carry: Any  # [B, A, MEMORY], or () for `linear`
    reward: str
    mixer: str

    def counts(self, alive: np.ndarray) -> np.ndarray:
        """The rows [A] that teach, or put something into a mixer."""
        if self.reward == "individual":
            return alive
        return alive if alive.any() else np.ones_like(alive)

    def pool(self, params: Any, values: np.ndarray, alive: np.ndarray, world: np.ndarray) -> np.ndarray:
        """Values [A] of the agents, or one [1] of the team."""
        if self.mixer == "none":
            return values
        values = np.where(self.counts(alive), values, 0.0)
        return np.array([values.sum() if self.mixer == "sum" else slow_hypernet(params["mixer"], values, world)])

    def run(self, params: Any, burn_in: int = 0, burnt: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """All action values of the observations and of the next ones, [L, B, A, n]; of the first `burn_in` rows by `burnt`."""
        steps = self.steps
        here, there = np.zeros((*steps.alive.shape, ACTIONS)), np.zeros((*steps.alive.shape, ACTIONS))
        for b, a in np.ndindex(steps.alive.shape[1:]):
            h = self.carry[b, a] if "u" in params["network"] else None
            for t in range(len(steps.alive)):
                net = (burnt if t < burn_in else params)["network"]
                x, y = steps.observation[t, b, a], steps.next_observation[t, b, a]
                if h is None:
                    here[t, b, a], there[t, b, a] = x @ net["w"], y @ net["w"]
                    continue
                h = (0 if steps.reset[t, b, a] else h / 2) + x @ net["u"]
                dead = ~steps.alive[t, b, a] | (steps.discount[t, b, a] == 0)
                newcomer = steps.next_alive[t, b, a] & dead  # who remembers nothing of the agent before
                here[t, b, a] = h @ net["w"]
                there[t, b, a] = ((0 if newcomer else h / 2) + y @ net["u"]) @ net["w"]
        return here, there

    def chosen(self, params: Any, here: np.ndarray) -> np.ndarray:
        """The values [L, B, A'] of what was done."""
        steps = self.steps
        return self._rows(
            lambda t, b: self.pool(
                params,
                np.array([here[t, b, a, action] for a, action in enumerate(steps.action[t, b])]),
                steps.alive[t, b],
                None if steps.world is None else steps.world[t, b],
            )
        )

    def following(self, params: Any, there: np.ndarray, by: np.ndarray) -> np.ndarray:
        """The values [L, B, A'] of the next observations."""
        steps = self.steps

        def row(t, b):
            values, alive = np.zeros(steps.alive.shape[-1]), steps.next_alive[t, b]
            for a in range(len(values)):
                legal = np.flatnonzero(steps.next_action_mask[t, b, a])
                values[a] = there[t, b, a, legal[np.argmax(by[t, b, a, legal])] if len(legal) else 0]
            if self.mixer == "none" and self.reward == "team":
                values = np.where(alive, values, values[self.counts(alive)].mean())
            return self.pool(params, values, alive, None if steps.next_world is None else steps.next_world[t, b])

        return self._rows(row)

    def weight(self) -> np.ndarray:
        """Which rows teach, [L, B, A']."""
        mixed = self.mixer != "none"
        return self._rows(lambda t, b: np.array([1.0]) if mixed else self.counts(self.steps.alive[t, b]).astype(float))

    def goes_on(self, t: int, b: int, a: int) -> bool:
        """Whether what follows in the window belongs to this return."""
        steps, more = self.steps, t + 1 < len(self.steps.alive)
        return more and not steps.last[t, b] and (self.mixer != "none" or not steps.reset[t + 1, b, a])

    def discount(self, t: int, b: int, a: int) -> float:
        """The environment's, of an agent or a team."""
        own = self.steps.discount[t, b]
        return float(own[a] if self.reward == "individual" else any(own > 0))

    def _rows(self, row: Any) -> np.ndarray:
        length, count = self.steps.last.shape
        return np.array([[row(t, b) for b in range(count)] for t in range(length)])


def slopes(function: Any, params: Any, size: float = 1e-5) -> Any:
    """The derivatives of `function(params)` by central differences."""

    def of(path, leaf):
        out = np.zeros_like(leaf)
        for place in np.ndindex(leaf.shape):
            ends = []
            for sign in (size, -size):
                moved = leaf.copy()
                moved[place] += sign
                ends.append(function(jax.tree_util.tree_map_with_path(lambda p, x, m=moved: m if p == path else x, params)))
            out[place] = (ends[0] - ends[1]) / (2 * size)
        return out

    return jax.tree_util.tree_map_with_path(of, params)
