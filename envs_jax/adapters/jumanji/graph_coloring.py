"""GraphColoring: colour the nodes of a graph, neighbours differently, with as few colours as possible."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import GraphColoring as Library
from jumanji.environments.logic.graph_coloring.generator import RandomGenerator

from envs_jax.adapters.common import check_whole
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete


class GraphColoring(JumanjiEnv):
    """`GraphColoring-v1`, single-agent. Actions: the colour, 0 ... num_nodes - 1, of the node whose turn it is.

    Nodes are coloured in the order of their numbers; legal is a colour that no neighbour has. The observation is
    [num_nodes (2 num_nodes + 1)] of 0 and 1, for each node: its neighbours, its colour one-hot (all 0 while it has none) and
    whether it is its turn. It truly ends when all nodes are coloured, after num_nodes steps, which is the time limit, and
    pays minus the number of colours; an illegal colour is given all the same, ends it too and pays -num_nodes. All other
    steps pay 0. Metrics: `colours`, how many are in use, and `success`, whether all nodes are coloured, no two neighbours
    alike.

    Args:
        num_nodes: how many nodes, and colours.
        edge_probability: how likely two nodes are neighbours, between 0 and 1, both excluded.

    Raises ValueError when an argument is none of these.
    """

    def __init__(self, num_nodes: int = 20, edge_probability: float = 0.8):
        check_whole("GraphColoring", 1, num_nodes=num_nodes)
        if not isinstance(edge_probability, float) or not 0 < edge_probability < 1:
            raise ValueError(f"GraphColoring: edge_probability must lie between 0 and 1, got {edge_probability!r}")
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (num_nodes * (2 * num_nodes + 1),)),
            action_space=Discrete(num_nodes),
            metrics={"colours": "last", "success": "last"},
            episode_limit=num_nodes,
        )
        super().__init__(Library(RandomGenerator(num_nodes, edge_probability)), spec)

    def emitted(self, observation: Any) -> tuple[()]:
        return ()

    def view(self, state: State) -> jax.Array:
        graph, nodes = state.library, jnp.arange(self.library.num_nodes)
        colours = jax.nn.one_hot(graph.colors, len(nodes), dtype=jnp.float32)
        return jnp.column_stack((graph.adj_matrix, colours, nodes == graph.current_node_index)).ravel()

    def action_mask(self, state: State) -> jax.Array:
        return state.library.action_mask

    def metrics(self, state: State) -> dict[str, jax.Array]:
        graph = state.library
        given = graph.colors[:, None] == jnp.arange(self.library.num_nodes)[None]
        alike = graph.adj_matrix & (graph.colors[:, None] == graph.colors[None])
        proper = jnp.all(graph.colors >= 0) & ~jnp.any(alike)
        return {"colours": jnp.sum(jnp.any(given, axis=0), dtype=jnp.float32), "success": proper.astype(jnp.float32)}
