from __future__ import annotations

import subprocess
import sys

import pytest

import envs_jax
from envs_jax import registry
from envs_jax.names import check_arguments, nearest
from envs_jax.probes import PROBES

from .stubs import Counter


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})


def test_listing_imports_no_heavy_library():
    code = (
        "import sys, envs_jax; assert len(envs_jax.ids()) > 20; envs_jax.suite('gymnax/CartPole');"
        "heavy = {'jax', 'numpy', 'flax', 'gymnax', 'brax', 'jumanji'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_names():
    assert envs_jax.resolve("gymnax/CartPole") == envs_jax.resolve("gymnax/CartPole-v1") == "gymnax/CartPole-v1"
    assert envs_jax.suite("gymnax/CartPole") == "gymnax"
    assert set(PROBES) == {id.partition("/")[2] for id in envs_jax.ids() if id.startswith("probe/")}
    assert len(set(envs_jax.ids())) == len(envs_jax.ids())


def test_an_alias_means_the_newest_version():
    for version in (2, 10, 9):
        envs_jax.register(f"mine/Maze-v{version}", Counter)
    assert envs_jax.resolve("mine/Maze") == "mine/Maze-v10"


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("gymnax/Cartpole-v1", "gymnax/CartPole-v1"),
        ("CartPole", "gymnax/CartPole-v1"),
        ("gymnax/Acrobot-v2", "gymnax/Acrobot-v1"),
        ("probe/memry", "probe/memory"),
    ],
)
def test_unknown_names_come_with_the_nearest(wrong, meant):
    with pytest.raises(ValueError, match=f"unknown environment '{wrong}': did you mean {meant}"):
        envs_jax.make(wrong)


def test_unknown_names_without_a_near_one_list_the_first():
    with pytest.raises(ValueError, match=r"known: gymnax/CartPole-v1, .* and \d+ more \(`agentgym envs`") as error:
        envs_jax.make("qqqqqqqq")
    assert len(str(error.value)) < 1200


def test_an_id_is_no_class():
    with pytest.raises(ValueError, match=r"an environment is an id.*Counter.*; write Counter\(\)"):
        envs_jax.make(Counter)


def test_register():
    envs_jax.register("mine/counter", Counter)
    envs_jax.register("mine/lazy", "envs_jax.probes:Memory")
    assert envs_jax.ids()[-2:] == ["mine/counter", "mine/lazy"]
    assert envs_jax.make("mine/counter", length=7).spec.episode_limit == 7
    assert envs_jax.make("mine/lazy", delay=2).spec.episode_limit == 3
    assert envs_jax.suite("mine/lazy") == "mine"


@pytest.mark.parametrize(
    ("id", "factory", "message"),
    [
        ("maze", Counter, "suite/name"),
        ("mine/maze/two", Counter, "suite/name"),
        ("probe/memory", Counter, "taken"),
        ("mine/maze", 3, "module:function"),
        ("mine/maze", "module", "module:function"),
    ],
)
def test_register_refuses(id, factory, message):
    with pytest.raises(ValueError, match=message):
        envs_jax.register(id, factory)


def test_reset_modes_pass_through_wrappers():
    modes = {"probe/memory": "fresh", "gymnax/CartPole": "pool"}
    modes |= {f"multi/{name}": "pool" for name in ("spread", "tag", "rendezvous", "switch")} | {"multi/matrix": "fresh"}
    for id, mode in modes.items():
        env = envs_jax.make(id)
        wrapped = envs_jax.apply_wrappers(env, ({"name": "time_limit", "limit": 3},))
        assert env.reset_mode == wrapped.reset_mode == mode, id
    tag = envs_jax.make("multi/tag")
    for wrapper in ("joint", {"name": "opponent", "group": "prey", "policy": "flee"}):
        assert envs_jax.apply_wrappers(tag, (wrapper,)).reset_mode == "pool"


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(registry._SUITES, "gone", ("no_such_library.adapter", ("Maze",)))
    with pytest.raises(ImportError, match="'gone/Maze' needs the package `no_such_library`"):
        envs_jax.make("gone/Maze")


def test_package_attributes():
    assert set(envs_jax.__all__) <= set(dir(envs_jax))
    for _ in range(2):  # the import of a submodule must not hide a name behind it
        assert all(callable(getattr(envs_jax, name)) for name in envs_jax.__all__)
    with pytest.raises(AttributeError, match="mkae"):
        envs_jax.mkae  # noqa: B018


def test_hints():
    assert nearest("agent_id", ["agent_ids", "flatten"]) == ["agent_ids"]
    assert nearest("zzz", ["agent_ids"]) == []

    def build(size, depth=1):
        pass

    check_arguments("thing", build, ["size"])
    with pytest.raises(ValueError, match="unknown argument of thing 'siez': did you mean size"):
        check_arguments("thing", build, ["siez"])
    with pytest.raises(ValueError, match="thing needs the argument `size`"):
        check_arguments("thing", build, ["depth"])
