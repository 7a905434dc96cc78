"""MAPPO on Level-Based Foraging: two agents learn to lift food together; then one episode is played by the trained policy.

    python experiments/foraging_mappo.py [total steps] [run directory]
"""

import sys

import jax

import agentgym_jax

agentgym_jax.use_cores()


def play(run: agentgym_jax.Run, seed: int) -> float:
    """One episode by the trained policy, in the environment's own shapes; returns what the team earned."""
    env, params = run.env, run.assembly.params
    policy = run.policy(seed=seed, greedy=False)
    act, step = jax.jit(policy.__call__), jax.jit(env.step)
    key_reset, *keys = jax.random.split(jax.random.key(7), env.spec.episode_limit + 1)
    state, timestep = env.reset(key_reset, params)
    carry, total, start = policy.init(), 0.0, True
    for key in keys:
        carry, action = act(carry, timestep.observation, key, timestep.action_mask, start)
        state, timestep = step(key, state, action, params)
        total, start = total + float(timestep.reward[0]), False
        if timestep.last:
            break
    return total


def main(total_steps: int = 500_000, out: str = "runs/script_foraging_mappo") -> agentgym_jax.Run:
    """Trains four seeds in one compile and plays with the first."""
    overrides = [f"train.total_steps={total_steps}"]
    experiment = agentgym_jax.load_experiment("jumanji/level_based_foraging_mappo", overrides=overrides)
    run = agentgym_jax.train(experiment, seeds=4, out=out, overwrite=True)
    eaten = run.summary["evaluation"]["sampled"]["eaten"]
    print(f"food eaten, mean of 4 seeds: {eaten['mean']:.0%}; one episode by the policy of seed 0 earned {play(run, 0):.2f}")
    return run


if __name__ == "__main__":
    main(*(int(x) if x.isdigit() else x for x in sys.argv[1:]))
