"""What the entry point `verl.plugins` loads: install() in every process that imports verl.

Off unless ISOCHRON_VERL is 1. ISOCHRON_VERL_MODE names the mode; best if it is not set.
"""

import logging
import os


def _install() -> None:
    choice = os.environ.get("ISOCHRON_VERL", "0")
    if choice != "1":
        return
    try:
        from isochron.compat.verl import install

        install(os.environ.get("ISOCHRON_VERL_MODE", "best"))  # type: ignore[arg-type]
    except Exception as error:
        # verl goes on without a word when a plugin fails.
        logging.getLogger(__name__).error("isochron: [verl] not installed: %s", error)
        raise


_install()
