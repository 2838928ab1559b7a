"""The command `python -m isochron.track`."""

from isochron.console import run_command
from isochron.track.command import main

if __name__ == "__main__":
    run_command("track", main)
