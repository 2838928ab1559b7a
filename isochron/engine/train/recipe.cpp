// From text to a recipe: the YAML tree is flattened to `group.name`, overrides replace what stands
// there, every key finds its field, and what fields cannot say by themselves is checked last.

#include "isochron/engine/train/recipe.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include "isochron/core/json.h"
#include "isochron/engine/train/foreign_keys.h"
#include "isochron/engine/train/yaml_document.h"

namespace isochron {

namespace {

constexpr const char* where = "recipe";
constexpr std::int64_t many = std::int64_t{1} << 40;  // no count of a recipe is larger

using FlatValues = std::map<std::string, Json>;

std::vector<std::string> known_keys() {
  std::vector<std::string> keys;
  Recipe recipe;
  for_each_options(recipe, [&]<class Options>(const Options&) {
    for (std::string& key : field_keys<Options>()) keys.push_back(std::move(key));
  });
  return keys;
}

bool is_group(const std::vector<std::string>& keys, const std::string& name) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](const std::string& key) { return key.starts_with(name + "."); });
}

void flatten(const Json& value, const std::string& path, FlatValues& values) {
  if (value.is_object() && (!value.empty() || path.empty())) {
    for (const auto& [name, member] : value.items()) {
      flatten(member, path.empty() ? name : path + "." + name, values);
    }
    return;
  }
  require(values.emplace(path, value).second, where, "{} is given twice", path);
}

void set_override(const std::string& text, FlatValues& values) {
  const std::size_t equals = text.find('=');
  require(equals != std::string::npos && equals > 0, where, "\"{}\" must be key=value", text);
  const std::string_view value = std::string_view(text).substr(equals + 1);
  // Brackets and quotes are YAML; anything else is a scalar as it stands, whatever is in it.
  const bool is_yaml =
      !value.empty() && std::string_view("[{\"'").find(value[0]) != std::string_view::npos;
  values[text.substr(0, equals)] =
      is_yaml ? parse_yaml(value, text.substr(0, equals)) : plain_scalar(value);
}

void require_known(const FlatValues& values, const std::vector<std::string>& keys) {
  for (const auto& [key, value] : values) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    if (is_group(keys, key)) {
      require(value.is_null() || (value.is_object() && value.empty()), where,
              "{} is {}, must be a group of keys", key, shown(value));
      continue;
    }
    if (const auto reason = find_foreign_key(key)) {
      reject(where, "{} does not exist here: {}", key, *reason);
    }
    reject(where, "unknown key {}, did you mean \"{}\"?", shown(key), nearest_name(key, keys));
  }
}

Recipe recipe_of(const FlatValues& values) {
  Recipe recipe;
  for_each_options(recipe, [&]<class Options>(Options& options) {
    Options::describe([&]<class T>(const Field<Options, T>& field) {
      const auto found = values.find(std::string(field.key));
      if (found == values.end()) return;
      const Json& value = found->second;
      if (value.is_string()) {
        require_listed(where, field.key, value.get_ref<const std::string&>(), field.values);
      }
      options.*field.member = field_from_json<T>(value, where, field.key);
    });
  });
  return recipe;
}

void replace(std::string& text, const std::string& name, const std::string& value) {
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at)) {
    text.replace(at, name.size(), value);
    at += value.size();
  }
}

void resolve(Recipe& recipe) {
  std::string& folder = recipe.trainer.default_local_dir;
  replace(folder, "${trainer.project_name}", recipe.trainer.project_name);
  replace(folder, "${trainer.experiment_name}", recipe.trainer.experiment_name);
  require(folder.find("${") == std::string::npos, where,
          "trainer.default_local_dir is \"{}\", may name ${{trainer.project_name}} and "
          "${{trainer.experiment_name}} alone",
          folder);
  if (const auto checkpointing = recipe.model.enable_gradient_checkpointing) {
    const Recompute asked = *checkpointing ? Recompute::full : Recompute::none;
    require(recipe.engine.recompute == Recompute::none || recipe.engine.recompute == asked, where,
            "model.enable_gradient_checkpointing is {}, contradicts engine.recompute = {}",
            *checkpointing, name_of(recipe.engine.recompute));
    recipe.engine.recompute = asked;
  }
}

template <class T>
void require_between(const char* key, T value, T low, T high) {
  require(value >= low && value <= high, where, "{} is {}, must be from {} to {}", key, value, low,
          high);
}

void require_all_or_count(const char* key, std::int64_t value) {
  require(value == -1 || value >= 1, where, "{} is {}, must be -1 (all) or at least 1", key, value);
}

