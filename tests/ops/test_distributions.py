"""Action distributions against distrax, closed forms and numeric integrals, under jit and vmap."""

from __future__ import annotations

import importlib
import itertools
import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.ops.distributions import NormalParams, distribution
from envs_jax.spaces import Box, Discrete, MultiDiscrete

MASKS = [mask for mask in itertools.product((False, True), repeat=4) if any(mask)]
UNIT_BOX = Box(-1.0, 1.0, (3,))
close = np.testing.assert_allclose


@pytest.fixture(scope="module")
def distrax():
    """The oracle; importing it and its dependencies warns of names that jax is about to drop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("distrax")


@pytest.fixture
def oracle(distrax, relaxed_rank_promotion):
    """distrax with what it needs relaxed: rank promotion and its use of deprecated names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield distrax


def logits_of(*shape, seed=0, scale=2.0):
    return jnp.asarray(scale * np.random.default_rng(seed).normal(size=shape), jnp.float32)


def normal_of(*shape, seed=0):
    return NormalParams(logits_of(*shape, seed=seed, scale=1.0), logits_of(*shape, seed=seed + 100, scale=0.5))


def test_categorical_equals_distrax(oracle):
    d, p, q = distribution(Discrete(5)), logits_of(6, 5), logits_of(6, 5, seed=1)
    theirs, other = oracle.Categorical(logits=p), oracle.Categorical(logits=q)
    sample = jnp.array([0, 1, 2, 3, 4, 2])
    close(d.log_prob(p, sample), theirs.log_prob(sample), rtol=1e-5)
    close(d.entropy(p, None), theirs.entropy(), rtol=1e-5)
    close(d.kl(p, q), theirs.kl_divergence(other), rtol=1e-5)
    np.testing.assert_array_equal(d.mode(p), theirs.mode())


def test_normal_equals_distrax(oracle):
    d, p, q = distribution(UNIT_BOX), normal_of(6, 3), normal_of(6, 3, seed=1)
    theirs, other = (oracle.MultivariateNormalDiag(x.mean, jnp.exp(x.log_std)) for x in (p, q))
    sample = d.sample(p, jax.random.key(2))
    close(d.log_prob(p, sample), theirs.log_prob(sample), rtol=1e-5)
    close(d.entropy(p, None), theirs.entropy(), rtol=1e-5)
    close(d.kl(p, q), theirs.kl_divergence(other), rtol=1e-5)


def test_tanh_normal_equals_distrax(oracle):
    d, p = distribution(UNIT_BOX, "tanh_normal"), normal_of(6, 3)
    theirs = oracle.Transformed(oracle.MultivariateNormalDiag(p.mean, jnp.exp(p.log_std)), oracle.Block(oracle.Tanh(), 1))
    sample = d.sample(p, jax.random.key(2))
    close(d.log_prob(p, sample), theirs.log_prob(d.action(sample)), rtol=1e-3, atol=1e-4)


def test_masked_categorical_is_the_categorical_of_the_legal_actions():
    d, logits = distribution(Discrete(4)), logits_of(4)

    @jax.jit
    @jax.vmap
    def functions(mask):
        p = d.mask(logits, mask)
        log_prob = jax.vmap(d.log_prob, (None, 0))(p, jnp.arange(4))
        return log_prob, d.entropy(p, None), d.mode(p), jax.nn.softmax(p)

    for mask, log_prob, entropy, mode, probability in zip(np.array(MASKS), *functions(jnp.array(MASKS)), strict=True):
        weight = np.exp(np.asarray(logits, np.float64)) * mask
        expected = weight / weight.sum()
        close(log_prob[mask], np.log(expected[mask]), rtol=1e-5, atol=1e-6)
        close(entropy, -np.sum(expected[mask] * np.log(expected[mask])), rtol=1e-5, atol=1e-6)
        assert mode == np.argmax(weight)
        assert np.all(probability[~mask] == 0.0) and np.all(log_prob[~mask] <= -1e8)


def test_masked_actions_are_never_drawn():
    d = distribution(Discrete(4))
    logits = jnp.tile(jnp.float32([3.0, -8.0, 50.0, 0.0]), (100_000, 1))
    masked = d.mask(logits, jnp.tile(jnp.array([True, True, False, True]), (100_000, 1)))
    counts = np.bincount(np.asarray(d.sample(masked, jax.random.key(0))), minlength=4)
    assert counts[2] == 0
    close(counts / counts.sum(), jax.nn.softmax(masked[0]), atol=5e-3)


