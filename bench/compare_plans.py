"""Measures step plans on real lengths: time, distance to the bound, Megatron's scheduler beside them.

    compare_plans.py --program build-bench/bench/plan_bench [--lengths FOLDER] [--quick] [--only PART ..]

Prints a table per question and whether the targets are met, and writes them to
bench/results/plans_<hardware>_<yyyymm>.md with commit, command, date and hardware. Every plan, the
rival's included, is accepted by isochron/check. Exits 1 if a target is missed.
"""

import argparse
import collections
import math
import pathlib
import statistics
import sys

import plan_measures
from page import Page, Program, lognormal, read_groups, read_lengths
from plan_measures import (
    FILES, NOT_FELT_MS, ROWS, UNFELT, Aim, Bench, K, Measured, ask_rival, cost_model, cut, is_real, measure, ratio,
)  # fmt: skip
from random_questions import asked_in_words, random_question, wider_questions


def aligned_aim(name, ranks, capacity, batches):
    if name == "Wikipedia":
        return Aim(1.0025, 1.005, 3, 12)
    highest = 1.003 if (name, capacity) == ("Azure", 8 * K) else 1.001
    return Aim(1.0002, highest, 2, 10) if is_real(name) else None


def is_open(name, ranks, capacity):
    return (name, ranks, capacity) == ("Mooncake", 64, 8 * K)


def any_aim(name, ranks, capacity, batches):
    if is_open(name, ranks, capacity):
        return Aim(1.002, 1.01, 5, 30)
    return Aim(None, 1.005, 5, 30) if is_real(name) else None


def fits(capacity, batches):
    return all(length <= capacity for batch in batches for length in batch)


def slots_aim(name, ranks, capacity, batches):
    if not is_real(name):
        return None
    if fits(capacity, batches):
        return Aim(1.0005, 1.002, 5, 20)
    return Aim(1.02, 1.04, 20, 50)


def step(bench, _):
    aligned = bench.mode(
        "Step, aligned groups",
        "Targets: Mooncake, Azure 1.0002 (1.001; Azure 64 / 8k 1.003) in 2 ms, 10 at 256 ranks; Wikipedia "
        "1.0025 (1.005) in 3, 12 ms; never behind Megatron, ahead on average.",
        {"context": "dynamic"}, aligned_aim,
    )  # fmt: skip
    wikipedia = [measured for row, measured in aligned.items() if row[0] == "Wikipedia"]
    bench.overall("Wikipedia", wikipedia, 1.002)
    anywhere = bench.mode(
        "Step, groups of any size",
        "Targets: at most 1.005 (Mooncake 64 / 8k 1.002, 1.01), 5 ms, 30 at 256 ranks; never slower than "
        "aligned ones.",
        {"context": "dynamic:any"}, any_aim, never_slower_than=aligned,
    )  # fmt: skip
    stated = [measured for row, measured in anywhere.items() if not is_open(*row[:3])]
    bench.overall("Any size but Mooncake 64 / 8k", stated, 1.001)


def microbatch(bench, _):
    aligned = None
    for title, context in [("aligned groups", "dynamic"), ("groups of any size", "dynamic:any")]:
        results = bench.mode(
            f"Microbatch, {title}",
            "Targets: where every sequence fits one rank 1.0005 (1.002) in 5 ms, 20 at 256 ranks; else 1.02 "
            "(1.04) in 20, 50 ms; never behind Megatron, ahead on average; any size never slower than aligned.",
            {"context": context, "sync": "microbatch"}, slots_aim, never_slower_than=aligned,
        )  # fmt: skip
        aligned = results
        mixed = [
            results[name, ranks, capacity, count]
            for name, ranks, capacity, count, batches in bench.batches()
            if is_real(name) and not fits(capacity, batches)
        ]
        bench.overall("Mixed", mixed, 1.012)


