"""Which agents share parameters. `shared` is the plain model: the same parameters for every row of the agent axis."""

from __future__ import annotations

from typing import Any

import jax

from agentgym_jax.models.base import Model


def per_agent(model: Model, num_agents: int) -> Model:
    """`model` with parameters of its own for every agent, stacked on a leading axis A.

    Agent a's rows go through parameters a alone; `model` itself sees one agent, with its axis kept: [T, B, 1, ...].
    """

    def one(params: Any, carry: Any, inputs: Any, reset: jax.Array) -> tuple[Any, Any]:
        carry = jax.tree.map(lambda x: x[:, None], carry)
        inputs = jax.tree.map(lambda x: x[:, :, None], inputs)
        results = model.apply(params, carry, inputs, reset[:, :, None])
        return jax.tree.map(lambda x: x[:, :, 0], results)

    return Model(
        # Not vmapped: two virtual CPU devices that factorise a batch of matrices wait for each other for ever.
        init=lambda key: jax.lax.map(model.init, jax.random.split(key, num_agents)),
        carry=model.carry,
        apply=jax.vmap(one, in_axes=(0, 1, 2, 2), out_axes=2),
    )
