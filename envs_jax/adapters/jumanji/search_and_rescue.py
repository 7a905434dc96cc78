"""Search and rescue: a swarm looks for targets that drift over a square whose opposite sides meet."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import SearchAndRescue as Library
from jumanji.environments.swarms.search_and_rescue.dynamics import RandomWalk
from jumanji.environments.swarms.search_and_rescue.generator import RandomGenerator
from jumanji.environments.swarms.search_and_rescue.observations import AgentAndTargetObservationFn
from jumanji.environments.swarms.search_and_rescue.reward import IndividualRewardFn

from envs_jax.adapters.common import check_time_limit, check_whole
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box

_CHANNELS = 3  # of what an agent sees along a ray


class _Reward(IndividualRewardFn):
    """jumanji's reward, which falls with time, by the limit of the episode: the library is built with one step more."""

    def __call__(self, found_targets: Any, step: Any, time_limit: int) -> Any:
        return super().__call__(found_targets, step, time_limit - 1)


class SearchAndRescue(JumanjiEnv):
    """`SearchAndRescue-v0`. Actions: turn and acceleration, -1 ... 1 of the greatest. It truly ends when all are found.

    An agent sees [3 num_vision + 2]: along each of `num_vision` rays, the distance as a share of the range of sight, or -1
    for nothing, to another agent, to a target that was found and to one that was not; then the share of targets that are
    left, and the share of time that is over, since the reward falls with it. Rewards are individual: for a target found,
    one less the share of time that was over, which those who find it in the same step share. Metrics: `found`, the share
    of targets, and `success`, whether it is all.

    Args:
        time_limit: steps until an episode is cut.
        num_agents, num_targets: how many there are.
        env_size: side of the square; all other lengths are in the same unit.
        target_contact_range: from how near a target is found, if it is in sight; also the radius that agents see.
        searcher_max_rotate: greatest turn in a step, as a share of pi.
        searcher_max_accelerate, searcher_min_speed, searcher_max_speed: of agents, per step.
        num_vision: rays, spread evenly over the angle of sight.
        searcher_vision_range, target_vision_range: from how near an agent sees other agents, and targets.
        view_angle: half the angle of sight, as a share of pi.
        split_rewards: whether those who find a target in the same step share its reward; else each gets it.
        scale_rewards: whether rewards fall with time.

    Raises ValueError when these do not fit together.
    """

    def __init__(
        self,
        time_limit: int = 400,
        num_agents: int = 2,
        num_targets: int = 40,
        env_size: float = 1.0,
        target_contact_range: float = 0.02,
        searcher_max_rotate: float = 0.25,
        searcher_max_accelerate: float = 0.005,
        searcher_min_speed: float = 0.005,
        searcher_max_speed: float = 0.02,
        num_vision: int = 128,
        searcher_vision_range: float = 0.4,
        target_vision_range: float = 0.1,
        view_angle: float = 0.4,
        split_rewards: bool = True,
        scale_rewards: bool = True,
    ):
        limit = check_time_limit("SearchAndRescue", time_limit)
        check_whole("SearchAndRescue", 1, num_agents=num_agents, num_targets=num_targets, num_vision=num_vision)
        ranges = (target_contact_range, searcher_vision_range, target_vision_range)
        if not all(0 < length <= env_size for length in ranges):
            raise ValueError(
                "SearchAndRescue: target_contact_range, searcher_vision_range and target_vision_range must be above 0 and at "
                f"most env_size {env_size}, got {', '.join(map(str, ranges))}"
            )
        if not 0 <= searcher_min_speed <= searcher_max_speed or searcher_max_speed == 0:
            raise ValueError(
                "SearchAndRescue: speeds must satisfy 0 <= searcher_min_speed <= searcher_max_speed > 0, "
                f"got {searcher_min_speed} and {searcher_max_speed}"
            )
        library = Library(
            target_contact_range=target_contact_range,
            searcher_max_rotate=searcher_max_rotate,
            searcher_max_accelerate=searcher_max_accelerate,
            searcher_min_speed=searcher_min_speed,
            searcher_max_speed=searcher_max_speed,
            time_limit=limit + 1,
            target_dynamics=RandomWalk(acc_std=0.0001, vel_max=0.002),
            generator=RandomGenerator(num_searchers=num_agents, num_targets=num_targets, env_size=env_size),
            reward_fn=_Reward(split_rewards, scale_rewards),
            observation=AgentAndTargetObservationFn(
                num_vision, searcher_vision_range, target_vision_range, view_angle, target_contact_range, env_size
            ),
        )
        rays = _CHANNELS * num_vision
        spec = EnvSpec(
            observation_space=Box([-1.0] * rays + [0.0, 0.0], 1.0, (rays + 2,)),
            action_space=Box(-1.0, 1.0, (2,)),
            num_agents=num_agents,
            world_space=Box(-1.0, 1.0, (5 * num_agents + 5 * num_targets + 1,)),
            metrics={"found": "last", "success": "last"},
            episode_limit=limit,
        )
        super().__init__(library, spec)

    def emitted(self, observation: Any) -> jax.Array:
        return observation.searcher_views

    def view(self, state: State) -> jax.Array:
        agents = len(state.emitted)
        seen = jnp.minimum(state.emitted.reshape(agents, -1), 1.0)  # a distance at the very edge of sight is rounded up
        left, over = jnp.mean(~state.library.targets.found), state.steps / self._limit
        rest = jnp.broadcast_to(jnp.stack([left, over])[None], (agents, 2))
        return jnp.concatenate([seen, rest], axis=-1).astype(jnp.float32)

    def metrics(self, state: State) -> dict[str, jax.Array]:
        found = state.library.targets.found
        return {"found": jnp.mean(found, dtype=jnp.float32), "success": jnp.all(found).astype(jnp.float32)}

    def world(self, state: State, params: Any) -> jax.Array:
        """float32 [5 A + 5 num_targets + 1] in -1 ... 1.

        Place, direction (cosine, sine) and speed of every agent; place, velocity and whether it was found of every target;
        the share of time that is over.
        """
        agents, targets = state.library.searchers, state.library.targets
        side = self.library.generator.env_size
        parts = (
            agents.pos / side,
            jnp.cos(agents.heading),
            jnp.sin(agents.heading),
            agents.speed / self.library.searcher_params.max_speed,
            targets.pos / side,
            targets.vel / self.library._target_dynamics.vel_max,
            targets.found,
            state.steps / self._limit,
        )
        return jnp.clip(jnp.concatenate([jnp.ravel(part).astype(jnp.float32) for part in parts]), -1.0, 1.0)  # rounding
