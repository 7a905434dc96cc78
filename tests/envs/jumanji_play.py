"""An adapter of a jumanji environment beside jumanji itself, over whole episodes of random play, and what must hold of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs_jax.adapters import jumanji
from envs_jax.spaces import mask_size

from .contract import QUICK as QUICKLY

EPISODES, STEPS, LONG = 24, 30, 1000


@dataclasses.dataclass(frozen=True)
class Case:
    """What is played: an adapter, the library's own environment of the same sizes, and how long."""

    kwargs: Mapping[str, Any]  # of the adapter
    library: Callable[[], Any]  # builds the library's environment, with the time limit LONG where it has one
    library_action: Callable[[jax.Array], jax.Array] = lambda action: action  # the library's form of an action, written anew
    obey: float = 0.9  # how often an action is surely legal
    episodes: int = EPISODES
    steps: int = STEPS


@dataclasses.dataclass(frozen=True)
class Play:
    """Episodes of an adapter and of the library side by side; leaves lead with [episodes, steps + 1]."""

    name: str
    env: Any
    states: Any
    timesteps: Any
    library_states: Any
    library_timesteps: Any
    actions: Any

    def running(self) -> np.ndarray:
        """[episodes, steps + 1]: rows up to and with the first `last`."""
        last = self.timesteps.last
        return np.cumsum(last, axis=1) - last == 0

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Which rows are true ends, and which are cut, [episodes, steps + 1] each."""
        return jax.device_get(jax.vmap(jax.vmap(lambda timestep: (timestep.terminated, timestep.truncated)))(self.timesteps))


def play_case(name: str, case: Case) -> Play:
    """Plays one case; the library may let arrays of different rank meet."""
    with jax.numpy_rank_promotion("allow"):
        env = jumanji.make(name, **case.kwargs)
        return Play(name, env, *play_side_by_side(env, case.library(), case))


def play_side_by_side(env: Any, library: Any, case: Case) -> tuple[Any, ...]:
    """Batches over keys: an adapter's absorbing `step`, and the library's step from the same state with the same key.

    Equal at every step, they are equal over the episode, and XLA compiles what they have in common once.
    """
    axes = () if env.spec.num_agents is None else (env.spec.num_agents,)
    choices = (*axes, mask_size(env.spec.action_space))

    def choose(key_rule, key_action, timestep):
        if isinstance(timestep.action_mask, tuple):
            return env.spec.sample_actions(key_action, timestep)
        obey = timestep.action_mask | (jax.random.uniform(key_rule, (1,) * len(choices)) > case.obey)
        return env.spec.sample_actions(key_action, timestep.replace(action_mask=obey))

    def step(carry, key):
        state, timestep = carry
        key_rule, key_action, key_step = jax.random.split(key, 3)
        action = choose(key_rule, key_action, timestep)
        library_state, library_timestep = library.step(state.library.replace(key=key_step), case.library_action(action))
        state, timestep = env.step(key_step, state, action, ())
        return (state, timestep), (state, timestep, library_state.replace(key=()), library_timestep, action)

    def episode(key):
        key_reset, key_steps = jax.random.split(key)
        state, timestep = env.reset(key_reset, ())
        library_state, library_timestep = library.reset(key_reset)
        start = (state, timestep, library_state.replace(key=()), library_timestep)
        _, (*rows, actions) = jax.lax.scan(step, start[:2], jax.random.split(key_steps, case.steps))

        def behind(first, later):
            return jnp.concatenate([jnp.asarray(first, later.dtype)[None], later])

        return *jax.tree.map(behind, start, tuple(rows)), actions

    play = jax.jit(jax.vmap(episode), compiler_options=QUICKLY)
    return jax.device_get(play(jax.random.split(jax.random.PRNGKey(0), case.episodes)))


def check_equal(play: Play, tolerance: float = 0.0) -> None:
    """States, rewards, true ends and masks are the library's, up to the end of each episode; floats within `tolerance`."""
    running, library = play.running(), play.library_timesteps
    reward = play.timesteps.reward
    ours, theirs = (play.states.library, reward), (play.library_states, shared(library.reward, reward))
    for here, there in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(here[running], there[running], rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(play.ends()[0][running], (library.step_type == 2)[running])
    if hasattr(library.observation, "action_mask"):
        ours = play.timesteps.action_mask
        np.testing.assert_array_equal(ours[running], library.observation.action_mask.reshape(ours.shape)[running])


def shared(reward: np.ndarray, like: np.ndarray) -> np.ndarray:
    """A reward of all, [episodes, steps + 1], given to each agent where `like` has agents."""
    return np.broadcast_to(reward.reshape(*reward.shape, *[1] * (like.ndim - reward.ndim)), like.shape)


def check_limit(play: Play) -> None:
    """Both kinds of end occur; a cut comes exactly at the limit and keeps the future's value, a true end does not."""
    limit, timesteps = play.env.spec.episode_limit, play.timesteps
    lengths = np.argmax(timesteps.last, axis=1)
    rows = np.arange(len(lengths)), lengths
    died, cut = (flags[rows] for flags in play.ends())
    assert cut.any() and died.any(), "the sample must hold both kinds of end"
    assert np.all(timesteps.last[rows]) and np.all(cut != died) and np.all(lengths[cut] == limit)
    np.testing.assert_array_equal(play.states.ended[rows], died)
    assert np.all(timesteps.discount[rows][died] == 0)
    kept = timesteps.discount[rows][cut]
    earning = timesteps.alive[rows][cut] if play.env.spec.reward == "individual" else np.ones_like(kept)
    np.testing.assert_array_equal(kept, earning)


def check_true_end_at_limit(play: Play) -> None:
    """A true end on the last step is not taken for a cut."""
    state = jax.tree.map(lambda leaf: leaf[0, 0], play.states)
    at_limit = state.replace(steps=jnp.int32(play.env.spec.episode_limit))
    cut, died = (play.env.observe(at_limit.replace(ended=jnp.bool_(ended)), ()) for ended in (False, True))
    assert cut.truncated and not cut.terminated
    assert died.terminated and not died.truncated


def check_absorbing(play: Play) -> None:
    """After the end nothing changes and nothing is paid."""
    timesteps, after = play.timesteps, ~play.running()
    assert after.any() and np.all(timesteps.last[after]) and np.all(timesteps.reward[after] == 0)
    for episode in range(len(timesteps.last)):
        end = np.argmax(timesteps.last[episode])
        for leaf in jax.tree.leaves((play.states, timesteps.observation)):
            np.testing.assert_array_equal(leaf[episode, end:], np.broadcast_to(leaf[episode, end], leaf[episode, end:].shape))


def check_spaces(play: Play) -> None:
    """Observations and actions lie in their spaces, and masks and metrics are as the spec says."""
    spec, axes = play.env.spec, 2 if play.env.spec.num_agents is None else 3
    observation = play.timesteps.observation
    assert observation.shape[axes:] == spec.observation_space.shape
    flat = observation.reshape(-1, *spec.observation_space.shape)
    assert np.all(jax.vmap(spec.observation_space.contains)(flat))
    actions = play.actions.reshape(-1, *spec.action_space.shape)
    assert np.all(jax.vmap(spec.action_space.contains)(actions))
    if not isinstance(play.timesteps.action_mask, tuple):
        assert play.timesteps.action_mask.shape[axes:] == (mask_size(spec.action_space),)
    assert set(play.timesteps.metrics) == {name for name, _ in spec.metrics}
