"""The command `python -m isochron.prepare`."""

from isochron.console import run_command

if __name__ == "__main__":  # a worker process imports this file too
    run_command("prepare")
