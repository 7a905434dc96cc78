"""`python -m agentgym_jax` is the `agentgym` command."""

import sys

from agentgym_jax.cli import main

if __name__ == "__main__":
    sys.exit(main())
