"""The command `python -m isochron.track`."""

from isochron.console import run_command

if __name__ == "__main__":
    run_command("track")
