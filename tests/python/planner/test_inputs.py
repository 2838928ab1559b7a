"""What goes in: lists, numpy arrays, tensors and whatever else holds whole numbers."""

import array
import ctypes
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import isochron

VALUES = [7258, 7812, 8030, 2606, 40]
KINDS: dict[str, Callable[[list[int]], Any]] = {
    "list": list,
    "tuple": tuple,
    "list of numpy numbers": lambda values: [np.int32(value) for value in values],
    "iterator": iter,
    "array": lambda values: array.array("q", values),
    "objects": lambda values: np.array(values, dtype=object),
    "read-only": lambda values: np.frombuffer(np.array(values).tobytes(), np.int64),
    "other byte order": lambda values: np.array(values, dtype=">i8"),
    "not contiguous": lambda values: np.array(values).repeat(3)[::3],
    "backwards": lambda values: np.array(values[::-1])[::-1],
    "column": lambda values: np.stack([np.array(values)] * 2, axis=1)[:, 1],
    "torch int64": torch.tensor,
    "torch int32": lambda values: torch.tensor(values, dtype=torch.int32),
    "torch not contiguous": lambda values: torch.tensor(values).repeat_interleave(2)[::2],
    **{
        f"numpy {name}": lambda values, name=name: np.array(values, dtype=name)
        for name in ("int64", "int32", "int16", "uint64", "uint32", "uint16")
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_integers_gives_the_same_answer(kind: str):
    make = KINDS[kind]
    assert isochron.balance(make(VALUES), 2).to_json() == isochron.balance(VALUES, 2).to_json()
    assert isochron.plan_step(make(VALUES), 2, 16384) == isochron.plan_step(VALUES, 2, 16384)
    assert isochron.karmarkar_karp(make(VALUES), 2, "free") == isochron.karmarkar_karp(
        VALUES, 2, "free"
    )


def test_small_integers_are_integers():
    for dtype in (np.int8, np.uint8):
        assert isochron.count_bound(np.array([1, 2, 3], dtype=dtype), 3) == 2


def test_no_torch_is_imported_for_anything():
    code = (
        "import sys, isochron, numpy\n"
        "isochron.balance(numpy.array([3, 4]), 1)\n"
        "assert not {'torch', 'transformers', 'pyarrow'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_neither_numpy_nor_the_extension_is_imported_with_the_package():
    code = (
        "import sys, isochron\n"
        "assert not {'torch', 'numpy', 'isochron._planner'} & set(sys.modules)\n"
        "assert 'balance' in dir(isochron)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_dense_integers_are_not_copied():
    # Zeros that nobody has touched take no memory; a copy of them does. The first is an error.
    code = (
        "import resource, numpy, isochron\n"
        "lengths = numpy.zeros(100_000_000, numpy.int64)\n"
        "isochron.count_bound([1], 1)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n"
        "    isochron.count_bound(lengths, 1)\n"
        "except ValueError as error:\n"
        "    assert 'lengths[0] is 0' in str(error), error\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
        "kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "assert kb < 100_000, kb\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_what_was_passed_can_change_afterwards():
    lengths = np.array(VALUES)
    plan = isochron.plan_step(lengths, 2, 16384)
    lengths[:] = 1
    assert plan.lengths.tolist() == VALUES
    assert plan.check() is None


def test_float32_is_summed_in_float32():
    lengths = [
        3765, 30817, 14350, 9825, 28544, 25697, 7113, 20034, 14106, 13834, 10, 7534, 3612, 532,
        32621, 15886,
    ]  # fmt: skip
    workloads = np.array([24576 * s + s * s for s in lengths])
    single = [[0, 1, 4, 8, 9, 10, 11, 15], [2, 3, 5, 6, 7, 12, 13, 14]]
    exact = [[2, 3, 5, 7, 10, 11, 12, 14], [0, 1, 4, 6, 8, 9, 13, 15]]
    inputs: list[tuple[Any, list[list[int]]]] = [
        (workloads, exact),
        (workloads.tolist(), exact),
        (workloads.astype(np.float64), exact),
        (workloads.astype(float).tolist(), exact),
        (workloads.astype(np.float32), single),
        (workloads.astype(np.float32).repeat(2)[::2], single),
        (torch.tensor(workloads, dtype=torch.float32), single),
    ]
    for values, expected in inputs:
        assert isochron.balanced_partitions(values, 2, "equal") == expected


def test_groups_are_numbers_or_names():
    by_name = isochron.Batch([1, 2, 3], groups=["7", "9", "7"])
    for groups in ([7, 9, 7], np.array([7, 9, 7]), torch.tensor([7, 9, 7]), ("7", "9", "7")):
        assert isochron.Batch([1, 2, 3], groups=groups) == by_name


def test_no_sequences_are_an_input_like_any_other():
    for empty in ([], np.array([], dtype=np.int64), torch.tensor([], dtype=torch.int64)):
        assert isochron.balance(empty, 2).sequences_of_rank == [[], []]
        assert isochron.pack(empty, capacity=5).microbatches == []
        assert isochron.layouts.packed_layout(empty).source.tolist() == []
        with pytest.raises(ValueError, match="plan"):
            isochron.plan_step(empty, 2, 16384)


def test_one_sequence_is_enough():
    assert isochron.balance([5], 1).sequences_of_rank == [[0]]
    assert isochron.pack([5], capacity=5).microbatches == [[0]]
    assert isochron.plan_step([5], 1, 5).groups_of_rank(0)[0].sequences == [0]


def test_a_million_sequences_pass():
    lengths = isochron.long_tailed_lengths(1_000_000, 1)
    result = isochron.balance(lengths, 1024)
    assert sum(map(len, result.sequences_of_rank)) == 1_000_000
    assert result.max_cost < 1.001 * result.lower_bound


def test_a_list_takes_little_longer_than_an_array():
    # Numbers are not written out before somebody asks for them, as an error would.
    lengths = isochron.long_tailed_lengths(200_000, 1)

    def seconds(values: Any) -> float:
        begin = time.thread_time()
        isochron.count_bound(values, 65536 * 4)
        return time.thread_time() - begin

    as_list = lengths.tolist()
    list_s = min(seconds(as_list) for _ in range(5))
    array_s = min(seconds(lengths) for _ in range(5))
    assert list_s - array_s < 0.02, (list_s, array_s)  # 100 ns a number


def test_numbers_of_numpy_are_numbers_of_options():
    plan = isochron.plan_step(VALUES, np.int64(2), np.int32(16384), max_sequences=np.int64(2))
    assert plan == isochron.plan_step(VALUES, 2, 16384, max_sequences=2)


BAD: dict[str, tuple[Any, str]] = {
    "bool": ([True], r"lengths\[0\] is True, must be an integer of 64 bits"),
    "numpy bool": (np.array([True]), "numbers of another type, must be integers"),
    "float": ([3, 1.5], r"lengths\[1\] is 1.5, must be an integer of 64 bits"),
    "whole float": ([3.0], r"lengths\[0\] is 3.0, must be an integer of 64 bits"),
    "numpy float": (np.array([1.0]), "numbers of another type, must be integers"),
    "torch float": (torch.tensor([1.0]), "numbers of another type, must be integers"),
    "text": ("12", "lengths is '12', must be a list, a numpy array or a tensor"),
    "texts": (["12"], r"lengths\[0\] is '12', must be an integer"),
    "bytes": (b"12", "lengths is b'12', must be a list"),
    "bytearray": (bytearray(b"12"), "must be a list"),
    "number": (12, "lengths is 12, must be a list"),
    "none": (None, "lengths is None, must be a list"),
    "dict": ({1: 2}, "must be a list"),
    "matrix": (np.ones((2, 3), dtype=int), "lengths has 2 dimensions"),
    "torch matrix": (torch.ones(2, 3, dtype=torch.int64), "lengths has 2 dimensions"),
    "scalar": (np.array(3), "lengths has 0 dimensions"),
    "nested": ([[1, 2]], r"lengths\[0\] is \[1, 2\], must be an integer"),
    "huge": ([2**70], r"lengths\[0\] is 1180591620717411303424, must be an integer of 64 bits"),
    "enormous": ([10**6000], r"lengths\[0\] is a int, must be an integer of 64 bits"),
    "huge unsigned": (np.array([2**63], np.uint64), r"lengths\[0\] is 9223372036854775808"),
    "negative": ([-1], "lengths"),
    "zero": ([0], "length"),
    "too long": ([2**31], "length"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_length_is_named(kind: str):
    lengths, message = BAD[kind]
    for ask in (
        lambda: isochron.balance(lengths, 2),
        lambda: isochron.pack(lengths, capacity=10),
        lambda: isochron.plan_step(lengths, 2, 100),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            ask()
        assert "\n" not in str(caught.value)


def test_a_tensor_with_gradients_is_read_like_any_other():
    values = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    assert isochron.balanced_partitions(values, 2, "free") == [[1, 2], [0]]


class OnADevice:
    """Host memory that calls itself memory of a CUDA device."""

    def __init__(self, values: list[int]) -> None:
        self._array = np.array(values)

    def __dlpack__(self, **_: object) -> object:
        capsule = self._array.__dlpack__()
        address = ctypes.pythonapi.PyCapsule_GetPointer
        address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        tensor = address(capsule, b"dltensor")  # a pointer to the data, then the kind of device
        ctypes.c_int32.from_address(tensor + ctypes.sizeof(ctypes.c_void_p)).value = 2
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


def test_memory_of_a_device_is_refused():
    with pytest.raises(
        ValueError, match="lengths is in the memory of a device, must be on the CPU"
    ):
        isochron.balance(OnADevice(VALUES), 2)


def test_an_error_while_iterating_is_passed_on():
    def broken():
        yield 1
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        isochron.balance(broken(), 1)
