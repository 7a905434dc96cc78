"""PPO on CartPole, sixteen seeds, one compile: from an experiment file to a run directory with a learning curve.

    python experiments/cartpole_ppo.py [total steps] [run directory]
"""

import sys

import agentgym_jax

agentgym_jax.use_cores()  # one virtual CPU device a core, so that the seeds use all of them


def main(total_steps: int = 500_000, out: str = "runs/script_cartpole_ppo") -> agentgym_jax.Run:
    """Trains, prints what was reached and leaves the run directory."""
    experiment = agentgym_jax.load_experiment("gymnax/cartpole_ppo", overrides=[f"train.total_steps={total_steps}"])
    run = agentgym_jax.train(experiment, seeds=16, out=out, overwrite=True)
    returns = run.summary["evaluation"]["greedy"]["return"]
    print(f"greedy return of 16 seeds: mean {returns['mean']:.1f}, IQM {returns['iqm']:.1f}; see {out}/curve.png")
    return run


if __name__ == "__main__":
    main(*(int(x) if x.isdigit() else x for x in sys.argv[1:]))