def one_rank_a_sequence(bench, _):
    bench.table(
        "Microbatch, static:1",
        "Lengths cut to the capacity. Targets: 1.002, Mooncake 1.01 (1.02); 20 ms, 45 at 256 ranks.",
        "target",
    )
    for name, lengths in bench.sources.items():
        for ranks, capacity, count in bench.rows:
            batches = cut([min(length, capacity) for length in lengths], ranks, capacity, count)
            if not batches:
                continue
            options = {"context": "static:1", "sync": "microbatch"}
            ours = measure(bench.planner, batches, bench.question(ranks, capacity, options))
            aim = Aim(1.01, 1.02, 20, 45) if name == "Mooncake" else Aim(1.002, None, 20, 45)
            verdict = bench.page.judge(ours.meets(aim, ranks)) if is_real(name) else "-"
            bench.row(name, ranks, capacity, count, ours, verdict)


def numbered(names):
    numbers = {}
    return [numbers.setdefault(name, len(numbers)) for name in names]


def answers_of(folder):
    """All 64 answers of each prompt, and the first 8: lengths with the group of each."""
    path = folder / "alpaca_eval_groups.csv"
    if not path.exists():
        return []
    rows = list(zip(read_lengths(path), read_groups(path)))
    seen = {}
    first_8 = []
    for length, group in rows:
        seen[group] = seen.get(group, 0) + 1
        if seen[group] <= 8:
            first_8.append((length, group))
    return [("64 answers", rows), ("8 answers", first_8)]


def measure_kept(bench, source, ranks, capacity, count, options, **more):
    starts = range(0, len(source) - count + 1, count)
    batches = [source[start : start + count] for start in starts][: plan_measures.MOST_BATCHES]
    return batches and measure(
        bench.planner,
        [[length for length, _ in batch] for batch in batches],
        bench.question(
            ranks, capacity, {"context": "dynamic", "keep_groups": "rank", **options}, **more
        ),
        [numbered(group for _, group in batch) for batch in batches],
    )


KEPT_AIM = Aim(1.002, 1.005, 5, 20)


def kept_groups(bench, folder):
    answers = answers_of(folder)
    if not answers:
        return
    bench.table(
        "Step, prompt groups kept on ranks",
        "alpaca_eval_groups.csv: all 64 answers of a prompt, or the first 8. Targets: 1.002 (1.005) in 5 ms, "
        "20 at 256 ranks.",
        "target",
    )
    for name, source in answers:
        for ranks, capacity, count in bench.rows:
            ours = capacity == 16 * K and measure_kept(bench, source, ranks, capacity, count, {})
            if ours:
                bench.row(
                    name,
                    ranks,
                    capacity,
                    count,
                    ours,
                    bench.page.judge(ours.meets(KEPT_AIM, ranks)),
                )
    bench.table(
        "Prompt groups kept on ranks in other modes",
        "The same batches. The bound of any size sees which prompts share ranks where ranks have at "
        "most one each. Target: about 1 % of the step.",
        "mode",
        "target",
    )
    modes = [
        ("microbatch", {"sync": "microbatch"}, {}), ("equal counts", {"counts": "equal"}, {}),
        ("any size", {"context": "dynamic:any"}, {}), ("static:8", {"context": "static:8"}, {}),
        ("4 stages", {}, {"stages": 4}),
    ]  # fmt: skip
    for mode, options, more in modes:
        for name, source in answers:
            for ranks, capacity, count in [(16, 16 * K, 256), (64, 16 * K, 1024)]:
                ours = measure_kept(bench, source, ranks, capacity, count, options, **more)
                verdict = bench.page.judge(ours.meets(UNFELT, ranks))
                bench.row(name, ranks, capacity, count, ours, mode, verdict)


