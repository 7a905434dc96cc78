"""Action distributions as pure functions of a network's outputs: categorical, multi-categorical, normal, tanh-normal.

`distribution(action_space, kind)` picks one and returns a `Distribution`. Its parameters are plain arrays with any leading
axes: logits [..., size] for Discrete and MultiDiscrete (heads side by side), `NormalParams` [..., d] for a Box.

Densities of a Box live in [-1, 1] units: the action space must be mapped to [-1, 1] before, and the factor by which that
map stretches a dimension is in no log-density. It is a constant, so it changes no gradient and no probability ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs_jax.names import unknown
from envs_jax.spaces import Box, Discrete, MultiDiscrete, Space

KINDS = ("normal", "tanh_normal")  # what a Box may be given
MASKED = -1e9  # logit of an illegal action: its probability is exactly 0 in float32, while 0 · MASKED stays 0 and not NaN


class NormalParams(NamedTuple):
    """A diagonal normal distribution, both float32 [..., d]."""

    mean: jax.Array
    log_std: jax.Array


class Distribution(NamedTuple):
    """Pure functions of `params` with leading axes [...]; a multi-dimensional action counts as one joint action.

    A discrete sample is int32 [...] (Discrete) or [..., heads] (MultiDiscrete). A Box is sampled *before* clipping or tanh,
    float32 [..., d], and `log_prob` takes that sample: recovering it from a saturated action would have no finite gradient.
    """

    size: int  # outputs of the policy head: n, sum(nvec), or d
    mask: Callable[[Any, Any], Any]  # (params, action_mask bool [..., size] or ()) -> params that never pick a False
    sample: Callable[[Any, jax.Array], jax.Array]  # (params, key): one key for all rows
    mode: Callable[[Any], jax.Array]  # (params): the greedy sample
    action: Callable[[jax.Array], jax.Array]  # (sample) -> what the environment gets
    log_prob: Callable[[Any, jax.Array], jax.Array]  # (params, sample) -> float32 [...]
    entropy: Callable[[Any, Any], jax.Array]  # (params, key) -> float32 [...]; only tanh-normal uses the key
    kl: Callable[[Any, Any], jax.Array]  # (p, q) -> KL(p || q), float32 [...]


def distribution(action_space: Space, kind: str = "normal", own: np.ndarray | None = None) -> Distribution:
    """The distribution over one agent's actions.

    Args:
      action_space: Discrete, MultiDiscrete, or a float Box of shape (d,) that is already mapped to [-1, 1].
      kind: `normal` or `tanh_normal`, for a Box only; discrete spaces are always categorical.
      own: which entries agents have at all, bool [A, size], where some have fewer than others (`EnvSpec.own_actions`);
        parameters then end in [A, size]. The other actions are masked, the other dimensions are 0 and weigh nothing in
        densities, entropies and divergences.

    Raises ValueError for an unknown kind and for a Box of another shape, dtype or range.
    """
    if kind not in KINDS:
        raise unknown("distribution", kind, KINDS)
    if isinstance(action_space, Discrete):
        return _masking(_categorical(action_space.n), own)
    if isinstance(action_space, MultiDiscrete):
        return _masking(_multi_categorical(action_space.nvec), own)
    if not isinstance(action_space, Box):
        raise ValueError(f"an action space must be Discrete, MultiDiscrete or Box, got {action_space!r}")
    if len(action_space.shape) != 1 or not np.issubdtype(action_space.dtype, np.floating):
        raise ValueError(f"a Box of actions must be a float vector, got {action_space}: flatten or discretise it first")
    if (action_space.low, action_space.high) != (-1.0, 1.0):
        raise ValueError(
            f"a Box of actions must be mapped to [-1, 1], got {action_space}: wrap the environment in ScaleActions"
        )
    return _normal(action_space.shape[0], own) if kind == "normal" else _tanh_normal(action_space.shape[0], own)


# Categorical: the functions below work on the last axis, whatever leads.


def _mask_logits(logits: jax.Array, legal: jax.Array) -> jax.Array:
    """Illegal entries get `MASKED`. A row without a legal entry becomes a constant that always picks action 0."""
    first = jax.lax.broadcasted_iota(jnp.int32, legal.shape, legal.ndim - 1) == 0
    nothing_legal = ~jnp.any(legal, axis=-1, keepdims=True)
    return jnp.where(legal, logits, jnp.where(nothing_legal & first, 0.0, jnp.float32(MASKED)))


def _log_prob_of(logits: jax.Array, index: jax.Array) -> jax.Array:
    """Log-probability of `index` [...]. Selects by comparison: the gradient of a gather is a scatter, slow everywhere."""
    chosen = jax.lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1) == index[..., None]
    return jnp.sum(jnp.where(chosen, logits, 0.0), axis=-1) - jax.nn.logsumexp(logits, axis=-1)


def _entropy_of(logits: jax.Array) -> jax.Array:
    log_p = jax.nn.log_softmax(logits)
    return -jnp.sum(jnp.exp(log_p) * log_p, axis=-1)


def _kl_of(p: jax.Array, q: jax.Array) -> jax.Array:
    log_p, log_q = jax.nn.log_softmax(p), jax.nn.log_softmax(q)
    return jnp.sum(jnp.exp(log_p) * (log_p - log_q), axis=-1)


def _argmax(logits: jax.Array) -> jax.Array:
    return jnp.argmax(logits, axis=-1).astype(jnp.int32)


def _draw(logits: jax.Array, key: jax.Array) -> jax.Array:
    return _argmax(logits + jax.random.gumbel(key, logits.shape, jnp.float32))


def _masking(discrete: Distribution, own: np.ndarray | None) -> Distribution:
    """The distribution with what an agent does not have masked always, whatever the environment's mask says."""
    if own is None:
        return discrete

    def mask(logits: jax.Array, legal: Any) -> jax.Array:
        static = jnp.broadcast_to(own, logits.shape)
        return discrete.mask(logits, static if isinstance(legal, tuple) else legal & static)

    return discrete._replace(mask=mask)


