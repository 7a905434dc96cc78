"""The one contract of every environment, checked by types alone where that is enough and by one short compiled run."""

from __future__ import annotations

import contextlib
import itertools
import operator
import warnings
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from agentgym_jax.io.config.experiment import EvalConfig, Experiment, TrainConfig
from agentgym_jax.io.running.assemble import assemble
from agentgym_jax.types import Clock
from envs_jax.core import Env, TimeStep
from envs_jax.spaces import mask_size
from envs_jax.wrappers import TimeLimit, Wrapper

COPIES, LIMIT, STEPS = 2, 8, 11
# A few steps are run, so compiling is what takes the time: without LLVM's optimisation and XLA's newer emitters it is a third.
QUICK = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}


@contextlib.contextmanager
def relaxed() -> Iterator[None]:
    """Room for libraries that warn at import and let arrays of different rank meet."""
    with warnings.catch_warnings(), jax.numpy_rank_promotion("allow"):
        warnings.simplefilter("ignore")
        yield


class Once(Wrapper):
    """The environment with its functions jitted: whatever is done with it, each is traced once, which is slow in physics."""

    def __init__(self, env: Env):
        super().__init__(env)
        self.initial, self.advance, self.observe = jax.jit(env.initial), jax.jit(env.advance), jax.jit(env.observe)


def check(env: Env) -> Env:
    """Everything that holds for every environment and wrapper. Returns the environment with its functions traced."""
    traced = Once(env)
    check_types(traced)
    check_play(traced)
    held = vars(env.unwrapped if isinstance(env, Wrapper) else env).values()
    assert not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(list(held))), "the object holds a tracer"
    return traced


def check_training(env: Env, algorithm: str = "ppo") -> None:
    """An iteration of the algorithm, by its defaults, traces and gives back a state of the same types.

    Raises ConfigError where the algorithm is not for such an environment.
    """
    sizes = TrainConfig(total_steps=80, num_envs=8, rollout_length=10, calls=1)  # by which every default size divides
    parts = assemble(Experiment(env, algorithm, train=sizes, eval=EvalConfig(points=1, episodes=2)))
    now = jax.ShapeDtypeStruct((), jnp.int32)
    state = jax.eval_shape(parts.loop.init, jax.random.key(0), parts.hyper)
    after, _ = jax.eval_shape(parts.loop.advance, state, parts.hyper, Clock(now, now))
    assert signature(state) == signature(after)


def signature(tree):
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(leaf.shape, leaf.dtype, leaf.weak_type) for leaf in leaves]


def check_types(env: Env) -> None:
    """Hashable spec; strong types; a reset and a step of one structure, shape and dtype, which means one trace."""
    hash(env.spec)
    params = env.default_params
    for leaf in jax.tree.leaves(params):
        assert isinstance(leaf, jax.Array) and not leaf.weak_type, f"params must be strong arrays, got {leaf!r}"
    key = jax.random.PRNGKey(0)  # raw here, typed in play: both must do
    state, timestep = jax.eval_shape(env.reset, key, params)
    action = jax.eval_shape(env.spec.sample_actions, key, timestep)
    after = jax.eval_shape(env.transition, key, state, action, params)
    assert signature((state, timestep)) == signature(after)
    assert not any(leaf.weak_type for leaf in jax.tree.leaves((state, timestep)))
    check_timestep(env, timestep)
    axis = () if env.spec.num_agents is None else (env.spec.num_agents,)
    assert (action.shape, action.dtype) == ((*axis, *env.spec.action_space.shape), env.spec.action_space.dtype)
    if env.spec.world_space is not None:
        world = jax.eval_shape(env.world, state, params)
        assert (world.shape, world.dtype) == (env.spec.world_space.shape, env.spec.world_space.dtype)


def check_timestep(env: Env, timestep: TimeStep) -> None:
    """Shapes and dtypes of one TimeStep against the spec."""
    spec = env.spec
    axis = () if spec.num_agents is None else (spec.num_agents,)
    spaces, observations = jax.tree.leaves(spec.observation_space), jax.tree.leaves(timestep.observation)
    assert len(spaces) == len(observations)
    for space, x in zip(spaces, observations, strict=True):
        assert (x.shape, x.dtype) == ((*axis, *space.shape), space.dtype)
    for name, dtype in (("reward", jnp.float32), ("discount", jnp.float32), ("alive", jnp.bool_)):
        x = getattr(timestep, name)
        assert (x.shape, x.dtype) == (axis, dtype), name
    assert (timestep.last.shape, timestep.last.dtype) == ((), jnp.bool_)
    if not isinstance(timestep.action_mask, tuple):
        assert mask_size(spec.action_space) > 0
        assert timestep.action_mask.shape == (*axis, mask_size(spec.action_space))
        assert timestep.action_mask.dtype == jnp.bool_
    assert set(timestep.metrics) == {name for name, _ in spec.metrics}
    assert all(x.shape == () and x.dtype == jnp.float32 for x in timestep.metrics.values())
    if spec.groups:
        assert max(group.observation_space.shape[-1] for group in spec.groups) <= spec.observation_space.shape[-1]


