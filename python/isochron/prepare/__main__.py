"""The command `python -m isochron.prepare`."""

from isochron.console import run_command
from isochron.prepare.command import main

if __name__ == "__main__":  # a worker process imports this file too
    run_command("prepare", main)
