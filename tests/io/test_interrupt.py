import contextlib
import signal

import pytest

from agentgym_jax.io.interrupt import Interrupted, Signals


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_body_with_the_exit_code_of_shells(signum, code):
    before = signal.getsignal(signum)
    with pytest.raises(Interrupted) as caught, Signals():
        signal.raise_signal(signum)
    assert caught.value.exit_code == code
    assert isinstance(caught.value, KeyboardInterrupt)
    assert signal.getsignal(signum) is before


def test_a_shield_is_finished_first():
    done = []
    with pytest.raises(Interrupted), Signals() as signals:
        with signals.shield():
            signal.raise_signal(signal.SIGINT)
            done.append("written")
        done.append("not reached")
    assert done == ["written"]


def test_a_signal_that_was_swallowed_is_told_by_the_next_shield():
    with pytest.raises(Interrupted, match="SIGINT"), Signals() as signals:
        with contextlib.suppress(Interrupted):  # as Python does with what a callback of its collector raises
            signal.raise_signal(signal.SIGINT)
        with signals.shield():
            pass
