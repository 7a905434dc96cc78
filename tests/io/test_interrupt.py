import contextlib
import signal
import subprocess
import sys

import pytest

from agentgym_jax.io.running.interrupt import Interrupted, Signals


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


def test_a_deferred_body_looks_for_itself_and_a_second_signal_does_not_wait():
    with pytest.raises(Interrupted, match="SIGTERM"), Signals() as signals, signals.deferred():
        assert not signals.pending
        with signals.shield():
            signal.raise_signal(signal.SIGTERM)
        assert signals.pending
        signals.check()
    with pytest.raises(Interrupted, match="SIGINT"), Signals() as signals, signals.deferred():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("not reached")


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_ends_a_process_inside_a_call_that_does_not_return(signum, code):
    """Python's own handlers wait for such a call, as for a program on a device."""
    body = (
        "import hashlib; from agentgym_jax.io.running.interrupt import Signals\n"
        "with Signals(ends_process=True, say=lambda text: print(text, flush=True)) as signals, signals.deferred():\n"
        "    print('inside', flush=True); hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", body], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "inside\n"
        child.send_signal(signum)
        assert child.stdout.readline().startswith(f"{signum.name}: the running call is finished and saved first")
        child.send_signal(signum)
        _, error = child.communicate(timeout=20)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == code
    assert f"{signum.name}: left at once" in error