def test_gradients_are_finite_for_every_mask_and_zero_where_masked():
    d, logits, other = distribution(Discrete(4)), logits_of(4), logits_of(4, seed=1)

    def functions(logits, mask):
        masked = d.mask(logits, mask)
        return jnp.stack([d.entropy(masked, None), d.log_prob(masked, d.mode(masked)), d.kl(masked, d.mask(other, mask))])

    @jax.jit
    @jax.vmap
    def derivatives(mask):
        first = jax.jacrev(functions)
        return functions(logits, mask), first(logits, mask), jax.jacfwd(first)(logits, mask)

    masks = jnp.array([(False,) * 4, *MASKS])
    values, gradients, second = derivatives(masks)
    assert all(np.all(np.isfinite(x)) for x in (values, gradients, second))
    assert np.all(np.where(masks[:, None, :], 0.0, gradients) == 0.0)


@pytest.mark.parametrize("space", [Discrete(4), MultiDiscrete((3, 2)), MultiDiscrete((2, 2))])
def test_a_row_without_a_legal_action_takes_action_0_and_leaves_the_others_alone(space):
    d = distribution(space)
    logits = logits_of(3, d.size)
    mask = jnp.ones((3, d.size), bool).at[:, 1].set(False)
    empty = mask.at[1].set(False)

    def loss(logits, mask):
        masked = d.mask(logits, mask)
        sample = d.sample(masked, jax.random.key(0))
        rows = d.log_prob(masked, sample) + d.entropy(masked, None)
        return rows.sum(), (rows, sample, d.mode(masked))

    differentiate = jax.jit(jax.grad(loss, has_aux=True))
    (gradient, (rows, sample, mode)), (usual, _) = differentiate(logits, empty), differentiate(logits, mask)
    assert rows[1] == 0.0 and np.all(sample[1] == 0) and np.all(mode[1] == 0)
    np.testing.assert_array_equal(gradient[1], 0.0)
    np.testing.assert_array_equal(gradient[::2], usual[::2])


