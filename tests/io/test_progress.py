import io
import time

from rich.console import Console

from agentgym_jax.io.running.progress import Lines, Live, Reporter, make_reporter


def told(reporter):
    reporter.begin(4, 1000)
    reporter.trained_from(0)
    reporter.advanced(500, 2.0)
    reporter.evaluated(42.0, 500)
    reporter.note("a [note]")
    reporter.close()


def test_plain_lines_say_steps_speed_time_left_and_the_last_evaluation():
    stream = io.StringIO()
    told(Lines(stream))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "compiling"
    assert "500/1,000 steps · 1,000 steps/s" in lines[2]
    assert "left" in lines[2]
    assert "greedy return 42 (IQM) at 500" in lines[3]
    assert lines[4] == "a [note]"


def test_a_live_display_ticks_between_calls():
    stream = io.StringIO()
    live = Live(Console(file=stream, force_terminal=True, width=120))
    live.begin(1, 1000)
    before = len(stream.getvalue())
    time.sleep(1.2)
    assert "0:00:01" in stream.getvalue()[before:]
    told(live)
    assert "500/1,000 steps" in stream.getvalue()
    assert "a [note]" in stream.getvalue()


def test_quiet_says_nothing(capsys):
    told(make_reporter(quiet=True))
    assert type(make_reporter(quiet=True)) is Reporter
    assert capsys.readouterr() == ("", "")
    assert isinstance(make_reporter(), Lines)  # pytest's stderr is no terminal


def test_the_time_left_of_a_resumed_run_counts_from_where_it_goes_on():
    stream = io.StringIO()
    reporter = Lines(stream)
    reporter.begin(1, 1000)
    reporter.trained_from(900)
    reporter._begun -= 10
    reporter.advanced(950, 100.0)
    assert "0:10 left" in stream.getvalue().splitlines()[-1]
