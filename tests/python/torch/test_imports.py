"""The package is called torch and uses torch."""

import importlib
import pkgutil
import subprocess
import sys

import torch

import isochron.torch


def test_every_module_of_it_means_the_real_torch():
    assert isochron.torch is not torch
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.iter_modules(isochron.torch.__path__, "isochron.torch.")
    ]
    assert len(modules) > 5
    assert all(getattr(module, "torch", torch) is torch for module in modules)


def test_the_planner_is_imported_without_torch():
    program = "import sys, isochron; isochron.plan_step; print('torch' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert result.stdout == "False\n"


def test_public_names_are_those_that_are_listed_and_documented():
    for name in isochron.torch.__all__:
        assert getattr(isochron.torch, name).__doc__, name
