"""DQN on CartPole beside rejax 0.1.3, the same settings, training only: 1 seed, and 16 seeds.

    .venv/bin/python experiments/benchmark/rejax_dqn.py [rounds]

Both train 60 000 steps a seed with 10 environments, one gradient step of 128 transitions every 10 steps, a memory of 10 000,
double learning, a copied target network every 500 steps, MLP 64-64 relu.
"""

from __future__ import annotations

from typing import Any

import beside_rejax

STEPS, ENVS, CAPACITY, BATCH, TARGET = 60_000, 10, 10_000, 128, 500


def create() -> Any:
    """rejax's DQN with these settings."""
    from rejax import DQN

    return DQN.create(
        env="CartPole-v1",
        agent_kwargs={"activation": "relu"},  # its layers are 64 and 64
        num_envs=ENVS,
        num_epochs=1,
        buffer_size=CAPACITY,
        fill_buffer=CAPACITY,
        batch_size=BATCH,
        target_update_freq=TARGET,
        polyak=0.0,
        exploration_fraction=0.5,
        total_timesteps=STEPS,
        eval_freq=STEPS,
        skip_initial_evaluation=True,
        learning_rate=2.5e-4,
        max_grad_norm=10.0,
    )


def child_ours(members: int, devices: int) -> None:
    """This project's run."""
    sizes = [f"train.total_steps={STEPS - CAPACITY + ENVS}", f"train.num_envs={ENVS}", "train.rollout_length=1"]
    sizes += [f"algorithm.capacity={CAPACITY}", f"algorithm.batch_size={BATCH}", f"algorithm.learning_starts={CAPACITY}"]
    sizes += [f"algorithm.target_period={TARGET // ENVS}", "network.hidden=[64, 64]"]
    sizes += ["algorithm.double=true", "algorithm.max_grad_norm=10", "algorithm.learning_rate=2.5e-4"]
    beside_rejax.ours(members, devices, "gymnax/cartpole_dqn", sizes)


if __name__ == "__main__":
    beside_rejax.main("rejax_dqn", __file__, lambda members: beside_rejax.rejax(members, STEPS, create), child_ours)
