"""Puts functions in the place of a framework's own, and back.

`from module import function` copies the name, so a function is replaced wherever a loaded module
holds it. What is imported later finds the replacement in its home.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
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

    def install(self, home: ModuleType, functions: list[Callable[..., Any]], mode: str) -> None:
        """Replaces the functions of these names in `home` by ours in this mode.

        ValueError, and nothing is replaced, if one takes other arguments than ours.
        """
        pairs = [(getattr(home, ours.__name__), ours) for ours in functions]
        for original, ours in pairs:
            _require_same_parameters(original, ours)
        for original, ours in pairs:
            self.replace(original, _in_mode(original, ours, mode))

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


def _in_mode(original: Callable[..., Any], ours: Callable[..., Any], mode: str) -> Any:
    """Ours in this mode, under the name and the signature of the original."""
    takes_mode = "mode" in inspect.signature(ours).parameters
    return functools.update_wrapper(
        functools.partial(ours, mode=mode) if takes_mode else functools.partial(ours), original
    )


def _require_same_parameters(original: Callable[..., Any], ours: Callable[..., Any]) -> None:
    theirs, expected = (
        [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]
        for function in (original, ours)
    )
    if theirs != [parameter for parameter in expected if parameter[0] != "mode"]:
        raise ValueError(
            f"[install] {original.__module__}.{original.__name__} takes "
            f"{inspect.signature(original)}, must be {inspect.signature(ours)} without mode"
        )
