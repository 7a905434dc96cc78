"""Four learning rates x four seeds as one population in one compile: a number of `hyper` is an input of the program.

    python experiments/sweep_learning_rates.py [total steps]
"""

import sys

import jax
import jax.numpy as jnp

import agentgym_jax


def main(total_steps: int = 100_000) -> jax.Array:
    """Prints the final greedy return of every rate; returns it as [rates, seeds]."""
    overrides = [f"train.total_steps={total_steps}", "algorithm.learning_rate=0", "eval.points=2"]
    experiment = agentgym_jax.load_experiment("gymnax/cartpole_ppo", overrides=overrides)
    train = agentgym_jax.make_train(experiment)  # pure: train(hyper, key) -> TrainResult
    rates, keys = jnp.array([1e-4, 3e-4, 1e-3, 3e-3]), jax.random.split(jax.random.key(0), 4)
    hypers = jax.vmap(lambda rate: experiment.hyper.replace(learning_rate=rate))(rates)

    # lax.map walks through the members inside one program, which on CPU is as fast as vmap; on an accelerator use vmap.
    pairs = jax.tree.map(lambda x: jnp.repeat(x, len(keys), axis=0), hypers), jnp.tile(keys, len(rates))
    result = jax.jit(lambda pairs: jax.lax.map(lambda pair: train(*pair), pairs))(pairs)

    returns = result.evaluation["greedy"]["return"][:, -1].mean(-1).reshape(len(rates), len(keys))
    for rate, row in zip(rates, returns, strict=True):
        print(f"learning rate {rate:.0e}: greedy return {row.mean():6.1f}, seeds {[round(float(x)) for x in row]}")
    return returns


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
