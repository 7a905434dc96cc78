"""`agentgym watch`: one line of what happened, and one of what is wrong."""

from typer.testing import CliRunner

from agentgym_jax.cli import app


def test_watch_says_what_happened_in_one_line(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    words = ["watch", "multi/two_step", "--out", "film.gif", "--seed", "1", "--sampled"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith("multi/two_step, random play, 1 episode: return ")
    assert line.endswith("3 frames are in film.gif")
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("agentgym: --out: film.gif exists") and "--overwrite" in line
    assert CliRunner().invoke(app, [*words, "--overwrite", "--episodes", "2"]).exit_code == 0
