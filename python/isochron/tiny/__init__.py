"""Tiny random models and learnable long-tailed conversations, for tests and first steps.

`python -m isochron.tiny OUT` writes OUT/model, OUT/train.jsonl and OUT/val.jsonl. Everything is
made from a seed; nothing is downloaded.
"""
