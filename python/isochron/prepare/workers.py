"""Rows made by this process or by several; the results come in the order of the input."""

import collections
import concurrent.futures
import itertools
import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool

from isochron.console import WorldError
from isochron.prepare.conversation import MediaError
from isochron.prepare.options import PrepareOptions
from isochron.prepare.row import RowMaker, TokenRow
from isochron.prepare.source import RowError, SourceRow

CHUNK_ROWS = 32
CHUNKS_PER_WORKER = 4  # in flight: enough to keep it busy, bounded in memory

Outcome = TokenRow | RowError | MediaError

_maker: RowMaker | None = None  # of a worker process


def make_rows(
    sources: Iterable[SourceRow], maker: RowMaker, options: PrepareOptions
) -> Iterator[tuple[SourceRow, Outcome]]:
    """Every row of `sources` with what became of it. Work is shared by options.num_workers."""
    if options.num_workers == 1:
        for source in sources:
            yield source, _outcome(maker, source)
        return
    # Not forked: a fork copies the threads of the tokenizer half.
    context = multiprocessing.get_context("spawn")
    pending: collections.deque = collections.deque()
    rows = iter(sources)
    chunks = iter(lambda: list(itertools.islice(rows, CHUNK_ROWS)), [])
    with concurrent.futures.ProcessPoolExecutor(
        options.num_workers, context, _start_worker, (options,)
    ) as pool:
        try:
            for chunk in chunks:
                pending.append((chunk, pool.submit(_outcomes, chunk)))
                if len(pending) >= CHUNKS_PER_WORKER * options.num_workers:
                    yield from _results(*pending.popleft())
            while pending:
                yield from _results(*pending.popleft())
        finally:
            for _, future in pending:
                future.cancel()


def _results(
    chunk: list[SourceRow], future: concurrent.futures.Future
) -> Iterator[tuple[SourceRow, Outcome]]:
    try:
        outcomes = future.result()
    except BrokenProcessPool as error:
        raise WorldError(f"a worker process died near {chunk[0].place}") from error
    yield from zip(chunk, outcomes, strict=True)


def _start_worker(options: PrepareOptions) -> None:
    global _maker
    _maker = RowMaker(options)


def _outcomes(chunk: list[SourceRow]) -> list[Outcome]:
    assert _maker is not None
    return [_outcome(_maker, source) for source in chunk]


def _outcome(maker: RowMaker, source: SourceRow) -> Outcome:
    if source.problem:
        return RowError(source.problem)
    try:
        return maker.row(source.columns)
    except (RowError, MediaError) as error:
        return error