@pytest.mark.parametrize("nvec", [(3, 2), (2, 3, 4), (3, 3)])
def test_multi_discrete_is_the_sum_of_its_heads(nvec):
    d, p, q = distribution(MultiDiscrete(nvec)), logits_of(7, sum(nvec)), logits_of(7, sum(nvec), seed=1)
    assert d.size == sum(nvec)
    mask = np.random.default_rng(3).random(p.shape) < 0.7
    mask[:, np.cumsum(nvec) - 1] = True
    mask = jnp.asarray(mask)

    @jax.jit
    def joint_and_heads(p, q):
        p, q = d.mask(p, mask), d.mask(q, mask)
        sample = d.sample(p, jax.random.key(2))
        heads, start = [], 0
        for head, n in enumerate(nvec):
            one, part, other = distribution(Discrete(n)), p[:, start : start + n], q[:, start : start + n]
            heads.append((one.log_prob(part, sample[:, head]), one.entropy(part, None), one.kl(part, other), one.mode(part)))
            start += n
        return (d.log_prob(p, sample), d.entropy(p, None), d.kl(p, q), d.mode(p)), sample, heads

    (*joint, mode), sample, heads = joint_and_heads(p, q)
    assert sample.shape == (7, len(nvec)) and sample.dtype == jnp.int32
    *parts, modes = zip(*heads, strict=True)
    for whole, part in zip(joint, parts, strict=True):
        close(whole, np.sum(part, axis=0), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(mode, np.stack(modes, axis=-1))


def test_multi_discrete_masks_each_head_by_itself():
    d = distribution(MultiDiscrete((3, 2)))
    legal = jnp.tile(jnp.array([True, False, True, False, True]), (20_000, 1))
    logits = jnp.tile(jnp.float32([0.0, 9.0, 1.0, 9.0, 0.0]), (20_000, 1))
    sample = np.asarray(jax.jit(lambda key: d.sample(d.mask(logits, legal), key))(jax.random.key(0)))
    assert set(sample[:, 0]) == {0, 2} and set(sample[:, 1]) == {1}
    close(np.mean(sample[:, 0] == 2), 1 / (1 + math.exp(-1)), atol=0.02)


def test_multi_discrete_probabilities_sum_to_one():
    d, params = distribution(MultiDiscrete((3, 2))), jnp.tile(logits_of(5), (6, 1))
    joint = jnp.array(list(itertools.product(range(3), range(2))), jnp.int32)
    close(np.exp(jax.jit(d.log_prob)(params, joint)).sum(), 1.0, rtol=1e-5)


def test_no_mask_changes_nothing():
    params = logits_of(2, 5)
    for space in (Discrete(5), MultiDiscrete((3, 2))):
        d = distribution(space)
        assert d.mask(params, ()) is params
        np.testing.assert_array_equal(d.mask(params, jnp.ones((2, 5), bool)), params)


@pytest.mark.parametrize("space", [Discrete(6), MultiDiscrete((3, 2))])
def test_discrete_samples_have_their_probabilities(space):
    d, params = distribution(space), logits_of(5 if isinstance(space, MultiDiscrete) else 6, scale=1.0)
    samples = np.asarray(d.sample(jnp.broadcast_to(params, (200_000, d.size)), jax.random.key(1)))
    rows, counts = np.unique(samples, axis=0, return_counts=True)
    expected = jnp.exp(d.log_prob(jnp.broadcast_to(params, (len(rows), d.size)), jnp.asarray(rows)))
    close(counts / counts.sum(), expected, atol=5e-3)


@pytest.mark.parametrize("kind", ["normal", "tanh_normal"])
def test_normal_moments_modes_and_actions(kind):
    d, params = distribution(UNIT_BOX, kind), normal_of(3)
    wide = jax.tree.map(lambda x: jnp.broadcast_to(x, (200_000, 3)), params)
    samples = d.sample(wide, jax.random.key(0))
    close(samples.mean(0), params.mean, atol=0.02)
    close(samples.std(0), jnp.exp(params.log_std), rtol=0.02)
    np.testing.assert_array_equal(d.mode(params), params.mean)
    assert np.all(np.abs(d.action(samples)) <= 1.0)
    squash = jnp.tanh if kind == "tanh_normal" else lambda x: jnp.clip(x, -1.0, 1.0)
    np.testing.assert_array_equal(d.action(samples), squash(samples))
    assert d.mask(params, ()) is params


@pytest.mark.parametrize(("mean", "log_std"), [(0.0, 0.0), (0.7, -1.0), (-1.5, 0.5)])
def test_tanh_normal_density_integrates_to_one_and_matches_a_numeric_change_of_variables(mean, log_std):
    d = distribution(Box(-1.0, 1.0, (1,)), "tanh_normal")
    x = np.linspace(-7.0, 7.0, 20_001)
    params = NormalParams(jnp.full((x.size, 1), mean, jnp.float32), jnp.full((x.size, 1), log_std, jnp.float32))
    density = np.exp(np.asarray(d.log_prob(params, jnp.float32(x)[:, None]), np.float64))
    actions = np.tanh(x)
    close(np.trapezoid(density, actions), 1.0, rtol=1e-3)
    # p(a) = N(x) dx/da with dx/da by central differences in float64
    inner = slice(6_000, 14_000)
    normal = np.exp(-0.5 * ((x - mean) / np.exp(log_std)) ** 2) / (np.exp(log_std) * np.sqrt(2 * np.pi))
    close(density[inner], (normal * np.gradient(x, actions))[inner], rtol=2e-3)


def test_tanh_normal_entropy_estimate_is_unbiased():
    d = distribution(Box(-1.0, 1.0, (1,)), "tanh_normal")
    params = NormalParams(jnp.full((200_000, 1), 0.4), jnp.full((200_000, 1), -0.3))
    estimate = d.entropy(params, jax.random.key(0)).mean()
    samples = d.sample(params, jax.random.key(1))
    close(estimate, -d.log_prob(params, samples).mean(), atol=0.01)


def test_tanh_normal_has_finite_gradients_when_saturated():
    d = distribution(UNIT_BOX, "tanh_normal")
    sample = jnp.float32([[30.0, -30.0, 1e4], [-1e4, 0.0, 88.0]])
    params = NormalParams(jnp.zeros((2, 3)), jnp.zeros((2, 3)))

    def total(params, sample):
        return d.log_prob(params, sample).sum() + d.entropy(params._replace(mean=sample), jax.random.key(0)).sum()

    results = jax.jit(jax.value_and_grad(total, argnums=(0, 1)))(params, sample)
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(results))


@pytest.mark.parametrize(
    ("space", "kind"),
    [(Discrete(5), "normal"), (MultiDiscrete((3, 2)), "normal"), (UNIT_BOX, "normal"), (UNIT_BOX, "tanh_normal")],
)
def test_jit_and_vmap_change_nothing_and_leading_axes_are_free(space, kind):
    d = distribution(space, kind)
    params, other = (normal_of(4, 3, 3, seed=s) if isinstance(space, Box) else logits_of(4, 3, 5, seed=s) for s in (0, 1))
    mask = () if isinstance(space, Box) else jnp.ones((4, 3, 5), bool).at[:, :, 1].set(False)

    def everything(params, mask, other, key):
        p, q = d.mask(params, mask), d.mask(other, mask)
        sample = d.sample(p, key)
        return d.log_prob(p, sample), d.kl(p, q), d.entropy(p, key), d.action(d.mode(p)), sample

    keys = jax.random.split(jax.random.key(1), 4)
    jitted = jax.jit(everything)
    one_by_one = [jitted(*jax.tree.map(lambda x, i=i: x[i], (params, mask, other)), key) for i, key in enumerate(keys)]
    eager = everything(*jax.tree.map(lambda x: x[0], (params, mask, other)), keys[0])
    jax.tree.map(lambda a, b: close(a, b, rtol=1e-5, atol=1e-6), eager, one_by_one[0])
    together = jax.jit(jax.vmap(everything))(params, mask, other, keys)
    jax.tree.map(lambda whole, *rows: close(whole, np.stack(rows), rtol=1e-5, atol=1e-6), together, *one_by_one)
    assert all(x.shape == (4, 3) and x.dtype == jnp.float32 and not x.weak_type for x in together[:3])
    log_prob, *_, sample = jax.eval_shape(everything, params, mask, other, jax.random.PRNGKey(0))
    assert log_prob.shape == (4, 3) and sample.shape == together[-1].shape


