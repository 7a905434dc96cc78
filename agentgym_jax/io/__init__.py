"""The host side: experiments and their files, the runner, the run directory, reports."""
