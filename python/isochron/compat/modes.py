"""Whose answer is asked for."""

from typing import Literal

Mode = Literal["best", "exact"]
VerlMode = Literal["best", "exact", "exact_before_7553"]


def require_mode(mode: str, where: str, *allowed: str) -> None:
    """ValueError unless the mode is one of those allowed."""
    if mode not in allowed:
        choices = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
        raise ValueError(f'[{where}] mode is "{mode}", must be {choices}')
