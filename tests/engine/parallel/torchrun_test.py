"""Ranks under torchrun: torchrun_test.py CASE PROGRAM

CASE is one_agent, two_agents (as on two nodes, here on one host) or restart. Exits 1 if a rank did
not find the others.
"""

import pathlib
import socket
import subprocess
import sys
import tempfile


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def agent(nodes, node, port, extra, command):
    return subprocess.Popen(
        [
            sys.executable, "-m", "torch.distributed.run", "--no-python",
            f"--nnodes={nodes}", f"--node-rank={node}", f"--nproc-per-node={4 // nodes}",
            "--master-addr=127.0.0.1", f"--master-port={port}", *extra, *command,
        ]
    )  # fmt: skip


def main(case, program):
    nodes = 2 if case == "two_agents" else 1
    fails = case == "restart"
    with tempfile.TemporaryDirectory() as folder:
        command = [program, folder] + (["fail"] if fails else [])
        extra = ["--max-restarts=1", "--monitor-interval=0.2"] if fails else []
        port = free_port()
        agents = [agent(nodes, node, port, extra, command) for node in range(nodes)]
        try:
            codes = [process.wait(timeout=200) for process in agents]
        finally:
            for process in agents:
                process.kill()
        assert codes == [0] * nodes, codes
        for rank in range(4):
            found = (pathlib.Path(folder) / f"rank_{rank}").read_text()
            local = 4 // nodes
            expected = (
                f"{rank} of 4, local {rank % local} of {local}, sum 6, pair {1 if rank < 2 else 5}, "
                f"incarnation {'later' if fails else 'first'}"
            )
            assert found == expected, (found, expected)


if __name__ == "__main__":
    main(*sys.argv[1:])
