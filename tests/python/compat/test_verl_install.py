"""install() in the process of a trainer, and the plugin in processes that verl starts."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator

import pytest
import tomllib
from verl.utils import seqlen_balancing
from verl.workers.engine import utils as engine_utils

from isochron.compat import verl as ours

ROOT = pathlib.Path(__file__).parents[3]
REPLACED = [
    "get_group_balanced_partitions",
    "get_seqlen_balanced_partitions",
    "karmarkar_karp",
    "prepare_dynamic_batch",
    "rearrange_micro_batches",
]


@pytest.fixture
def originals() -> Iterator[dict]:
    yield {name: getattr(seqlen_balancing, name) for name in REPLACED}
    ours.uninstall()


def batch_of(lengths: list[int]):
    import torch
    from tensordict import TensorDict

    rows = [torch.arange(length) for length in lengths]
    return TensorDict(
        {"input_ids": torch.nested.as_nested_tensor(rows, layout=torch.jagged)},
        batch_size=[len(rows)],
    )


def test_modules_that_import_by_name_are_patched_too(originals: dict):
    assert engine_utils.rearrange_micro_batches is originals["rearrange_micro_batches"]
    ours.install()
    for name in REPLACED:
        assert getattr(seqlen_balancing, name) is not originals[name]
    assert engine_utils.rearrange_micro_batches is seqlen_balancing.rearrange_micro_batches
    ours.uninstall()
    for name in REPLACED:
        assert getattr(seqlen_balancing, name) is originals[name]
    assert engine_utils.rearrange_micro_batches is originals["rearrange_micro_batches"]


def test_verls_engine_gets_the_planners_micro_batches(originals: dict):
    from verl.utils import tensordict_utils

    batch = batch_of([9, 13, 12, 8, 2, 4, 3])
    tensordict_utils.assign_non_tensor(batch, use_dynamic_bsz=True, max_token_len_per_gpu=13)
    with pytest.raises(ValueError, match="Requested 8"):
        engine_utils.prepare_micro_batches(batch, num_batches_divided_by=4)
    ours.install()
    micro_batches, rows = engine_utils.prepare_micro_batches(batch, num_batches_divided_by=4)
    assert len(micro_batches) == len(rows) == 4
    assert max(len(part["input_ids"].values()) for part in micro_batches) <= 13


def test_a_second_install_changes_the_mode_and_one_uninstall_ends_it(originals: dict):
    batch = batch_of([5, 6, 6])
    ours.install()
    ours.install(mode="exact_before_7553")
    assert seqlen_balancing.rearrange_micro_batches(batch, 10)[1] == [[0, 1], [2]]
    ours.install(mode="exact")
    assert seqlen_balancing.rearrange_micro_batches(batch, 10)[1] == [[0], [2], [1]]
    ours.uninstall()
    ours.uninstall()
    assert seqlen_balancing.rearrange_micro_batches is originals["rearrange_micro_batches"]


def test_a_module_that_was_loaded_later_gets_verls_functions_back(originals: dict):
    ours.install()
    later = type(sys)("later")
    later.balance = seqlen_balancing.get_seqlen_balanced_partitions
    sys.modules["later"] = later
    try:
        ours.uninstall()
    finally:
        del sys.modules["later"]
    assert later.balance is originals["get_seqlen_balanced_partitions"]


def test_the_patched_functions_look_like_verls(originals: dict):
    import inspect

    ours.install()
    for name in REPLACED:
        patched = getattr(seqlen_balancing, name)
        assert patched.__name__ == name
        assert inspect.signature(patched) == inspect.signature(originals[name])


def test_a_verl_with_other_arguments_is_refused(originals: dict, monkeypatch: pytest.MonkeyPatch):
    def rearrange_micro_batches(batch, cap):
        return batch, cap

    monkeypatch.setattr(seqlen_balancing, "rearrange_micro_batches", rearrange_micro_batches)
    with pytest.raises(ValueError, match=r"rearrange_micro_batches takes \(batch, cap\), must be"):
        ours.install()
    assert seqlen_balancing.karmarkar_karp is originals["karmarkar_karp"]
    with pytest.raises(ValueError, match=r'^\[install\] mode is "fast", must be best, exact or '):
        ours.install(mode="fast")


# The plugin: verl finds it by the metadata of the package.


@pytest.fixture
def metadata(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with the metadata that pip writes for pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    folder = tmp_path / f"isochron-{project['version']}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: isochron\nVersion: {project['version']}\n"
    )
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]"] + [f"{name} = {target}" for name, target in points.items()]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def run_python(
    code: str, metadata: pathlib.Path, **environment: str
) -> subprocess.CompletedProcess:
    path = os.pathsep.join([str(metadata), str(ROOT / "python")])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=400,
    )


SAY_WHOSE = """
    import sys, verl
    from verl.utils.seqlen_balancing import karmarkar_karp
    print("isochron.compat.verl" in sys.modules, hasattr(karmarkar_karp, "func"))
"""


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({}, "False False"),
        ({"ISOCHRON_VERL": "0"}, "False False"),
        ({"ISOCHRON_VERL": "1"}, "True True"),
    ],
)
def test_the_plugin_is_off_unless_asked_for(metadata: pathlib.Path, choice: dict, said: str):
    result = run_python(SAY_WHOSE, metadata, **choice)
    assert result.stdout.strip() == said, result.stderr


def test_a_plugin_that_cannot_install_says_so(metadata: pathlib.Path):
    result = run_python(SAY_WHOSE, metadata, ISOCHRON_VERL="1", ISOCHRON_VERL_MODE="fast")
    assert result.stdout.strip() == "True False"
    assert 'isochron: [verl] not installed: [install] mode is "fast"' in result.stderr


def test_the_plugin_works_in_a_process_that_a_process_spawns(
    metadata: pathlib.Path, tmp_path: pathlib.Path
):
    script = tmp_path / "driver.py"
    script.write_text(
        textwrap.dedent("""
        import multiprocessing

        def whose(queue):
            from verl.utils.seqlen_balancing import karmarkar_karp
            queue.put(karmarkar_karp.func.__module__)

        if __name__ == "__main__":
            context = multiprocessing.get_context("spawn")
            queue = context.Queue()
            worker = context.Process(target=whose, args=(queue,))
            worker.start()
            print(queue.get(timeout=300))
            worker.join(timeout=30)
        """)
    )
    result = run_python(
        f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')",
        metadata,
        ISOCHRON_VERL="1",
    )
    assert result.stdout.strip() == "isochron.compat.partitions", result.stderr


def test_the_plugin_works_in_a_worker_of_ray(metadata: pathlib.Path):
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:  # sockets: a short path
        result = run_python(
            f"""
            import ray

            ray.init(
                num_cpus=1,
                include_dashboard=False,
                object_store_memory=80_000_000,
                _node_ip_address="127.0.0.1",
                _temp_dir={folder!r},
            )

            @ray.remote
            def whose():
                from verl.utils.seqlen_balancing import karmarkar_karp
                return karmarkar_karp.func.__module__

            try:
                print(ray.get(whose.remote(), timeout=300))
            finally:
                ray.shutdown()
            """,
            metadata,
            ISOCHRON_VERL="1",
        )
    assert result.stdout.splitlines()[-1:] == ["isochron.compat.partitions"], result.stderr
