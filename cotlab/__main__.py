"""``python -m cotlab`` is the command line."""

from cotlab.cli.main import main

main()
