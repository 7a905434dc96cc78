"""Images of another size, and observations padded to a common width."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs_jax.core import Group
from envs_jax.probes import make
from envs_jax.spaces import Box, Discrete
from envs_jax.wrappers import AgentAxis, AgentIds, FrameStack, Pad, Resize

from .contract import check, check_types
from .stubs import Counter, Deaths, Echo, Shown, play

KEY = jax.random.key(0)
BYTES = np.asarray([[0, 255, 10, 20], [255, 0, 30, 41]], np.uint8)[..., None]


def shown(env):
    return np.asarray(env.reset(KEY, env.default_params)[1].observation)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_nearest_repeats_pixels(dtype):
    image = BYTES.astype(dtype)
    env = Resize(Shown(Box(0, 255, (2, 4, 1), dtype), jnp.asarray(image)), 4, 12, "nearest")
    assert env.spec.observation_space == Box(0, 255, (4, 12, 1), dtype)
    np.testing.assert_array_equal(shown(env), image.repeat(2, axis=0).repeat(3, axis=1))
    check_types(env)


def test_shrinking_averages_and_rounds_bytes():
    env = Resize(Shown(Box(0, 255, (2, 4, 1), np.uint8), jnp.asarray(BYTES)), 1, 2)
    weights = np.asarray([[3, 3, 1, 0], [0, 1, 3, 3]]) / 7  # a triangle of twice the width, cut at the border
    want = np.round(weights @ BYTES[..., 0].mean(axis=0))
    np.testing.assert_array_equal(shown(env)[0, :, 0], want)
    assert shown(env).dtype == np.uint8


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_interpolation_stays_inside_the_range_of_each_channel(dtype):
    """Cubic interpolation of an edge goes beyond it; bytes would wrap around."""
    high = np.broadcast_to(np.asarray([255.0, 9.0]), (2, 4, 2))
    image = (np.arange(8).reshape(2, 4, 1) % 2 * high).astype(dtype)
    space = Box(0, high, (2, 4, 2), dtype)
    env = Resize(Shown(space, jnp.asarray(image)), 5, 11, "cubic")
    seen = shown(env)
    assert env.spec.observation_space.contains(seen)
    assert (seen.max(axis=(0, 1)) == [255, 9]).all() and (seen.min(axis=(0, 1)) == 0).all()


def test_an_image_of_the_right_size_is_untouched():
    np.testing.assert_array_equal(shown(Resize(make("image"), 8, 8)), shown(make("image")))


def test_resized_images_of_agents_and_groups():
    env = Resize(AgentAxis(make("image")), 4, 6)
    assert shown(env).shape == (1, 4, 6, 1)
    images = tuple(Group(name, 1, Box(0, 1, (2, 2, c)), Box(0, 1, (2, 2, c))) for name, c in (("a", 1), ("b", 3)))
    env = Resize(Echo(Box(0, 1, (2, 2, 3)), agents=2, groups=images), 4, 4)
    assert [group.observation_space.shape for group in env.spec.groups] == [(4, 4, 1), (4, 4, 3)]
    assert shown(env).shape == (2, 4, 4, 3)
    check(FrameStack(Resize(make("image"), 5, 5), 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"height": 0, "width": 4}, r"resize\.height must be a whole number of at least 1, got 0"),
        ({"height": 4, "width": 4.0}, r"resize\.width must be"),
        ({"height": 4, "width": 4, "method": "bilinaer"}, "unknown method of wrapper resize 'bilinaer'"),
    ],
)
def test_resize_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        Resize(make("image"), **arguments)


def test_resize_refuses_what_is_no_image():
    with pytest.raises(ValueError, match="resize needs observations that are images"):
        Resize(Counter(), 4, 4)


def test_padded_observations():
    env = Pad(Counter(), observation=3)
    assert env.spec.observation_space == Box((0, 0, 0), (6, 0, 0), (3,)) and env.spec.action_space == Discrete(4)
    steps = play(env, 4)
    np.testing.assert_array_equal(steps.observation[:, :1], play(Counter(), 4).observation)
    assert (steps.observation[:, 1:] == 0).all() and steps.action_mask == ()
    image = Pad(make("image"), observation=3)
    assert image.spec.observation_space.shape == (8, 8, 3) and shown(image).dtype == np.uint8
    assert shown(image)[..., 0].max() == 255 and (shown(image)[..., 1:] == 0).all()
    check(image)


def test_padded_observations_of_groups():
    """Groups keep their own columns, and what comes after still finds them."""
    env = Pad(Deaths(widths=(1, 3, 2)), observation=5)
    assert [group.observation_space.shape for group in env.spec.groups] == [(1,), (3,), (2,)]
    assert np.asarray(env.observe(jnp.int32(2), ()).observation)[:, 3:].max() == 0
    assert env.world(jnp.int32(2), ()).tolist() == [2]
    check(AgentIds(env))
    assert np.asarray(AgentIds(env).observe(jnp.int32(2), ()).observation)[2].tolist() == [2, 2, 0, 0, 1, 0, 0, 0]


def test_padding_refuses():
    with pytest.raises(ValueError, match=r"pad\.observation must be .* at least 1, the environment's own, got 0"):
        Pad(Counter(), observation=0)
    with pytest.raises(ValueError, match=r"pad\.observation needs .* one array.*flatten"):
        Pad(Shown(Discrete(3), jnp.int32(1)), observation=4)
