"""MMST, multiple minimum spanning trees: each agent connects its nodes of a graph, and no two may use one utility node."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jumanji.environments import MMST as Library
from jumanji.environments.routing.mmst.constants import EMPTY_NODE
from jumanji.environments.routing.mmst.generator import SplitRandomGenerator

from envs_jax.adapters.common import check_time_limit, check_whole
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete


class MMST(JumanjiEnv):
    """`MMST-v0`. Actions: the node to go to, over an edge. It truly ends when every agent has connected its nodes.

    jumanji shows the nodes as the first agent sees them. Here each agent has its own view, [num_nodes, 3 A + num_nodes] of
    0 and 1, a row for each node: for itself and then for each of the others, in turn from itself, whether the node is to be
    connected, whether it was visited, whether it stands there; then the node's edges. The reward is the team's, the sum
    over agents of 10 for a node connected, -1 for another move, -2 for an illegal one, 0 for giving way to another. An
    agent whose nodes are connected may not act any more: it is not `alive` and has no legal action. One that is walled in
    has none either, yet stays `alive`. Metrics: `ratio_connections`, and `success` when all is connected.

    Args:
        time_limit: steps until an episode is cut.
        num_nodes: of the graph.
        num_edges: at least num_nodes - 1, and few enough for `max_degree`.
        max_degree: a node with more edges than this gets no further one.
        num_agents: how many spanning trees, at least 2.
        num_nodes_per_agent: nodes to be connected by each, at least 2, in all at most 0.8 num_nodes.

    Raises ValueError when these do not fit together.
    """

    def __init__(
        self,
        time_limit: int = 70,
        num_nodes: int = 36,
        num_edges: int = 72,
        max_degree: int = 5,
        num_agents: int = 3,
        num_nodes_per_agent: int = 4,
    ):
        limit = check_time_limit("MMST", time_limit)
        check_whole("MMST", 1, num_nodes=num_nodes, num_edges=num_edges, max_degree=max_degree)
        check_whole("MMST", 2, num_agents=num_agents, num_nodes_per_agent=num_nodes_per_agent)
        if num_agents * num_nodes_per_agent > 0.8 * num_nodes:
            raise ValueError(
                f"MMST: num_agents * num_nodes_per_agent must be at most 0.8 num_nodes, got {num_agents} * "
                f"{num_nodes_per_agent} and num_nodes {num_nodes}"
            )
        most = most_edges(num_nodes, max_degree)
        if not num_nodes - 1 <= num_edges <= most:
            raise ValueError(
                f"MMST: num_edges must be num_nodes - 1 ... {most} for max_degree {max_degree} and num_nodes {num_nodes}, "
                f"got {num_edges}; with more, drawing the graph might not end"
            )
        generator = SplitRandomGenerator(num_nodes, num_edges, max_degree, num_agents, num_nodes_per_agent, limit + 1)
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (num_nodes, 3 * num_agents + num_nodes)),
            action_space=Discrete(num_nodes),
            num_agents=num_agents,
            world_space=Box(0.0, 1.0, (3 * num_agents * num_nodes + num_nodes * (num_nodes - 1) // 2,)),
            reward="team",
            metrics={"ratio_connections": "last", "success": "last"},
            episode_limit=limit,
        )
        super().__init__(Library(generator, time_limit=limit + 1), spec)
        self._pairs = np.triu_indices(num_nodes, 1)

    def emitted(self, observation: Any) -> tuple[()]:
        return ()

    def view(self, state: State) -> jax.Array:
        nodes = self._nodes(state)
        agents = np.arange(len(nodes))
        turn = (agents[:, None] + agents[None]) % len(agents)  # [A, A]: oneself, then the others
        features = jnp.moveaxis(nodes[turn], -1, 1).reshape(len(agents), nodes.shape[-1], -1)
        edges = jnp.broadcast_to(state.library.adj_matrix[None], (len(agents), *state.library.adj_matrix.shape))
        return jnp.concatenate([features, edges], axis=-1).astype(jnp.float32)

    def action_mask(self, state: State) -> jax.Array:
        # jumanji's mask still lets an agent move that has finished with this very step.
        return state.library.action_mask & ~state.library.finished_agents[:, None]

    def metrics(self, state: State) -> dict[str, jax.Array]:
        wanted = state.library.nodes_to_connect
        connected = jnp.take_along_axis(state.library.connected_nodes_index, wanted, axis=1) != EMPTY_NODE
        ratio = (jnp.sum(connected, axis=1) - 1) / (wanted.shape[1] - 1)  # each starts at one of its nodes
        return {
            "ratio_connections": jnp.mean(ratio, dtype=jnp.float32),
            "success": jnp.all(state.library.finished_agents).astype(jnp.float32),
        }

    def alive(self, state: State) -> jax.Array:
        return ~state.library.finished_agents

    def world(self, state: State, params: Any) -> jax.Array:
        """float32 [3 A num_nodes + num_nodes (num_nodes - 1) / 2] of 0 and 1: nodes as each agent has them, and all edges."""
        parts = (self._nodes(state), state.library.adj_matrix[self._pairs])
        return jnp.concatenate([part.astype(jnp.float32).ravel() for part in parts])

    def _nodes(self, state: State) -> jax.Array:
        """bool [A, 3, num_nodes]: to be connected by the agent, visited by it, where it stands."""
        library, agents = state.library, len(state.library.positions)
        wanted = library.node_types[None] == jnp.arange(agents)[:, None]
        visited = library.connected_nodes_index != EMPTY_NODE
        here = jnp.arange(len(library.node_types))[None] == library.positions[:, None]
        return jnp.stack([wanted, visited, here], axis=1)


def most_edges(num_nodes: int, max_degree: int) -> int:
    """How many edges jumanji can draw for sure.

    It draws pairs until one is free of which both nodes have degree D - 1 = `max_degree` or less. When none is left, the c
    nodes below degree D are all connected with each other, so there are at least ((num_nodes - c) D + c (c - 1)) / 2 edges,
    which is smallest at c = (D + 1) / 2.
    """
    degree = max_degree + 1
    return min(int(num_nodes * degree - (degree + 1) ** 2 / 4) // 2, num_nodes * (num_nodes - 1) // 2)
