"""Conversations into tokenised rows: `python -m isochron.prepare` (docs/data.md)."""
