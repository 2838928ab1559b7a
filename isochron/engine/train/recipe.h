#pragma once

#include <span>
#include <string>
#include <string_view>

#include "isochron/engine/checkpoint/checkpoint_options.h"
#include "isochron/engine/data/data_options.h"
#include "isochron/engine/train/execution_options.h"
#include "isochron/engine/train/horizon.h"
#include "isochron/engine/train/learning_rate.h"
#include "isochron/engine/train/model_options.h"
#include "isochron/engine/train/trainer_options.h"

namespace isochron {

// All that a run is asked for. The options stand beside their owners; a key of the file is the key
// of a field, `group.name`.
struct Recipe {
  DataOptions data;
  ModelOptions model;
  ExecutionOptions engine;
  OptimOptions optim;
  TrainerOptions trainer;
  HorizonOptions horizon;
  CheckpointOptions checkpoint;
};

// Calls `visit` with each options struct of a recipe, in the order of the written file.
template <class AnyRecipe, class Visit>
void for_each_options(AnyRecipe& recipe, Visit visit) {
  visit(recipe.data);
  visit(recipe.model);
  visit(recipe.engine);
  visit(recipe.optim);
  visit(recipe.trainer);
  visit(recipe.horizon);
  visit(recipe.checkpoint);
}

// The recipe of a YAML text with `overrides` ("key=value") on top; what neither names keeps its
// default. `${trainer.project_name}` and `${trainer.experiment_name}` in the run folder are filled
// in, and gradient checkpointing is resolved into engine.recompute.
//
// Throws std::invalid_argument, naming the key, its value and what is allowed, for text that is not
// YAML or uses aliases or tags, an unknown key (with the nearest known one), a key of verl for a
// feature that does not exist, a value of another type or outside its range, values that contradict
// each other, and one whose feature is not executed.
[[nodiscard]] Recipe read_recipe(std::string_view yaml_text,
                                 std::span<const std::string> overrides = {});

// Every key with its value, as YAML. Reading it gives an equal recipe.
[[nodiscard]] std::string to_yaml(const Recipe& recipe);

}  // namespace isochron
