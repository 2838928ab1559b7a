"""The command `python -m isochron.tiny`."""

from isochron.console import run_command
from isochron.tiny.command import main

if __name__ == "__main__":
    run_command("tiny", main)
