"""First-fit decreasing: what pack() must never be worse than."""


def first_fit_decreasing(lengths, capacity):
    """The number of micro-batches: longest first, each into the first one with room."""
    rooms = []
    for length in sorted(lengths, reverse=True):
        for i, room in enumerate(rooms):
            if room >= length:
                rooms[i] -= length
                break
        else:
            rooms.append(capacity - length)
    return len(rooms)