def _categorical(n: int) -> Distribution:
    return Distribution(
        size=n,
        mask=lambda logits, mask: logits if isinstance(mask, tuple) else _mask_logits(logits, mask),
        sample=_draw,
        mode=_argmax,
        action=lambda sample: sample,
        log_prob=_log_prob_of,
        entropy=lambda logits, key: _entropy_of(logits),
        kl=_kl_of,
    )


def _split_heads(x: jax.Array, nvec: tuple[int, ...], fill: Any) -> jax.Array:
    """[..., sum(nvec)] -> [..., heads, max(nvec)]; shorter heads end in `fill`, so that all are handled at once."""
    widest = max(nvec)
    if min(nvec) == widest:
        return x.reshape(*x.shape[:-1], len(nvec), widest)
    heads = jnp.split(x, np.cumsum(nvec)[:-1], axis=-1)
    unpadded = [(0, 0)] * (x.ndim - 1)
    return jnp.stack([jnp.pad(h, [*unpadded, (0, widest - h.shape[-1])], constant_values=fill) for h in heads], axis=-2)


def _join_heads(x: jax.Array, nvec: tuple[int, ...]) -> jax.Array:
    """The inverse of `_split_heads`."""
    if min(nvec) == max(nvec):
        return x.reshape(*x.shape[:-2], sum(nvec))
    return jnp.concatenate([x[..., head, :n] for head, n in enumerate(nvec)], axis=-1)


