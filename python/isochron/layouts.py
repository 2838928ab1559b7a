"""Which tokens a rank holds when sequences are packed, and where each comes from.

>>> from isochron import layouts
>>> layouts.packed_layout([5, 3], context_size=2, context_rank=0).source
array([ 0,  1, -1, -1,  5, -1], dtype=int64)
"""

from isochron._planner import PackedLayout, packed_layout, padded_length

__all__ = ["PackedLayout", "packed_layout", "padded_length"]
