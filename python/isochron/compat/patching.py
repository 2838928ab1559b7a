"""Puts functions in the place of a framework's own, and back.

`from module import function` copies the name, so a function is replaced wherever a loaded module
holds it. What is imported later finds the replacement in its home.
"""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any


class Patches:
    """What has been put in the place of what. Empty until replace() is called."""

    def __init__(self) -> None:
        self._originals: list[tuple[Any, Any]] = []  # (replacement, original)

    def __bool__(self) -> bool:
        return bool(self._originals)

    def replace(self, original: Any, replacement: Any) -> None:
        """Replaces the original in every module that is loaded."""
        _exchange(original, replacement)
        self._originals.append((replacement, original))

    def take_back(self) -> None:
        """Puts the originals back, also into modules that were loaded in the meantime."""
        while self._originals:
            _exchange(*self._originals.pop())


def _exchange(old: Any, new: Any) -> None:
    for names in _names_of_modules():
        for name, value in list(names.items()):
            if value is old:
                names[name] = new


def _names_of_modules() -> Iterator[dict[str, Any]]:
    own = __name__.split(".")[0]
    for name, module in list(sys.modules.items()):
        # Looks at names as they are: getattr() would load what a lazy module has not loaded yet.
        if isinstance(module, ModuleType) and name.split(".")[0] != own:
            yield vars(module)
