"""Reports where the reader is: inline in a notebook, elsewhere as a page on disk."""

import importlib
import sys
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isochron import StepPlan


def is_notebook() -> bool:
    """Whether an IPython kernel runs this process; a terminal has no room for a page."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def show(plan: "StepPlan") -> None:
    """Shows the report of a plan beside naive packing and verl 0.9.1."""
    if is_notebook():
        inline: Any = importlib.import_module("IPython.display")  # typed in newer versions only
        inline.display(inline.HTML(plan._repr_html_()))
        return
    from isochron import report

    with tempfile.NamedTemporaryFile(
        "w", prefix="isochron-", suffix=".html", encoding="utf-8", delete=False
    ) as page:
        page.write(report(plan))
    print(page.name)
