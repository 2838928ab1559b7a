"""Breaks the engine in ways that a step could be wrong, and expects the tests to notice each.

    mutations.py BUILD [--jobs N] [--only TEXT ..]

Works on a copy of the tree in BUILD/mutated, which is built like BUILD. Each mutation replaces one
stretch of a source; the tests of the execution, which compare plans with the plain reference, must
then fail. Exits 1 if a mutation survives or does not apply. `make mutations` runs it.
"""

import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Mutation:
    what: str
    file: str  # under isochron/
    old: str
    new: str


MUTATIONS = [
    Mutation("no weights: a sum in place of the mean", "engine/execute/engine.cpp",
             "loss_T.mul(microbatch.weights_T.to(loss_T.scalar_type())).sum()", "loss_T.sum()"),
    Mutation("the mean over the own micro-batch", "engine/execute/engine.cpp",
             "loss_T.mul(microbatch.weights_T.to(loss_T.scalar_type())).sum()",
             "loss_T.mul(microbatch.weights_T.to(loss_T.scalar_type())).sum() / "
             "microbatch.weights_T.sum().clamp_min(1e-9)"),
    Mutation("a token is its own label", "engine/execute/microbatch.cpp",
             "label[t] = tokens[index_of(layout.target[t])];",
             "label[t] = tokens[index_of(layout.target[t] - 1)];"),
    Mutation("the mask is not shifted with the labels", "engine/execute/microbatch.cpp",
             "rows.fill_weights(sequence, index_of(layout.target[first]),",
             "rows.fill_weights(sequence, index_of(layout.target[first] - 1),"),
    Mutation("positions are those of padding", "layout/packed_layout.cpp",
             "is_real ? static_cast<std::int32_t>(position) : 0",
             "is_real ? static_cast<std::int32_t>(position - position) : 0"),
    Mutation("rows see the rows before them", "engine/execute/microbatch.cpp",
             "microbatch.input.cu_seqlens = std::move(starts);",
             "microbatch.input.cu_seqlens = {0, static_cast<std::int64_t>(num_held)};"),
    Mutation("the first micro-batch is left out", "engine/execute/engine.cpp",
             "for (const Turn& turn : turns) {\n    world_.set_activity(step, turn.slot, \"forward\");",
             "for (const Turn& turn : turns) {\n    if (&turn == &turns.front() && turns.size() > 1) "
             "continue;\n    world_.set_activity(step, turn.slot, \"forward\");"),
    Mutation("gradients are not zeroed", "engine/optim/gradient_buckets.cpp",
             "if (is_added_to) buckets_[i].gradients.zero_();", ""),
    Mutation("gradients are averaged over the ranks", "engine/optim/gradient_buckets.cpp",
             "reduced(bucket);", "buckets_[bucket].shard.div_(ranks_.size());\n    reduced(bucket);"),
    Mutation("a parameter's second gradient replaces its first", "engine/optim/gradient_buckets.cpp",
             "begin_last_backward(bool overlap) {",
             "begin_last_backward(bool overlap) {\n  for (Bucket& bucket : buckets_) "
             "bucket.gradients.zero_();"),
    Mutation("the norm is that of the own shard", "engine/optim/adamw.cpp",
             'ranks.all_reduce_sum(squares, "gradient norm");', ""),
    Mutation("the norm counts everything twice", "engine/optim/adamw.cpp",
             "return std::sqrt(squares.item<double>());",
             "return std::sqrt(2 * squares.item<double>());"),
    Mutation("nothing is clipped", "engine/optim/adamw.cpp",
             "return std::min(1.0, largest / (norm + 1e-6));", "return norm + largest > 0 ? 1.0 : 0.0;"),
    Mutation("bias correction stays at the first update", "engine/optim/adamw.cpp",
             ".num_updates = num_updates,", ".num_updates = 1,"),
    Mutation("weights do not decay", "engine/optim/adamw.cpp",
             ".weight_decay = options.weight_decay,", ".weight_decay = 0,"),
    Mutation("updated weights are not gathered", "engine/optim/adamw.cpp",
             "gathers.push_back(state.gather(state.shards[bucket]));", ""),
    Mutation("the loss is that of the own rank", "engine/execute/engine.cpp",
             "result.loss += row[rank][0];", "result.loss = row[rank][0];"),
    Mutation("masks go by the place in the batch, not by the row", "engine/execute/microbatch.cpp",
             "row[t] = rows.ids[sequence.index()];", "row[t] = sequence.value();"),
    Mutation("masks go by the place in the micro-batch", "engine/model/decoder.cpp",
             "masks = TokenMasks(dropout, input.rows_T, input.positions_T);",
             "masks = TokenMasks(dropout, input.rows_T, at::arange(num_rows, "
             "input.rows_T.options()));"),
    Mutation("masks do not change with the step", "engine/execute/engine.cpp",
             ".step = step}", ".step = step - step}"),
    Mutation("every evaluation drops inputs too", "engine/execute/engine.cpp",
             "forward(plan, turn, update, /*dropout=*/{})",
             "forward(plan, turn, update, {.probability = options_.dropout, .seed = 1, .step = step})"),
    Mutation("the last chunk of the head sends nothing back", "engine/loss/softmax_rows.cpp",
             "log_p.exp_().mul_(factor.neg());", "log_p.exp_().mul_(0);"),
    # Context parallelism. Those with a number put a defect of verl's #5057 back
    # (tests/engine/execute/context_defects_test.cpp).
    Mutation("1: a member of a group holds whole sequences", "engine/execute/microbatch.cpp",
             ".context_size = static_cast<std::int32_t>(group.ranks.size),", ".context_size = 1,"),
    Mutation("3: the loss is divided by the size of the group", "engine/execute/engine.cpp",
             "result.loss = loss_T.mul(microbatch.weights_T.to(loss_T.scalar_type())).sum();",
             "result.loss = loss_T.mul(microbatch.weights_T.to(loss_T.scalar_type())).sum() / "
             "turn.group->ranks.size;"),
    Mutation("6: training gathers the outputs of a micro-batch", "engine/execute/engine.cpp",
             "if (turns.empty()) optimizer_->begin_last_backward(/*overlap=*/false);",
             "if (turns.empty()) optimizer_->begin_last_backward(/*overlap=*/false);\n"
             "(void)gather_rows(world_, at::zeros({1000}), \"gather outputs\");"),
    Mutation("8: the size of the first group stays", "engine/execute/engine.cpp",
             "if (group.ranks.size == 1) return model_.hidden_TD(microbatch.input, dropout);",
             "static const auto first = group.ranks.size;\n"
             "  if (first == 1) return model_.hidden_TD(microbatch.input, dropout);"),
    Mutation("9: scores ignore the group", "engine/execute/engine.cpp",
             "token_outputs(hidden_TD(plan, *turn.group, microbatch, /*dropout=*/{}),",
             "token_outputs(model_.hidden_TD(microbatch.input),"),
    Mutation("a chunk does not see its own keys", "engine/context/gathered_attention.cpp",
             "begin + (chunk + 1) * chunk_size);", "begin + chunk * chunk_size + 1);"),
    Mutation("a key that two chunks see keeps one gradient", "engine/context/gathered_attention.cpp",
             "last.all.index_add_(0, seen_S_, grad_kv_S2GH);",
             "last.all.index_copy_(0, seen_S_, grad_kv_S2GH);"),
    Mutation("gradients of keys stay where they were computed", "engine/context/gathered_attention.cpp",
             "last.pending =\n        group_.reduce_scatter_sum(last.own,",
             "at::Tensor elsewhere = last.own.clone();\n    last.pending =\n"
             "        group_.reduce_scatter_sum(elsewhere,"),
    Mutation("heads come back in another order", "engine/context/head_attention.cpp",
             "copy_(received.narrow(2, first, share).transpose(0, 1));",
             "copy_(received.flip(0).narrow(2, first, share).transpose(0, 1));"),
    Mutation("blocks are averaged", "engine/model/attention_cpu.cpp",
             "return block.out * (block.lse - lse).exp_().unsqueeze(-1);",
             "return block.out * at::full_like(lse, 0.5).unsqueeze(-1);"),
    Mutation("rotary positions are those of the shard", "engine/execute/microbatch.cpp",
             "std::vector<std::int64_t> position(layout.positions.begin(), layout.positions.end());",
             "std::vector<std::int64_t> position(num_held);\n"
             "  for (std::size_t i = 0; i < num_held; ++i) position[i] = static_cast<std::int64_t>(i);"),
    Mutation("gradients are summed while others still exchange", "engine/execute/turns.cpp",
             "if (last.slot != turns.back().slot) return false;", "if (last.slot < 0) return false;"),
]  # fmt: skip


