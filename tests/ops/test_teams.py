"""Values of agents that share one reward."""

from __future__ import annotations

import hypothesis
import hypothesis.extra.numpy as arrays
import jax
import jax.numpy as jnp
import numpy as np

from agentgym_jax.ops.teams import rows_with_value, team_values

close = np.testing.assert_allclose


def test_the_dead_are_worth_the_mean_of_the_living():
    values = jnp.float32([[1.0, 3.0, 100.0], [1.0, 3.0, 8.0], [5.0, 7.0, 9.0]])
    alive = jnp.array([[True, True, False], [False, False, True], [False, False, False]])
    close(team_values(values, alive), [[1.0, 3.0, 2.0], [8.0, 8.0, 8.0], [7.0, 7.0, 7.0]])


def test_every_row_teaches_while_nobody_lives():
    alive = jnp.array([[True, False], [False, False], [True, True]])
    np.testing.assert_array_equal(rows_with_value(alive), [[True, False], [True, True], [True, True]])


@hypothesis.settings(max_examples=30)
@hypothesis.given(alive=arrays.arrays(bool, (5, 4, 3)))
def test_what_the_dead_row_holds_does_not_matter(alive):
    values = np.random.default_rng(0).normal(size=alive.shape).astype(np.float32)
    somebody = alive.any(-1, keepdims=True)
    spoilt = np.where(~alive & somebody, 1e6, values).astype(np.float32)
    expected, got = team_values(values, alive), team_values(spoilt, alive)
    np.testing.assert_array_equal(expected, got)
    for row, lives, result in zip(values.reshape(-1, 3), alive.reshape(-1, 3), got.reshape(-1, 3), strict=True):
        mean = row[lives].mean() if lives.any() else row.mean()
        close(result, np.where(lives, row, mean), rtol=1e-5)


def test_a_dead_rows_value_gets_no_gradient_while_a_mate_lives():
    values, alive = jnp.float32([[1.0, 2.0, 3.0]]), jnp.array([[True, False, True]])
    gradient = jax.grad(lambda v: jnp.sum(team_values(v, alive)))(values)
    close(gradient, [[1.5, 0.0, 1.5]])
