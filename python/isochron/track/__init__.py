"""The metrics of a run in a tracker: `python -m isochron.track RUN --to tensorboard`."""
