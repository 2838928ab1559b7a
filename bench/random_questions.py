"""Questions with random options on real lengths: the corners that no table has a row for."""

import random

K = 1024
RANKS = [1, 2, 3, 6, 7, 8, 12, 16, 31, 48, 61, 64, 100, 128, 250, 256]
COUNTS = [1, 3, 10, 16, 48, 64, 128, 256, 500, 1024]
CAPACITIES = [4 * K, 8 * K, 16 * K, 32 * K]


def random_question(seed, sources, cost):
    """What plan_bench is asked for, with a batch of consecutive lengths."""
    draw = random.Random(seed)

    def one_in(n):
        return draw.randrange(n) == 0

    ranks, count, capacity = draw.choice(RANKS), draw.choice(COUNTS), draw.choice(CAPACITIES)
    if one_in(12):
        count = 4096
    stages = draw.choice([1, 1, 1, 2, 4, 8])
    virtual = draw.choice([1, 1, 2]) if stages > 1 else 1
    divisors = [size for size in range(1, ranks + 1) if ranks % size == 0]
    context = draw.choice(["dynamic", "dynamic", "dynamic:any", "dynamic:any", "static"])
    size = draw.choice(divisors) if one_in(2) else 1
    options = {"context": f"static:{size}" if context == "static" else context}
    options["sync"] = draw.choice(["step", "step", "microbatch"])
    options["pass"] = draw.choice(["train", "train", "forward"])
    options["keep_groups"] = draw.choice(["none", "none", "none", "rank", "microbatch"])
    if options["sync"] == "step" and stages == 1 and one_in(3):
        options["counts"] = "equal"
    if one_in(6):
        options["tensor_parallel"] = draw.choice([2, 4])
    if one_in(6):
        options["max_sequences"] = draw.choice([1, 2, 8])
    if one_in(8):
        options["short"] = draw.choice(["error", "drop"])
    if context != "static" and one_in(8):
        options["max_context_size"] = draw.choice(divisors)
    machine = {}
    if one_in(6):
        speeds = draw.choice([(1, 0.8), (1, 0.9, 0.5), (1, 1, 1, 1, 1, 1, 1, 0.7)])
        machine["rank_speed"] = [draw.choice(speeds) for _ in range(ranks)]
    if stages > 1 and one_in(4):
        shares = [1 + draw.random() for _ in range(stages * virtual)]
        machine["shares"] = [share / sum(shares) for share in shares]
    if stages > 1 and one_in(4):
        machine["transfer_ns"] = draw.choice([100_000, 2_000_000])
    name = draw.choice(sorted(sources))
    lengths = sources[name]
    start = draw.randrange(max(1, len(lengths) - count))
    widest = size if context == "static" else options.get("max_context_size", ranks)
    longest = capacity * widest * 3 // 4
    answers = draw.choice([4, 8, 16])
    if options["keep_groups"] == "microbatch":
        longest //= answers
    batch = [min(length, longest) for length in lengths[start : start + count]]
    question = {
        "cost": cost, "ranks": ranks, "capacity": capacity, "stages": stages, "virtual": virtual,
        "options": options, "lengths": batch, **machine,
    }  # fmt: skip
    if options["keep_groups"] != "none":
        question["groups"] = [place // answers for place in range(len(batch))]
    return name, question


def wider_questions(question):
    """Questions that every plan of this one answers, or a part of it, by what is different."""
    options, ranks = question["options"], question["ranks"]
    if "short" in options:  # what is dropped, or fills the ranks, depends on all of them
        return

    def other(**changes):
        return {**question, "options": {**options, **changes}}

    twice = {**question, "ranks": 2 * ranks}
    if "rank_speed" in question:
        twice["rank_speed"] = question["rank_speed"] + ranks * [1]
    yield "twice the ranks", twice
    yield "twice the capacity", {**question, "capacity": 2 * question["capacity"]}
    count = len(question["lengths"]) * 9 // 10
    if count > 0:
        fewer = {key: question[key][:count] for key in ("lengths", "groups") if key in question}
        yield "nine tenths of the sequences", {**question, **fewer}
    if options["keep_groups"] != "none":
        yield "prompts may part", other(keep_groups="none")
    if options.get("max_sequences"):
        yield "more sequences a micro-batch", other(max_sequences=0)
    if options["context"].startswith("static"):
        yield "dynamic, not static", other(context="dynamic")
    if options["context"] == "dynamic":
        yield "any size, not aligned", other(context="dynamic:any")


def asked_in_words(name, question):
    """All that is not the default."""
    words = [f"{len(question['lengths'])} {name}"]
    words.append(f"{question['ranks']} ranks of {question['capacity'] // K}k")
    if question["stages"] > 1:
        words.append(f"{question['stages']} stages")
    if question["virtual"] > 1:
        words.append(f"{question['virtual']} virtual")
    defaults = {"sync": "step", "pass": "train", "keep_groups": "none"}
    for key, value in question["options"].items():
        if value != defaults.get(key):
            words.append(value if key in ("context", "sync", "pass") else f"{key} {value}")
    words += [key for key in ("rank_speed", "shares", "transfer_ns") if key in question]
    return ", ".join(str(word) for word in words)
