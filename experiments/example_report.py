"""The report in experiments/results/example_report: PPO and PQN, ten seeds each, on three tasks that two cores do in a minute.

    python experiments/example_report.py [total steps] [seeds] [folder of the runs] [folder of the report]

Both see the same environments for the same number of steps. PQN is untuned, so this is an example of a report and no claim.
"""

import sys
from pathlib import Path

import agentgym_jax

TASKS = {
    "cartpole": ["env.id=gymnax/CartPole-v1", "eval.threshold=475"],
    "acrobot": ["env.id=gymnax/Acrobot-v1", "eval.threshold=-100"],
    "catch": ["env.id=gymnax/Catch-bsuite", "eval.threshold=1"],
}
ALGORITHMS = {
    "ppo": ["algorithm.learning_rate={start: 1e-3, end: 0}"],
    "pqn": ["algorithm.learning_rate={start: 1e-3, end: 0}", "algorithm.reward_scale=1", "network.hidden=[64, 64]"],
}
SIZES = ["train.num_envs=8", "train.rollout_length=64", "eval.points=10", "eval.episodes=32"]


def experiments(total_steps: int, seeds: int) -> dict[str, agentgym_jax.Experiment]:
    """{name of the run: what it trains}."""
    common = [*SIZES, f"train.total_steps={total_steps}", f"seeds={seeds}"]
    return {
        f"{task}_{algorithm}": agentgym_jax.load_experiment(f"gymnax/cartpole_{algorithm}", [*common, *env, *numbers])
        for task, env in TASKS.items()
        for algorithm, numbers in ALGORITHMS.items()
    }


def main(
    total_steps: int = 102_400,
    seeds: int = 10,
    runs: str = "runs/example_report",
    out: str = "experiments/results/example_report",
) -> Path:
    """Trains all, writes the report and returns its page."""
    agentgym_jax.use_cores()  # one virtual CPU device a core, so that the seeds use all of them
    folders = {name: Path(runs) / name for name in experiments(total_steps, seeds)}
    for name, experiment in experiments(total_steps, seeds).items():
        agentgym_jax.train(experiment, out=folders[name], overwrite=True, quiet=True)
        print(f"{name}: done")
    page = agentgym_jax.write_report(list(folders.values()), out, title="PPO and PQN on three small tasks", overwrite=True)
    print(page)
    return page


if __name__ == "__main__":
    main(*(int(x) if x.isdigit() else x for x in sys.argv[1:]))