def _multi_categorical(nvec: tuple[int, ...]) -> Distribution:
    """Independent heads: the joint log-probability, entropy and divergence are sums over the heads."""

    def split(logits: jax.Array) -> jax.Array:
        return _split_heads(logits, nvec, MASKED)

    def mask(logits: jax.Array, legal: Any) -> jax.Array:
        if isinstance(legal, tuple):
            return logits
        return _join_heads(_mask_logits(split(logits), _split_heads(legal, nvec, False)), nvec)

    return Distribution(
        size=sum(nvec),
        mask=mask,
        sample=lambda logits, key: _draw(split(logits), key),
        mode=lambda logits: _argmax(split(logits)),
        action=lambda sample: sample,
        log_prob=lambda logits, sample: jnp.sum(_log_prob_of(split(logits), sample), axis=-1),
        entropy=lambda logits, key: jnp.sum(_entropy_of(split(logits)), axis=-1),
        kl=lambda p, q: jnp.sum(_kl_of(split(p), split(q)), axis=-1),
    )


# Normal: x = mean + exp(log_std) · ε, independent dimensions. `own` leaves out the dimensions that an agent does not have.


def _own_only(x: jax.Array, own: np.ndarray | None) -> jax.Array:
    """`x` [..., d] with 0 in the dimensions that are not an agent's own."""
    return x if own is None else jnp.where(jnp.broadcast_to(own, x.shape), x, 0.0)


def _normal_sample(params: NormalParams, key: jax.Array) -> jax.Array:
    return params.mean + jnp.exp(params.log_std) * jax.random.normal(key, params.mean.shape, jnp.float32)


def _normal_log_prob(params: NormalParams, x: jax.Array) -> jax.Array:
    z = (x - params.mean) * jnp.exp(-params.log_std)
    return -(0.5 * jnp.square(z) + params.log_std + 0.5 * math.log(2 * math.pi))


def _normal_entropy(params: NormalParams) -> jax.Array:
    return params.log_std + 0.5 * (1.0 + math.log(2 * math.pi))


def _normal_kl(p: NormalParams, q: NormalParams) -> jax.Array:
    ratio = jnp.exp(2.0 * (p.log_std - q.log_std))
    distance = jnp.square((p.mean - q.mean) * jnp.exp(-q.log_std))
    return 0.5 * (ratio + distance - 1.0) + q.log_std - p.log_std


def _normal(d: int, own: np.ndarray | None) -> Distribution:
    """The action is the sample clipped to [-1, 1]; the density is that of the sample, as is usual for clipped actions."""

    def total(x: jax.Array) -> jax.Array:
        return jnp.sum(_own_only(x, own), axis=-1)

    return Distribution(
        size=d,
        mask=lambda params, mask: params,
        sample=lambda params, key: _own_only(_normal_sample(params, key), own),
        mode=lambda params: _own_only(params.mean, own),
        action=lambda sample: jnp.clip(sample, -1.0, 1.0),
        log_prob=lambda params, x: total(_normal_log_prob(params, x)),
        entropy=lambda params, key: total(_normal_entropy(params)),
        kl=lambda p, q: total(_normal_kl(p, q)),
    )


def _log_tanh_slope(x: jax.Array) -> jax.Array:
    """log(1 − tanh² x) as 2 (log 2 − x − softplus(−2x)): finite, and so is its gradient."""
    return 2.0 * (math.log(2.0) - x - jax.nn.softplus(-2.0 * x))


def _tanh_normal(d: int, own: np.ndarray | None) -> Distribution:
    """Squashed normal of Haarnoja et al. 2018 (SAC), appendix C: log π(a) = log N(x) − Σ log(1 − tanh² x), a = tanh x.

    `mode` is tanh of the mean, the usual greedy action. The entropy is the normal's plus a one-sample estimate of
    E[Σ log(1 − tanh² x)]. The divergence is the normals': it does not change under a one-to-one map.
    """

    def total(x: jax.Array) -> jax.Array:
        return jnp.sum(_own_only(x, own), axis=-1)

    return _normal(d, own)._replace(
        action=jnp.tanh,
        log_prob=lambda params, x: total(_normal_log_prob(params, x) - _log_tanh_slope(x)),
        entropy=lambda params, key: total(_normal_entropy(params) + _log_tanh_slope(_normal_sample(params, key))),
    )
