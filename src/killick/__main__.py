"""`python -m killick` is the command line."""

from killick.cli import main

main()