void require_valid(const DataOptions& data) {
  require(!data.train_files.empty(), where, "data.train_files is missing");
  for (const std::string& path : data.train_files) {
    require(!path.empty(), where, "data.train_files holds an empty path");
  }
  require_all_or_count("data.train_max_samples", data.train_max_samples);
  require_all_or_count("data.val_max_samples", data.val_max_samples);
  // The batch is planned with 32-bit ids.
  require_between<std::int64_t>("data.train_batch_size", data.train_batch_size, 1, INT32_MAX);
  require_between("data.max_token_len_per_gpu", data.max_token_len_per_gpu, Tokens{1}, max_length);
  require_between("data.micro_batch_size_per_gpu", data.micro_batch_size_per_gpu, 1, INT32_MAX);
  require_between("data.max_length", data.max_length, Tokens{1}, max_length);
}

void require_valid(const OptimOptions& optim) {
  require_between("optim.lr", optim.lr, 0.0, 1e6);
  require_between("optim.lr_warmup_steps", optim.lr_warmup_steps, std::int64_t{-1}, many);
  require_between("optim.lr_warmup_steps_ratio", optim.lr_warmup_steps_ratio, 0.0, 1.0);
  require(optim.total_training_steps == -1 ||
              (optim.total_training_steps >= 1 && optim.total_training_steps <= many),
          where, "optim.total_training_steps is {}, must be -1 (those of the run) or at least 1",
          optim.total_training_steps);
  require_between("optim.min_lr_ratio", optim.min_lr_ratio, 0.0, 1.0);
  require_between("optim.num_cycles", optim.num_cycles, 0.0, 1e6);
  require(optim.betas.size() == 2, where, "optim.betas has {} numbers, must be 2",
          optim.betas.size());
  for (const double beta : optim.betas) {
    require(beta >= 0 && beta < 1, where, "optim.betas has {}, must be at least 0 and below 1",
            beta);
  }
  require_between("optim.weight_decay", optim.weight_decay, 0.0, 1e6);
  require(optim.clip_grad > 0 && std::isfinite(optim.clip_grad), where,
          "optim.clip_grad is {}, must be above 0", optim.clip_grad);
  require(!optim.override_optimizer_config, where,
          "optim.override_optimizer_config is \"{}\", must be null",
          optim.override_optimizer_config.value_or(""));
}

void require_valid(const ModelOptions& model) {
  require(!model.path.empty(), where, "model.path is missing");
  require(model.dropout >= 0 && model.dropout < 1, where,
          "model.dropout is {}, must be at least 0 and below 1", model.dropout);
}

void require_valid(const ExecutionOptions& engine) {
  require_between("engine.loss_chunk", engine.loss_chunk, Tokens{1}, max_length);
  require_between("engine.threads", engine.threads, 0, 4096);
  require_between("engine.collective_timeout_s", engine.collective_timeout_s, 1.0, 1e6);
  require_between("engine.context_parallel_size", engine.context_parallel_size, 1, max_ranks);
  require_between("engine.max_context_groups", engine.max_context_groups, 1, max_ranks);
  if (engine.max_seqlen_per_dp_cp_rank) {
    require_between("engine.max_seqlen_per_dp_cp_rank", *engine.max_seqlen_per_dp_cp_rank,
                    Tokens{1}, max_length);
  }
}

// Who shares a sequence, and how much of it a rank may hold.
void require_valid_context(const Recipe& recipe) {
  const ExecutionOptions& engine = recipe.engine;
  const DataOptions& data = recipe.data;
  if (engine.dynamic_context_parallel) {
    require(engine.context_parallel_size == 1, where,
            "engine.context_parallel_size is {}, must be 1 with engine.dynamic_context_parallel: "
            "sizes follow from the lengths",
            engine.context_parallel_size);
    require(data.use_dynamic_bsz, where,
            "data.use_dynamic_bsz is false, must be true with engine.dynamic_context_parallel: "
            "lengths decide what a micro-batch holds");
    return;
  }
  require(!engine.max_seqlen_per_dp_cp_rank, where,
          "engine.max_seqlen_per_dp_cp_rank is {}, needs engine.dynamic_context_parallel = true",
          engine.max_seqlen_per_dp_cp_rank.value_or(0));
  require(engine.context_parallel_sizes == "dynamic", where,
          "engine.context_parallel_sizes is {}, needs engine.dynamic_context_parallel = true",
          engine.context_parallel_sizes);
  // How long a row may be depends on the ranks where several share it.
  require(engine.context_parallel_size > 1 || !data.use_dynamic_bsz ||
              data.truncation == Truncation::error || data.max_length <= data.max_token_len_per_gpu,
          where, "data.max_length is {}, must be at most data.max_token_len_per_gpu = {}",
          data.max_length, data.max_token_len_per_gpu);
}

void require_valid(const TrainerOptions& trainer) {
  for (const std::string& logger : trainer.logger) {
    require(logger == "console", where,
            "trainer.logger has \"{}\", must be console; `python -m isochron.track` forwards "
            "metrics.jsonl to others",
            logger);
  }
  require(!trainer.default_local_dir.empty(), where,
          "trainer.default_local_dir is empty, must be a folder");
}

