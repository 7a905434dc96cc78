"""jaxmarl's environments against jaxmarl itself, step by step, and what must hold of the adapters."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs_jax
from envs_jax.adapters.jaxmarl.catalogue import ENVIRONMENTS
from envs_jax.adapters.jaxmarl.library import KITCHENS, LAYOUTS, PARTICLES, SCENARIOS, HeuristicEnemySMAX, quiet
from envs_jax.core import Env, TimeStep
from envs_jax.spaces import Box

from .contract import QUICK, check, check_types, relaxed, within
from .kinds import KINDS, kind_of

pytestmark = pytest.mark.usefixtures("relaxed_rank_promotion")  # the library relies on rank promotion
NAMES = [id.partition("/")[2] for id in envs_jax.ids() if id.startswith("jaxmarl/")]
COPIES, LONG, SHAPING = 12, 1000, 0.5
RANDOM, FIGHT = -1, -2  # in place of an action: a random legal one; shoot the first enemy in range, else walk towards them


@dataclasses.dataclass(frozen=True)
class Case:
    """What is played: the adapter's arguments, its limit among them, the library's own environment, and what is done."""

    kwargs: Mapping[str, Any]
    library: Callable[[], Any]  # with the limit LONG where a limit shows in nothing else
    script: Any = RANDOM  # what the first copies do, int [T', A] or one for all

    @property
    def limit(self) -> int:
        return self.kwargs["time_limit"]


def kitchen_script(version: int) -> np.ndarray:
    """In cramped_room: the left cook brings three onions and serves the soup, the right one stays; [T, A]."""
    moves = dict(zip("UDRLsI", (0, 1, 2, 3, 4, 5) if version == 1 else (3, 1, 0, 2, 4, 5), strict=True))
    onions = "LIRUI" + 2 * "LLIRUI"
    steps = [moves[move] for move in onions + "LDDIURU" + 20 * "s" + "I" + "DRDI"]
    both = np.stack([steps, np.full(len(steps), moves["s"])], axis=-1)
    return both if version == 1 else both[:, ::-1]  # version 2 counts the right cook first


CASES = {
    # A limit that some battles outlive.
    "smax_3m": Case(
        {"time_limit": 15},
        lambda: HeuristicEnemySMAX(scenario=SCENARIOS["3m"], max_steps=LONG),
        FIGHT,
    ),
    "MPE_simple_spread_v3": Case({"time_limit": 25}, lambda: PARTICLES["MPE_simple_spread_v3"](max_steps=LONG)),
    "MPE_simple_speaker_listener_v4": Case(
        {"time_limit": 6}, lambda: PARTICLES["MPE_simple_speaker_listener_v4"](max_steps=LONG)
    ),
    # Nothing collides here, so the adapter leaves the forces out.
    "MPE_simple_adversary_v3": Case({"time_limit": 25}, lambda: PARTICLES["MPE_simple_adversary_v3"](max_steps=LONG)),
    # The adapter moves the prey together.
    "MPE_simple_facmac_v1": Case(
        {"time_limit": 25, "num_good_agents": 2}, lambda: PARTICLES["MPE_simple_facmac_v1"](num_good_agents=2, max_steps=LONG)
    ),
    "MPE_simple_facmac_9a_v1": Case({"time_limit": 25}, lambda: PARTICLES["MPE_simple_facmac_9a_v1"]()),
    # Their own limit is exact, and shows in a channel of version 1.
    "overcooked_cramped_room": Case(
        {"time_limit": 60, "reward": "individual"},
        lambda: KITCHENS[1](layout=LAYOUTS[1]["cramped_room"], max_steps=60),
        kitchen_script(1),
    ),
    "overcooked_v2_cramped_room": Case(
        {"time_limit": 60},
        lambda: KITCHENS[2](layout="cramped_room", max_steps=60),
        kitchen_script(2),
    ),
}


def chosen(env: Env, key: jax.Array, timestep: TimeStep, wanted: jax.Array) -> jax.Array:
    """The wanted actions [A], with what RANDOM and FIGHT stand for; of a Box random ones."""
    if isinstance(env.spec.action_space, Box):
        return env.spec.sample_actions(key, timestep)
    action = jnp.where(wanted == RANDOM, env.spec.sample_actions(key, timestep), wanted)
    if "won" in timestep.metrics:
        shots = timestep.action_mask[:, 5:]
        fight = jnp.where(jnp.any(shots, axis=-1), 5 + jnp.argmax(shots, axis=-1), 1)
        action = jnp.where(wanted == FIGHT, fight, action)
    return action.astype(jnp.int32)


def play(case: Case, env: Any, library: Any, key: jax.Array, wanted: jax.Array):
    """One episode of `wanted` actions [T, A]; from each state the library takes the same step beside the adapter.

    Gives what the start shows and what each step shows, (of the adapter, of the library) each, and each step's TimeStep.
    """
    key_start, key_steps = jax.random.split(key)
    params = env.default_params
    params = params.replace(shaping=jnp.float32(SHAPING)) if hasattr(params, "shaping") else params

    def by_agent(named):
        return [jnp.asarray(named[name], jnp.float32) for name in env.names]

    def shown(state, timestep, own, seen):
        width = timestep.observation.shape[1]
        ours = {"state": state.library, "observation": list(timestep.observation)}
        theirs = {"state": own, "observation": [padded(x, width) for x in by_agent(seen)]}
        if "won" in timestep.metrics:
            ours |= {"world": env.world(state, params), "mask": list(timestep.action_mask.astype(jnp.float32))}
            theirs |= {"world": library.get_world_state(own), "mask": by_agent(library.get_avail_actions(own))}
        return ours, theirs

    def step(before, inputs):
        key, wanted = inputs
        key_act, key_step = jax.random.split(key)
        state, timestep = before
        action = chosen(env, key_act, timestep, wanted)
        after = env.transition(key_step, state, action, params)
        named = dict.fromkeys(library.agents, action[0])  # those that the library moves, too
        named |= {name: action[agent] for agent, name in enumerate(env.names)}
        seen, own, reward, done, more = library.step_env(key_step, state.library, named)
        told = {"reward": jnp.stack(by_agent(reward)), "done": done["__all__"]}
        told |= {name: jnp.stack(by_agent(value)) for name, value in more.items()}
        return after, (*shown(*after, own, seen), after[1], told, within(env.spec, after[1]))

    first, (seen, own) = env.reset(key_start, params), library.reset(key_start)
    _, steps = jax.lax.scan(step, first, (jax.random.split(key_steps, case.limit), wanted))
    return shown(*first, own, seen), steps


def padded(x: jax.Array, width: int) -> jax.Array:
    """A vector filled up with zeros; a picture as it is."""
    return jnp.pad(x, (0, width - len(x))) if x.ndim == 1 else x


class Plays(dict):
    """Each case by name, played when it is first wanted: a process that runs a few of these tests compiles only their cases."""

    def __missing__(self, name):
        case = CASES[name]
        with relaxed():
            env, library = envs_jax.make(f"jaxmarl/{name}", **case.kwargs), case.library()
            wanted = np.full((COPIES, case.limit, env.spec.num_agents), RANDOM, np.int32)
            wanted[: COPIES // 2, : len(case.script) if np.ndim(case.script) else None] = case.script
            program = jax.jit(jax.vmap(lambda key, wanted: play(case, env, library, key, wanted)), compiler_options=QUICK)
            self[name] = env, jax.device_get(program(jax.random.split(jax.random.PRNGKey(1), COPIES), wanted))
        return self[name]


@pytest.fixture(scope="module")
def plays():
    return Plays()


@pytest.fixture(params=CASES)
def name(request):
    return request.param


def still_on(steps):
    """bool [N, T]: the episode had not ended before this step; what comes after is undefined."""
    last = steps.last
    return np.concatenate([np.zeros_like(last[:, :1]), np.logical_or.accumulate(last, axis=1)[:, :-1]], axis=1) == 0


def equal(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_the_adapter_is_the_library_step_by_step(plays, name):
    """States, observations, worlds and masks, from the start to the end of every episode; XLA may round floats differently."""
    _, (first, (ours, theirs, timesteps, told, inside)) = plays[name]
    on = still_on(timesteps)
    jax.tree.map(equal, *first)
    jax.tree.map(lambda a, b: equal(a[on], b[on]), ours, theirs)
    assert inside[on].all()
    if "shaped_reward" not in told:
        equal(timesteps.reward[on], told["reward"][on])


def test_limits_are_exact_and_no_death(plays, name):
    env, (_, (_, _, timesteps, told, _)) = plays[name]
    on = still_on(timesteps)
    cut = on[:, -1] & (timesteps.discount[:, -1] > 0).all(-1)
    assert timesteps.last[:, -1][cut].all() and env.spec.episode_limit == CASES[name].limit
    if name.startswith("smax"):
        assert cut.any() and not cut.all() and (timesteps.discount[:, -1][cut] == 1).all()
        np.testing.assert_array_equal((timesteps.last & on)[:, :-1], (told["done"] & on)[:, :-1])
    else:
        assert cut.all() and not timesteps.last[:, :-1].any() and (timesteps.discount == 1).all()


def test_battles_are_won_lost_and_outlived(plays):
    """A true end pays nobody further, the dead of a living team are out of it but earn on, and only wins are called so."""
    _, (_, (ours, _, timesteps, told, _)) = plays["smax_3m"]
    on, alive = still_on(timesteps), ours["state"].state.unit_alive
    end = on & timesteps.last
    won = timesteps.metrics["won"][end]
    assert 0 < won.sum() < len(won)
    np.testing.assert_array_equal(won, alive[end][:, :3].any(-1) & ~alive[end][:, 3:].any(-1))
    np.testing.assert_array_equal(timesteps.discount[end] == 0, told["done"][end][:, None] & np.ones(3, bool))
    np.testing.assert_array_equal(timesteps.alive[on], alive[on][:, :3])
    going = on & ~timesteps.last
    assert (timesteps.discount[going] == 1).all() and (~timesteps.alive[going]).any()
    assert (timesteps.reward == timesteps.reward[..., :1]).all() and not timesteps.metrics["won"][going].any()
    assert not timesteps.action_mask[on][~timesteps.alive[on]][:, [0, 1, 2, 3, 5, 6, 7]].any()


@pytest.mark.parametrize("name", ["overcooked_cramped_room", "overcooked_v2_cramped_room"])
def test_a_soup_pays_and_shaping_is_paid_on_top(plays, name):
    """Three onions, a plate and a soup by one cook: 20 to both, and 9 + 3 + 5 of shaping to whom `reward` says."""
    env, (_, (_, _, timesteps, told, _)) = plays[name]
    cook = 0 if name == "overcooked_cramped_room" else 1
    assert env.spec.observation_space.dtype == np.int8, "uint8 would be taken for pixels and scaled"
    assert env.reset_mode == ("pool" if name == "overcooked_cramped_room" else "fresh")
    shaped, scripted = told["shaped_reward"], slice(0, COPIES // 2)
    assert (timesteps.metrics["deliveries"][scripted].sum(1) == 1).all()
    assert (shaped[scripted][..., cook].sum(1) == 17).all() and (shaped[scripted][..., 1 - cook] == 0).all()
    np.testing.assert_array_equal(timesteps.metrics["shaped_reward"], shaped.sum(-1))
    np.testing.assert_array_equal(timesteps.metrics["deliveries"] * 20, told["reward"][..., 0])
    extra = shaped if env.spec.reward == "individual" else np.broadcast_to(shaped.sum(-1, keepdims=True), shaped.shape)
    np.testing.assert_array_equal(timesteps.reward, told["reward"] + SHAPING * extra)
    assert shaped[COPIES // 2 :].any(), "random play earns some shaping too"


@pytest.mark.parametrize("name", ["smax_3m", "MPE_simple_speaker_listener_v4"])
def test_the_contract_in_play(name):
    check(envs_jax.make(f"jaxmarl/{name}"))


def test_names_are_the_librarys():
    with quiet():
        import jaxmarl
    particles = {name for name in jaxmarl.registered_envs if name.startswith("MPE_")}
    smax = {f"smax_{scenario}" for scenario in SCENARIOS}
    kitchens = {f"overcooked_{'v2_' * (version == 2)}{layout}" for version in LAYOUTS for layout in LAYOUTS[version]}
    assert set(NAMES) == set(ENVIRONMENTS) == particles | smax | kitchens


@pytest.mark.parametrize("name", NAMES)
def test_every_environment_traces(name):
    env = envs_jax.make(f"jaxmarl/{name}")
    check_types(env)
    assert kind_of(env) in KINDS, "add this kind of environment to KINDS"