def within(spec, timestep: TimeStep) -> jax.Array:
    """Whether what one moment shows lies in its spaces."""
    spaces, observations = jax.tree.leaves(spec.observation_space), jax.tree.leaves(timestep.observation)
    inside = [
        jnp.all(space.contains(x) if spec.num_agents is None else jax.vmap(space.contains)(x))
        for space, x in zip(spaces, observations, strict=True)
    ]
    return jnp.all(jnp.stack(inside))


def play(env: Env, key: jax.Array):
    """`STEPS` random legal steps of `COPIES` episodes that never start anew: timesteps and checks {name: ...}, [T + 1, N]."""
    spec, params = env.spec, env.default_params

    def look(state, timestep):
        checks = {"observation": within(spec, timestep)}
        if spec.world_space is not None:
            checks["world"] = spec.world_space.contains(env.world(state, params))
        return checks

    def episode(key):
        key_reset, key_steps = jax.random.split(key)
        first = env.reset(key_reset, params)

        def step(carry, key):
            state, timestep = carry
            key_act, key_step = jax.random.split(key)
            action = spec.sample_actions(key_act, timestep)
            carry = env.step(key_step, state, action, params)
            return carry, (carry[1], look(*carry))

        (_, _), steps = jax.lax.scan(step, first, jax.random.split(key_steps, STEPS))
        return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), (first[1], look(*first)), steps)

    return jax.vmap(episode, out_axes=1)(jax.random.split(key, COPIES))


def check_play(env: Env) -> None:
    """Ranges, end flags, the exact time limit, rest after the end, and the same again from the same key."""
    limited, key = TimeLimit(env, LIMIT), jax.random.key(3)
    program = jax.jit(lambda key: play(limited, key), compiler_options=QUICK)
    steps, checks = jax.tree.map(np.asarray, program(key))
    jax.tree.map(np.testing.assert_array_equal, (steps, checks), program(key))
    for name, inside in checks.items():
        assert inside.all(), f"{name} left its space"
    assert all(np.isfinite(x).all() for x in (steps.reward, steps.discount, *steps.metrics.values()))
    assert ((steps.discount >= 0) & (steps.discount <= 1)).all()
    assert not steps.last[0].any() and (steps.reward[0] == 0).all()
    assert steps.last[LIMIT].all()
    for copy in range(COPIES):
        check_episode(limited, jax.tree.map(operator.itemgetter((slice(None), copy)), steps))


def check_rest(x: np.ndarray) -> None:
    """All rows are the first; floats but for the last bits, which differ where XLA fuses a step with what is seen after it."""
    slack = 1e-6 if np.issubdtype(x.dtype, np.floating) else 0
    np.testing.assert_allclose(x.astype(np.float64), np.broadcast_to(x[:1], x.shape).astype(np.float64), rtol=slack, atol=slack)


def check_episode(env: TimeLimit, steps: TimeStep) -> None:
    """One episode [T + 1, ...] from its start into the steps after its end."""
    end = int(np.argmax(steps.last))
    limits = {LIMIT, env.env.spec.episode_limit}
    if (steps.discount[end] > 0).any():  # cut: never early, and the future keeps its value
        assert end in limits
    for name in ("observation", "discount", "alive", "last", "action_mask", "metrics"):
        jax.tree.map(lambda x: check_rest(x[end:]), getattr(steps, name))
    assert (steps.reward[end + 1 :] == 0).all()
    if env.spec.num_agents is None:
        assert steps.alive[:end].all() and (steps.discount[:end] > 0).all()
        return
    if env.spec.reward == "team":
        assert (steps.reward == steps.reward[:, :1]).all() and (steps.discount == steps.discount[:, :1]).all()
        assert (steps.discount[:end] > 0).all()
        return
    gone = np.zeros(env.spec.agents, bool)
    for before, now in itertools.pairwise(range(len(steps.last))):
        assert (steps.reward[now][gone] == 0).all(), "an agent is paid after its discount was 0"
        born = steps.alive[now] & (~steps.alive[before] | (steps.discount[now] == 0))
        gone = (gone | (steps.discount[now] == 0)) & ~born
