"""isochron: LLM post-training where every rank finishes at the same time."""

__version__ = "0.1.0"
