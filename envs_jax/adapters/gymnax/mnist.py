"""MNISTBandit from files that the user fetched: gymnax itself would download them into /tmp while it builds."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import Any

import jax.numpy as jnp
from gymnax.environments.bsuite import mnist
from gymnax.utils.load_mnist import load_mnist

NAME = "MNISTBandit-bsuite"
FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
SOURCE = "https://storage.googleapis.com/cvdf-datasets/mnist/"


class MNISTBandit(mnist.MNISTBandit):
    """gymnax's bandit over the first `fraction` of the training pictures in the folder `path`.

    Raises ValueError without a folder, when a file is missing or cannot be read, and for a fraction without any picture.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, fraction: float = 1.0):
        (images, labels), _ = _load(path)
        self.num_data = int(fraction * len(labels))
        if not 1 <= self.num_data <= len(labels):
            raise ValueError(f"gymnax/{NAME}: fraction {fraction!r} of {len(labels)} pictures; it must lie in (0, 1]")
        self.image_shape = images.shape[1:]
        self.images = jnp.asarray(images[: self.num_data])
        self.labels = jnp.asarray(labels[: self.num_data])


def _load(path: Any) -> Any:
    fetch = f"fetch {', '.join(FILES)} from {SOURCE} into a folder and give it as `path`"
    if path is None:
        raise ValueError(f"gymnax/{NAME} needs data: {fetch}")
    folder = Path(path).expanduser()
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        fault = f"has no {missing[0]}" if folder.is_dir() else "is no folder"
        raise ValueError(f"gymnax/{NAME}: path {str(path)!r} {fault}; {fetch}")
    try:
        return load_mnist(str(folder))
    except (OSError, EOFError, ValueError, struct.error, zlib.error) as error:
        raise ValueError(f"gymnax/{NAME}: the files in path {str(path)!r} cannot be read ({error}); {fetch}") from error