def copy_tree(to):
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in names.stdout.splitlines():
        source, target = ROOT / name, to / name
        if source.is_symlink() or not source.is_file():
            continue
        content = source.read_bytes()
        if not target.exists() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


def cached(build, name):
    text = (build / "CMakeCache.txt").read_text()
    found = re.search(rf"^{name}:\w+=(.*)$", text, re.MULTILINE)
    return found.group(1) if found else ""


def build_tests(tree, jobs):
    command = ["cmake", "--build", tree / "build", "-j", str(jobs), "--target", "execute_test"]
    return subprocess.run(command, capture_output=True, text=True)


def run_tests(tree):
    """Whether the tests pass. A mutation may hang ranks; their own limits end them."""
    command = [tree / "build/tests/engine/execute_test", "--gtest_brief=1",
               "--gtest_filter=PlanEquality.*:Context*", "--gtest_fail_fast"]  # fmt: skip
    try:
        return subprocess.run(command, capture_output=True, timeout=600).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=[""], help="those whose names hold one of these")
    arguments = parser.parse_args()
    tree = arguments.build.resolve() / "mutated"
    copy_tree(tree)
    options = [f"-D{name}={value}" for name in ("ISOCHRON_PYTHON", "GLOO_INCLUDE_FOLDER")
               if (value := cached(arguments.build, name))]  # fmt: skip
    subprocess.run(["cmake", "--preset", "engine", "-DISOCHRON_BUILD_TESTS=ON", *options], cwd=tree,
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    built = build_tests(tree, arguments.jobs)
    if built.returncode != 0 or not run_tests(tree):
        sys.exit("the tests do not pass without a mutation\n" + built.stdout[-2000:])

    num_survivors = 0
    for mutation in MUTATIONS:
        if not any(text in mutation.what for text in arguments.only):
            continue
        path = tree / "isochron" / mutation.file
        text = path.read_text()
        if text.count(mutation.old) != 1:
            outcome = f"DOES NOT APPLY: {text.count(mutation.old)} places in {mutation.file}"
        else:
            begin = time.monotonic()
            path.write_text(text.replace(mutation.old, mutation.new))
            built = build_tests(tree, arguments.jobs)
            if built.returncode != 0:
                outcome = "DOES NOT COMPILE\n" + built.stdout[-1500:]
            else:
                outcome = "SURVIVES" if run_tests(tree) else "noticed"
            path.write_text(text)
            outcome += f" ({time.monotonic() - begin:.0f} s)"
        num_survivors += not outcome.startswith("noticed")
        print(f"{mutation.what}: {outcome}", flush=True)
    return 1 if num_survivors else 0


if __name__ == "__main__":
    sys.exit(main())