def test_divergence_from_itself_is_zero():
    for space, params in ((MultiDiscrete((3, 2)), logits_of(6, 5)), (UNIT_BOX, normal_of(6, 3))):
        close(jax.jit(distribution(space).kl)(params, params), 0.0, atol=1e-6)


@pytest.mark.parametrize(
    ("space", "kind", "message"),
    [
        (Discrete(2), "tanh_norml", "did you mean tanh_normal"),
        (Box(-2.0, 2.0, (3,)), "normal", "ScaleActions"),
        (Box(-math.inf, math.inf, (3,)), "normal", "mapped to \\[-1, 1\\]"),
        (Box(-1.0, 1.0, (3, 2)), "normal", "float vector"),
        (Box(-1.0, 1.0, (3,), np.int32), "normal", "float vector"),
        ((Discrete(2), Discrete(2)), "normal", "Discrete, MultiDiscrete or Box"),
    ],
)
def test_unsuitable_spaces_are_refused(space, kind, message):
    with pytest.raises(ValueError, match=message):
        distribution(space, kind)


OWN = np.array([[True, True, False], [True, True, True]])  # two agents, the first without the third dimension or action


@pytest.mark.parametrize("kind", ["normal", "tanh_normal"])
def test_dimensions_that_an_agent_does_not_have_weigh_nothing(kind):
    """The first agent's numbers are those of a Box of two dimensions, whatever its third one says; its gradient is 0."""
    d, narrow, wide = distribution(UNIT_BOX, kind, OWN), distribution(Box(-1, 1, (2,)), kind), distribution(UNIT_BOX, kind)
    p, q = normal_of(4, 2, 3), normal_of(4, 2, 3, seed=1)

    def first(params):
        return NormalParams(params.mean[:, 0, :2], params.log_std[:, 0, :2])

    def second(params):
        return NormalParams(params.mean[:, 1], params.log_std[:, 1])

    sample = d.sample(p, jax.random.key(0))
    for chosen in (sample, d.mode(p)):
        assert (chosen[:, 0, 2] == 0).all() and (d.action(chosen)[:, 0, 2] == 0).all() and (chosen[:, 1] != 0).all()
    close(d.log_prob(p, sample)[:, 0], narrow.log_prob(first(p), sample[:, 0, :2]), rtol=1e-5)
    close(d.log_prob(p, sample)[:, 1], wide.log_prob(second(p), sample[:, 1]), rtol=1e-5)
    close(d.kl(p, q)[:, 0], narrow.kl(first(p), first(q)), rtol=1e-5)
    if kind == "normal":  # the other estimate depends on the draw
        close(d.entropy(p, None)[:, 0], narrow.entropy(first(p), None), rtol=1e-5)

    def everything(p):
        return sum(jnp.sum(x) for x in (d.log_prob(p, sample), d.entropy(p, jax.random.key(1)), d.kl(p, q)))

    gradient = jax.jit(jax.grad(everything))(p)
    for leaf in gradient:
        assert (leaf[:, 0, 2] == 0).all() and np.all(leaf[:, :, :2] != 0) and np.all(leaf[:, 1] != 0)


@pytest.mark.parametrize("space", [Discrete(3), MultiDiscrete((3,))], ids=str)
def test_actions_that_an_agent_does_not_have_are_masked_with_and_without_a_mask(space):
    d, logits = distribution(space, own=OWN), logits_of(500, 2, 3)
    legal = jnp.broadcast_to(jnp.asarray([[True, False, True], [False, True, True]]), logits.shape)
    for mask, allowed in (((), [{0, 1}, {0, 1, 2}]), (legal, [{0}, {1, 2}])):
        drawn = np.asarray(d.sample(d.mask(logits, mask), jax.random.key(0))).reshape(500, 2)
        assert [set(drawn[:, agent]) for agent in range(2)] == allowed
