"""The structure of networks as a user writes it."""

from __future__ import annotations

import dataclasses
from typing import Any

from agentgym_jax.models.convolutions import PADDINGS, each
from agentgym_jax.models.torsos import ACTIVATIONS
from envs_jax.names import unknown

_CHOICES = {
    "torso": ("mlp", "cnn", "gru", "cnn_gru"),
    "activation": tuple(ACTIVATIONS),
    "padding": PADDINGS,
    "trunk": ("separate", "shared"),
    "sharing": ("shared", "group", "agent"),
    "compute_dtype": ("float32", "bfloat16"),
}


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
    """The structure of every network of an algorithm; actor and critic have the same."""

    name: str = "default"  # `default` or the name of a registered network
    torso: str = "mlp"  # mlp | cnn | gru | cnn_gru: convolutions, dense layers, a GRU and dense layers after it, in this order
    hidden: tuple[int, ...] = (64, 64)  # sizes ≥ 1 of the dense layers, before the GRU if there is one; () for none (PureJaxRL)
    activation: str = "tanh"  # tanh | relu | silu (swish) | gelu | elu, after every layer (PureJaxRL: tanh)
    layer_norm: bool = False  # normalise between a layer and its activation (PQN: true)
    recurrent: int = 128  # ≥ 1, hidden size of the GRU (JaxMARL, Mava: 128); read when torso has one
    after: tuple[int, ...] = ()  # sizes ≥ 1 of the dense layers after the GRU (JaxMARL, Mava: [128]); torso with a GRU only
    channels: tuple[int, ...] = (16,)  # sizes ≥ 1 of the convolutions (Young & Tian 2019, MinAtar: [16]); torso cnn, cnn_gru
    kernels: tuple[int, ...] = (3,)  # ≥ 1, sides of the kernels: one for each convolution, or one for all (MinAtar: [3])
    strides: tuple[int, ...] = (1,)  # ≥ 1, likewise (MinAtar: [1])
    padding: str = "valid"  # valid | same: whether convolutions see inside the image only, or keep its size (MinAtar: valid)
    trunk: str = "separate"  # separate | shared: whether actor and critic share all but their heads (PureJaxRL: separate)
    dueling: bool = False  # action values as state value plus advantage (Wang et al. 2016); read by Q-learners
    sharing: str = "shared"  # shared | group | agent: one set of parameters, one for each group or agent (JaxMARL: shared)
    id_embedding: int = 0  # ≥ 0, size of a vector learnt for each agent, beside its features; 0: none; not with sharing: agent
    log_std: float = 0.0  # −20 … 2, initial logarithm of the standard deviation, [-1, 1] units (PureJaxRL: 0)
    compute_dtype: str = "float32"  # float32 | bfloat16 of dense and convolutional layers; pays on accelerators alone

    def __post_init__(self):
        for field in ("hidden", "after", "channels", "kernels", "strides"):
            sizes = getattr(self, field)
            if not isinstance(sizes, list | tuple) or not all(_positive(size) for size in sizes):
                raise ValueError(f"network.{field} must be a list of whole numbers between 1 and 65,536, got {sizes!r}")
            object.__setattr__(self, field, tuple(sizes))
        if not _positive(self.recurrent):
            raise ValueError(f"network.recurrent must be a whole number between 1 and 65,536, got {self.recurrent!r}")
        if self.id_embedding != 0 and not _positive(self.id_embedding) or isinstance(self.id_embedding, bool):
            raise ValueError(f"network.id_embedding must be a whole number between 0 and 65,536, got {self.id_embedding!r}")
        for field in ("layer_norm", "dueling"):
            if not isinstance(getattr(self, field), bool):
                raise ValueError(f"network.{field} must be true or false, got {getattr(self, field)!r}")
        for field, known in _CHOICES.items():
            if getattr(self, field) not in known:
                raise unknown(f"network.{field}", getattr(self, field), known)
        if self.after and not self.remembers:
            raise ValueError(
                f"network.after = {list(self.after)} follows a GRU: set network.torso: gru, or put it in network.hidden"
            )
        if self.id_embedding and self.sharing == "agent":
            raise ValueError(
                f"network.id_embedding = {self.id_embedding} tells agents apart that share parameters: set it to 0, or"
                " network.sharing: shared or group"
            )
        self._check_convolutions()
        number = isinstance(self.log_std, int | float) and not isinstance(self.log_std, bool)
        if not number or not -20.0 <= self.log_std <= 2.0:
            raise ValueError(f"network.log_std must be a number between -20 and 2, got {self.log_std!r}")
        object.__setattr__(self, "log_std", float(self.log_std))

    def _check_convolutions(self) -> None:
        if self.convolves and not self.channels:
            raise ValueError(f"network.channels is empty, but network.torso is {self.torso}: name a size for each convolution")
        for field in ("kernels", "strides"):
            if len(getattr(self, field)) not in (1, len(self.channels)):
                raise ValueError(
                    f"network.{field} must have one entry, or one for each of the {len(self.channels)} network.channels,"
                    f" got {list(getattr(self, field))}"
                )

    @property
    def convolves(self) -> bool:
        """Whether the torso begins with convolutions."""
        return self.torso in ("cnn", "cnn_gru")

    @property
    def remembers(self) -> bool:
        """Whether the torso has a GRU."""
        return self.torso in ("gru", "cnn_gru")

    def sides(self, image: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Height and width of an image of this size after each convolution; nothing is left where one is below 1."""
        sizes = []
        for i in range(len(self.channels)):
            kernel, stride = each(self.kernels, i), each(self.strides, i)
            lost = kernel - 1 if self.padding == "valid" else 0
            image = tuple(-(-(side - lost) // stride) for side in image)
            sizes.append(image)
        return sizes


def _positive(size: Any) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= 2**16
