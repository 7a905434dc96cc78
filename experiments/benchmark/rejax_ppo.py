"""PPO on CartPole beside rejax 0.1.3, the same settings, training only: 1 seed, and 16 seeds.

    .venv/bin/python experiments/benchmark/rejax_ppo.py [rounds]

Both train 501 760 steps a seed with 4 environments x 128 steps, 4 epochs, 4 minibatches, MLP 64-64 tanh.
"""

from __future__ import annotations

from typing import Any

import beside_rejax

STEPS, ENVS, LENGTH, EPOCHS, MINIBATCHES = 501_760, 4, 128, 4, 4


def create() -> Any:
    """rejax's PPO with these settings."""
    from rejax import PPO

    return PPO.create(
        env="CartPole-v1",
        agent_kwargs={"activation": "tanh", "hidden_layer_sizes": (64, 64)},
        num_envs=ENVS,
        num_steps=LENGTH,
        num_epochs=EPOCHS,
        num_minibatches=MINIBATCHES,
        total_timesteps=STEPS,
        eval_freq=STEPS,
        skip_initial_evaluation=True,
        learning_rate=2.5e-4,
        max_grad_norm=0.5,
    )


def child_ours(members: int, devices: int) -> None:
    """This project's run."""
    sizes = [f"train.total_steps={STEPS}", f"train.num_envs={ENVS}", f"train.rollout_length={LENGTH}"]
    sizes += [f"algorithm.epochs={EPOCHS}", f"algorithm.minibatches={MINIBATCHES}"]
    beside_rejax.ours(members, devices, "gymnax/cartpole_ppo", sizes)


if __name__ == "__main__":
    beside_rejax.main("rejax_ppo", __file__, lambda members: beside_rejax.rejax(members, STEPS, create), child_ours)
