import numpy as np
import pytest

from agentgym_jax.statistics.normalise import by_reference, min_max


def test_min_max_is_per_task_over_all_algorithms():
    result = min_max({"a": [[0.0, 100.0], [5.0, 300.0]], "b": [[10.0, 200.0]]})
    scale = 1 / (1 + 1e-7), 1 / (1 + 5e-9)  # 10 / (10 + 1e-6), 200 / (200 + 1e-6)
    assert np.allclose(result["a"], [[0, 0], [0.5 * scale[0], scale[1]]], rtol=1e-12)
    assert np.allclose(result["b"], [[scale[0], 0.5 * scale[1]]], rtol=1e-12)


def test_points_of_a_curve_count_and_a_flat_task_gives_zero():
    curves = np.array([[[0.0, 1.0, 4.0], [7.0, 7.0, 7.0]]])
    result = min_max({"a": curves})["a"]
    assert result.shape == curves.shape
    assert np.allclose(result[0, 0], [0, 0.25, 1])
    assert np.all(result[0, 1] == 0)


def test_references_are_given_per_task():
    assert by_reference([[5.0, -10.0]], low=[0.0, -20.0], high=[10.0, 0.0]).tolist() == [[0.5, 0.5]]
    assert by_reference(np.full((2, 1, 3), 4.0), 0.0, 8.0).shape == (2, 1, 3)
    assert np.all(by_reference(np.full((2, 1, 3), 4.0), 0.0, 8.0) == 0.5)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="references of task 1: must be two different numbers, got 3.0 and 3.0"):
        by_reference([[1.0, 2.0]], [0.0, 3.0], [1.0, 3.0])
    with pytest.raises(ValueError, match="same tasks"):
        min_max({"a": np.ones((2, 2)), "b": np.ones((2, 3))})
    with pytest.raises(ValueError, match="not finite"):
        min_max({"a": np.array([[np.nan]])})