def long_tails(bench, _):
    """Prompts of which some answers are many times as long as the others."""
    bench.table(
        "Prompts with long tails kept on ranks",
        "16 consecutive lengths are a prompt. Target: about 1 % of the step.", "mode", "target",
    )  # fmt: skip
    modes = [
        ("step", {}, {}),
        ("microbatch", {"sync": "microbatch"}, {}),
        ("4 stages", {}, {"stages": 4}),
    ]
    for mode, options, more in modes:
        for name, lengths in bench.sources.items():
            for ranks, capacity, count in [(8, 16 * K, 256), (64, 16 * K, 1024)]:
                batches = cut(lengths, ranks, capacity, count)
                asked = {"context": "dynamic", "keep_groups": "rank", **options}
                question = bench.question(ranks, capacity, asked, **more)
                prompts = [[place // 16 for place in range(count)]] * len(batches)
                ours = measure(bench.planner, batches, question, prompts)
                verdict = bench.page.judge(ours.meets(UNFELT, ranks))
                bench.row(name, ranks, capacity, count, ours, mode, verdict)


def other_modes(bench, _):
    def unfelt(*_):
        return UNFELT

    text = "Target: about 1 % of the step; never behind Megatron, ahead on average."
    bench.mode(
        "Step, equal counts, aligned groups", text, {"context": "dynamic", "counts": "equal"}, unfelt,
    )  # fmt: skip
    bench.mode(
        "Step, tensor parallel 2, aligned groups", text,
        {"context": "dynamic", "tensor_parallel": 2}, unfelt,
    )  # fmt: skip
    for title, text, options, more in [
        ("Step, 4 stages", "1F1B.", {}, {}),
        ("Step, 4 stages, 2 virtual", "Interleaved 1F1B, groups of 4 slots.", {}, {"virtual": 2}),
        ("Microbatch, 4 stages", "1F1B; all ranks wait for each other in every slot.", {"sync": "microbatch"}, {}),
        ("Step, 4 stages, forward only", "Log-probs and values.", {"pass": "forward"}, {}),
    ]:  # fmt: skip
        bench.mode(
            f"{title}, aligned groups", f"{text} Target: about 1 % of the step.",
            {"context": "dynamic", **options}, unfelt, more={"stages": 4, **more}, rival=False,
        )  # fmt: skip


def prime_ranks(bench, _):
    bench.table(
        "Prime numbers of ranks, groups of any size",
        "Target: about 1 % of the step; never behind Megatron where it does not fail, ahead on average.",
        "sync", "Megatron", "max", "we are", "target",
    )  # fmt: skip
    for name, lengths in bench.sources.items():
        for ranks, count in [(7, 64), (13, 256), (61, 1024)]:
            capacity = 16 * K
            batches = cut(lengths, ranks, capacity, count)
            for sync in ("step", "microbatch") if batches else ():
                options = {"context": "dynamic:any", "sync": sync}
                question = bench.question(ranks, capacity, options)
                ours = measure(bench.planner, batches, question)
                cells, is_ahead = ask_rival(bench.planner, batches, question).compare(ours)
                verdict = bench.page.judge(is_ahead and ours.meets(UNFELT, ranks))
                bench.row(name, ranks, capacity, count, ours, sync, *cells, verdict)


def two_exchanges(bench, folder):
    """A built-in cost model, whose groups gather keys or exchange heads."""
    bench.table(
        "Costs of Qwen3-8B on H100, two exchanges",
        "The built-in model qwen3-8b_h100. Targets as above.", "mode", "target",
    )  # fmt: skip
    modes = [
        ("step", {"context": "dynamic"}, aligned_aim), ("step, any size", {"context": "dynamic:any"}, any_aim),
        ("microbatch", {"context": "dynamic", "sync": "microbatch"}, slots_aim),
        ("microbatch, any size", {"context": "dynamic:any", "sync": "microbatch"}, slots_aim),
        ("4 stages", {"context": "dynamic"}, None),
    ]  # fmt: skip
    rows = [(16, 16 * K, 256), (64, 16 * K, 1024)]
    more = {"cost": "qwen3-8b_h100"}
    for mode, options, aim_of in modes:
        for name, lengths in bench.sources.items():
            for ranks, capacity, count in rows:
                batches = cut(lengths, ranks, capacity, count)
                if not batches:
                    continue
                stages = {"stages": 4} if mode == "4 stages" else {}
                ours = measure(
                    bench.planner,
                    batches,
                    bench.question(ranks, capacity, options, **stages, **more),
                )
                aim = aim_of(name, ranks, capacity, batches) if aim_of else UNFELT
                verdict = bench.page.judge(ours.meets(aim, ranks)) if aim else "-"
                bench.row(name, ranks, capacity, count, ours, mode, verdict)
    for name, source in answers_of(folder):
        for ranks, capacity, count in rows:
            ours = measure_kept(bench, source, ranks, capacity, count, {}, **more)
            verdict = bench.page.judge(ours.meets(KEPT_AIM, ranks))
            bench.row(name, ranks, capacity, count, ours, "step, kept on ranks", verdict)


def every_mode(bench, _):
    """All that can be asked for together, on numbers of ranks whose groups do not nest: one that has
    many divisors, and a prime."""
    for ranks, most_batches in ((12, 4), (13, 2)):
        every_mode_on(bench, ranks, most_batches)


def every_mode_on(bench, ranks, most_batches):
    capacity, count = 16 * K, 256
    bench.table(
        f"Every mode on {ranks} ranks",
        f"At most {most_batches} batches. Prompts are 4 consecutive lengths; whole ones in a micro-batch have lengths of up to "
        "20,000. Two sequences: at most in a micro-batch. Slow: every third rank has 80 % of the speed. Uneven: the last chunk of layers is half as long again. "
        "Transfers take 2 ms. Target: about 1 % of the step.",
        "context", "sync", "stages", "policy", "target",
    )  # fmt: skip
    policies = [
        ("-", {}), ("equal counts", {"counts": "equal"}), ("kept on ranks", {"keep_groups": "rank"}),
        ("in one micro-batch", {"keep_groups": "microbatch"}), ("tensor parallel 2", {"tensor_parallel": 2}),
        ("no placeholders", {"short": "error", "counts": "equal"}), ("two sequences", {"max_sequences": 2}),
        ("slow", {}), ("uneven", {}), ("transfers", {}),
    ]  # fmt: skip

    def machine_of(policy, num_chunks):
        whole = num_chunks + 0.5
        return {
            "slow": {"rank_speed": [0.8 if rank % 3 == 0 else 1 for rank in range(ranks)]},
            "uneven": {"shares": [1 / whole] * (num_chunks - 1) + [1.5 / whole]},
            "transfers": {"transfer_ns": 2_000_000},
        }.get(policy, {})

    for context in ("dynamic", "dynamic:any"):
        for sync in ("step", "microbatch"):
            for stages, virtual in ((1, 1), (4, 1), (4, 2)):
                for policy, options in policies:
                    if policy == "equal counts" and (sync == "microbatch" or stages > 1):
                        continue  # the same as without
                    if policy in ("uneven", "transfers") and stages == 1:
                        continue
                    for name, lengths in bench.sources.items():
                        longest = (
                            20_000 if policy == "in one micro-batch" else ranks * capacity * 7 // 8
                        )
                        batches = cut(
                            [min(length, longest) for length in lengths], ranks, capacity, count
                        )[:most_batches]
                        if not batches:
                            continue
                        has_prompts = "keep_groups" in options
                        prompts = [[place // 4 for place in range(count)]] * len(batches)
                        asked = {"context": context, "sync": sync, **options}
                        machine = machine_of(policy, stages * virtual)
                        question = bench.question(
                            ranks, capacity, asked, stages=stages, virtual=virtual, **machine
                        )
                        ours = measure(
                            bench.planner, batches, question, prompts if has_prompts else None
                        )
                        shape = f"{stages}, {virtual} virtual" if virtual > 1 else stages
                        verdict = bench.page.judge(ours.meets(UNFELT, ranks))
                        bench.row(
                            name,
                            ranks,
                            capacity,
                            count,
                            ours,
                            context,
                            sync,
                            shape,
                            policy,
                            verdict,
                        )


def tiny(bench, _):
    bench.table(
        "10 sequences on 8 ranks",
        "Targets: 5 ms, about 1 % of the step. What exhaustive search finds is compared in tests/plan/few_sequences_test.cpp.",
        "sync", "context", "target",
    )  # fmt: skip
    ranks, capacity, count = 8, 16 * K, 10
    for name, lengths in bench.sources.items():
        batches = cut(lengths, ranks, capacity, count)
        for sync in ("step", "microbatch"):
            for context in ("dynamic", "dynamic:any"):
                options = {"context": context, "sync": sync}
                ours = measure(bench.planner, batches, bench.question(ranks, capacity, options))
                verdict = bench.page.judge(ours.meets(Aim(None, None, 5, 5), ranks))
                bench.row(name, ranks, capacity, count, ours, sync, context, verdict)


def sparse(bench, _):
    bench.table(
        "As many sequences as ranks", "Short steps. Target: about 1 % of the step, or a millisecond.", "mode", "target",
    )  # fmt: skip
    modes = [
        ("step", {"context": "dynamic"}, {}),
        ("equal counts, any size", {"context": "dynamic:any", "counts": "equal"}, {}),
        ("microbatch", {"context": "dynamic", "sync": "microbatch"}, {}),
        ("microbatch, any size", {"context": "dynamic:any", "sync": "microbatch"}, {}),
        ("4 stages", {"context": "dynamic"}, {"stages": 4}),
        ("4 stages, 2 virtual", {"context": "dynamic"}, {"stages": 4, "virtual": 2}),
        ("4 stages, forward only", {"context": "dynamic", "pass": "forward"}, {"stages": 4}),
    ]  # fmt: skip
    capacity = 16 * K
    for mode, options, more in modes:
        for name, lengths in bench.sources.items():
            for ranks in (16, 64, 256):
                batches = cut(lengths, ranks, capacity, ranks)
                ours = measure(
                    bench.planner, batches, bench.question(ranks, capacity, options, **more)
                )
                verdict = bench.page.judge(ours.meets(UNFELT, ranks))
                bench.row(name, ranks, capacity, ranks, ours, mode, verdict)


def large(bench, _):
    ranks, capacity, count = 4096, 16 * K, 65_536
    bench.table(
        "65,536 sequences on 4,096 ranks, aligned groups",
        "One run. Targets: 1.005 step, 1.03 microbatch, about a second (1.5 s).", "sync", "target",
    )  # fmt: skip
    for name, lengths in bench.sources.items():
        for batch in cut(lengths, ranks, capacity, count)[:1]:
            for sync, limit in [("step", 1.005), ("microbatch", 1.03)]:
                options = {"context": "dynamic", "sync": sync}
                question = bench.question(ranks, capacity, options)
                answer = bench.planner.ask(verb="plan", lengths=batch, **question)
                ours = Measured(
                    [answer["predicted_step_ns"]], [answer["lower_bound_ns"]],
                    [answer["times_us"][0] / 1e3],
                )  # fmt: skip
                is_met = ours.ratios[0] <= limit and ours.ms <= 1500
                bench.row(name, ranks, capacity, count, ours, sync, bench.page.judge(is_met))


# Model, limit in thousands of tokens, tokens a rank holds, published speed-up over a static size.
FLEXSP = [
    ("7b", 192, 6449, 1.72), ("7b", 384, 6407, 1.46), ("13b", 192, 6483, 1.59),
    ("13b", 384, 6427, 1.43), ("30b", 192, 6627, 1.64), ("30b", 384, 6538, 1.53),
]  # fmt: skip


def flexsp(bench, _):
    """The setting of FlexSP: 64 A100, batches of 512 padded to 128, number 3 to 42."""
    page = bench.page
    if "Wikipedia" not in bench.sources:
        return
    lengths, num_batches = bench.sources["Wikipedia"], 2 * plan_measures.MOST_BATCHES
    page.add()
    page.add("## FlexSP's setting")
    page.add()
    page.add(
        "64 ranks, microbatch, Wikipedia padded to 128, 512 a batch, batches 3 to 42. Speed-up: total step time "
        "of our best static plans over that of dynamic ones. Target: never slower than a static size, nor from 1 "
        "than from 2."
    )
    page.table(
        "model, limit", "batches", "over static:64, sizes from 2", "from 1", "over the best static",
        "published", "over bound", "median ms", "target",
    )  # fmt: skip
    for model, limit, capacity, published in FLEXSP:
        padded = [math.ceil(length / 128) * 128 for length in lengths]
        kept = [length for length in padded if length <= limit * 1000 - 128]
        batches = [kept[start : start + 512] for start in range(0, len(kept) - 511, 512)]
        batches = batches[3 : 3 + num_batches]
        question = dict(cost=cost_model(f"flexsp_{model}"), ranks=64, capacity=capacity)

        def times_of(options):
            """Step times of all batches, None if one has no plan; and the measured plans."""
            answers = []
            for batch in batches:
                asked = dict(options, sync="microbatch")
                answers.append(
                    bench.planner.ask(verb="plan", lengths=batch, options=asked, **question)
                )
                if answers[-1]["status"] not in ("optimal", "feasible"):
                    return None, answers
            return [answer["predicted_step_ns"] for answer in answers], answers

        static = {}
        for size in (64, 32, 16, 8, 4, 2, 1):
            times, _ = times_of({"context": f"static:{size}"})
            if times is None:
                break  # a smaller one holds even less
            static[size] = times
        from_1, answers = times_of({"context": "dynamic"})
        from_2, _ = times_of({"context": "dynamic", "min_context_size": 2})
        best = min(static, key=lambda size: sum(static[size]))
        slower = [times for size, times in static.items() if size > 1]
        is_met = all(a <= b for times in slower for a, b in zip(from_2, times)) and all(
            a <= b for times in [from_2, *static.values()] for a, b in zip(from_1, times)
        )
        page.row(
            f"{model}, {limit}k", len(batches), f"{sum(static[64]) / sum(from_2):.2f}",
            f"{sum(static[64]) / sum(from_1):.2f}",
            f"{sum(static[best]) / sum(from_2):.2f} (static:{best})", published,
            ratio(statistics.mean(a["predicted_step_ns"] / a["lower_bound_ns"] for a in answers)),
            f"{statistics.median(a['times_us'][0] for a in answers) / 1e3:.1f}", page.judge(is_met),
        )  # fmt: skip


def corners(bench, _):
    """What nobody made a row for: all options, drawn at random."""
    page = bench.page
    num_questions = 500 if plan_measures.ARE_TIMES_JUDGED else 20
    asked = []  # allowed times that planning took, milliseconds, the answer, words
    for seed in range(num_questions):
        name, question = random_question(seed, bench.sources, bench.cost)
        answer = bench.planner.ask(verb="plan", runs=3, **question)
        if answer["status"] not in ("optimal", "feasible"):
            continue
        ms = statistics.median(answer["times_us"]) / 1e3
        allowed = max(NOT_FELT_MS, UNFELT.share * answer["lower_bound_ns"] / 1e6)
        asked.append((ms / allowed, ms, answer, asked_in_words(name, question)))
    asked.sort(key=lambda each: -each[0])
    ratios = [answer["predicted_step_ns"] / answer["lower_bound_ns"] for _, _, answer, _ in asked]
    page.add()
    page.add("## Random questions")
    page.add()
    page.add(
        f"{num_questions} combinations of options on 1 to 256 ranks (bench/random_questions.py), median of 3 runs; "
        f"{len(asked)} have a plan. Of these {sum(times <= 1 for times, *_ in asked)} are planned in about 1 % of the step "
        f"or a millisecond, {sum(times <= 2 for times, *_ in asked)} in twice that, {sum(times <= 4 for times, *_ in asked)} in "
        f"four times; steps end {statistics.median(ratios):.4f} (median), {statistics.mean(ratios):.4f} (mean) over the bound. "
        "Not judged. Those that take longest for their step:"
    )
    page.table("planning ms", "step ms", "of step", "over bound", "question")
    for _, ms, answer, words in asked[:12]:
        step_ms, bound_ms = answer["predicted_step_ns"] / 1e6, answer["lower_bound_ns"] / 1e6
        page.row(
            f"{ms:.2f}", f"{step_ms:.1f}", f"{ms / bound_ms:.1%}", ratio(step_ms / bound_ms), words
        )


def relations(bench, _):
    """What has more room is not slower: no oracle is needed to see that."""
    page = bench.page
    num_questions = 500 if plan_measures.ARE_TIMES_JUDGED else 10
    ratios = collections.defaultdict(list)  # and words, by relation
    for seed in range(num_questions):
        name, question = random_question(seed, bench.sources, bench.cost)
        if len(question["lengths"]) > 1024:
            continue
        step = bench.planner.ask(verb="plan", runs=1, **question)["predicted_step_ns"]
        for relation, wider in wider_questions(question) if step else ():
            answer = bench.planner.ask(verb="plan", runs=1, **wider)
            ratios[relation].append(
                (answer["predicted_step_ns"] / step, asked_in_words(name, question))
            )
    page.add()
    page.add("## What cannot be slower")
    page.add()
    page.add(
        "The random questions of up to 1,024 sequences, each beside one with more room, which all of its plans answer. "
        "Target: at most one or 3 % of them slower by more than 0.3 %, none by more than 15 %."
    )
    page.table("with", "questions", "slower", "at most", "mean", "that is", "target")
    for relation, pairs in ratios.items():
        times = [times for times, _ in pairs]
        slower = sum(times > 1.003 for times in times)
        worst, words = max(pairs)
        is_met = slower <= max(1, 0.03 * len(times)) and 0 < min(times) and worst <= 1.15
        page.row(relation, len(times), slower, ratio(worst), ratio(statistics.mean(times)),
                 words if worst > 1.003 else "", page.judge(is_met))  # fmt: skip


PARTS = {  # questions, in the order of the page; asked with the folder of length files
    "step": step, "microbatch": microbatch, "static": one_rank_a_sequence, "kept_groups": kept_groups,
    "long_tails": long_tails, "modes": other_modes, "primes": prime_ranks, "two_exchanges": two_exchanges,
    "every_mode": every_mode, "tiny": tiny, "sparse": sparse, "large": large, "flexsp": flexsp,
    "corners": corners, "relations": relations,
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="plan_bench")
    parser.add_argument("--lengths", default="", help="a folder of length files")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="few batches, no judgement of times, and no file is written",
    )
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, help="these tables, and no file is written"
    )
    arguments = parser.parse_args()
    is_quick = arguments.quick
    is_written = not is_quick and not arguments.only
    if is_quick:
        plan_measures.MOST_BATCHES, plan_measures.MIN_TIMES = 2, 1
        plan_measures.ARE_TIMES_JUDGED = False

    folder = pathlib.Path(arguments.lengths)
    sources = {
        name: read_lengths(folder / file)
        for name, file in FILES.items()
        if arguments.lengths and (folder / file).exists()
    }
    if not sources:
        sources = {"lognormal": lognormal(20_480, 7.0, 1.2, 120_000, 0)}
    page = Page()
    page.head("Step plans beside Megatron's scheduler", is_quick=not is_written)
    page.add(
        "- cost model 7b_h100 unless another is named; processor time of one thread with the bound, median of at least 20 runs"
    )
    page.add(
        "- of step: that time over the step that the bound allows; about 1 % (1.25 %), or a millisecond, is a target of all, but of 4,096 ranks"
    )
    page.add(
        "- N ranks, C tokens a rank, n sequences; batches of consecutive lengths, at most 20 a row"
    )
    page.add(
        "- Megatron: the packing-aware scheduler of its development branch, lengths padded as groups need"
    )
    bench = Bench(Program(arguments.program), page, sources, ROWS[:4] if is_quick else ROWS)
    for name in arguments.only or [name for name in PARTS if not (is_quick and name == "large")]:
        PARTS[name](bench, folder)
    if not is_quick and bench.shares:
        over = [share for share in bench.shares if share > 0.01]
        page.add()
        page.add(
            f"{len(over)} of {len(bench.shares)} rows take more than 1 % of the step, at most {max(bench.shares):.2%}."
        )
    page.close("plans", is_quick=not is_written)
    return 0 if all(page.targets) else 1


if __name__ == "__main__":
    sys.exit(main())