void require_valid(const HorizonOptions& horizon, const DataOptions& data) {
  require_between("trainer.total_epochs", horizon.total_epochs, std::int64_t{1}, many);
  if (horizon.total_training_steps) {
    require_between("trainer.total_training_steps", *horizon.total_training_steps, std::int64_t{1},
                    many);
  }
  const bool has_val_files = data.val_files && !data.val_files->empty();
  require(has_val_files || !horizon.test_freq.is_ever(), where,
          "trainer.test_freq is {}, needs data.val_files",
          yaml_value(field_to_json(horizon.test_freq)));
}

void require_valid(const CheckpointOptions& checkpoint) {
  require(!checkpoint.save_contents.empty(), where, "checkpoint.save_contents is empty");
  require(!checkpoint.load_contents ||
              std::find(checkpoint.load_contents->begin(), checkpoint.load_contents->end(),
                        Content::hf_model) == checkpoint.load_contents->end(),
          where, "checkpoint.load_contents has hf_model, must be model, optimizer or extra");
  require(checkpoint.resume_mode == ResumeMode::disable || checkpoint.loads(Content::model), where,
          "a run resumes with its weights: checkpoint.{} must hold model, or trainer.resume_mode "
          "be disable",
          checkpoint.load_contents ? "load_contents" : "save_contents");
  if (checkpoint.max_ckpt_to_keep) {
    require_between("trainer.max_ckpt_to_keep", *checkpoint.max_ckpt_to_keep, 1, INT32_MAX);
  }
  const bool has_path =
      checkpoint.resume_from_path.has_value() && !checkpoint.resume_from_path->empty();
  require(has_path || checkpoint.resume_mode != ResumeMode::resume_path, where,
          "trainer.resume_mode is resume_path, needs trainer.resume_from_path");
  require(!has_path || checkpoint.resume_mode != ResumeMode::disable, where,
          "trainer.resume_from_path is \"{}\", contradicts trainer.resume_mode = disable",
          checkpoint.resume_from_path.value_or(""));
}

// What the schema knows and no code executes: the default alone.
template <class Options>
void require_defaults(const Options& options, const std::set<std::string_view>& keys,
                      const char* feature) {
  const Options defaults;
  Options::describe([&](const auto& field) {
    const Json value = field_to_json(options.*field.member);
    const Json standard = field_to_json(defaults.*field.member);
    require(!keys.contains(field.key) || value == standard, where,
            "{} is {}, must be {}: {} not executed yet", field.key, yaml_value(value),
            yaml_value(standard), feature);
  });
}

void require_executed(const Recipe& recipe) {
  require_defaults(
      recipe.engine,
      {"engine.pipeline_model_parallel_size", "engine.virtual_pipeline_model_parallel_size",
       "engine.microbatch_group_size_per_vp_stage"},
      "pipelines are");
  require_defaults(recipe.model,
                   {"model.lora_rank", "model.lora_alpha", "model.lora_dropout", "model.use_rslora",
                    "model.target_modules", "model.exclude_modules", "model.lora_adapter_path"},
                   "LoRA is");
  require_defaults(recipe.checkpoint, {"checkpoint.save_lora_only"}, "LoRA is");
  require_defaults(recipe.trainer, {"trainer.profile_interval"}, "profiling is");
}

}  // namespace

Recipe read_recipe(std::string_view yaml_text, std::span<const std::string> overrides) {
  const Json document = parse_yaml(yaml_text, where);
  require(document.is_object() || document.is_null(), where, "the text is {}, must be a mapping",
          shown(document));
  FlatValues values;
  if (document.is_object()) flatten(document, "", values);
  for (const std::string& text : overrides) set_override(text, values);
  require_known(values, known_keys());

  Recipe recipe = recipe_of(values);
  resolve(recipe);
  require_valid(recipe.data);
  require_valid(recipe.model);
  require_valid(recipe.engine);
  require_valid_context(recipe);
  require_valid(recipe.optim);
  require_valid(recipe.trainer);
  require_valid(recipe.horizon, recipe.data);
  require_valid(recipe.checkpoint);
  require_executed(recipe);
  return recipe;
}

std::string to_yaml(const Recipe& recipe) {
  std::vector<std::string> groups;
  std::map<std::string, std::string> lines_of;
  for_each_options(recipe, [&]<class Options>(const Options& options) {
    Options::describe([&](const auto& field) {
      const std::size_t dot = field.key.find('.');
      const std::string group(field.key.substr(0, dot));
      if (!lines_of.contains(group)) groups.push_back(group);
      lines_of[group] += fmt::format("  {}: {}\n", field.key.substr(dot + 1),
                                     yaml_value(field_to_json(options.*field.member)));
    });
  });
  std::string text;
  for (const std::string& group : groups) text += group + ":\n" + lines_of[group];
  return text;
}

}  // namespace isochron
