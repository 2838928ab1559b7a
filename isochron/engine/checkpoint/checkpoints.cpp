// Phases of a save, agreed through the store: rank 0 makes the temporary folder; every rank writes
// its parts, rank 0 the exported model too, and reports their checksums; rank 0 publishes; where
// older checkpoints are to go, every rank reads its parts back first.
//
// What is written is a copy in host memory of what changes with the next step; a save that nothing
// runs beside takes the exported weights as they are.

#include "isochron/engine/checkpoint/checkpoints.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "isochron/core/json.h"
#include "isochron/engine/checkpoint/checkpoint_folder.h"
#include "isochron/engine/checkpoint/save_agreement.h"
#include "isochron/engine/checkpoint/state_file.h"
#include "isochron/engine/model/hf_folder.h"
#include "isochron/files/mapped_file.h"
#include "isochron/files/safetensors.h"

namespace isochron {

namespace fs = std::filesystem;

namespace {

constexpr const char* where = "checkpoint";
constexpr const char* extra_name = "extra.json";
constexpr const char* hf_folder_name = "huggingface";
constexpr const char* updates_key = "num_updates";

bool is_weight(const StatePiece& piece) { return piece.kind == "master"; }

std::string part_name(Content content, std::int32_t rank) {
  return fmt::format("{}/part_{:05d}.safetensors", name_of(content), rank);
}

// The files of a manifest that lie in the folder of a part.
std::vector<fs::path> parts_of(const fs::path& checkpoint, const Manifest& manifest,
                               Content content) {
  std::vector<fs::path> paths;
  for (const StoredFile& file : manifest.files) {
    if (file.name.starts_with(fmt::format("{}/", name_of(content)))) {
      paths.push_back(checkpoint / file.name);
    }
  }
  return paths;
}

// Pieces of one part, views of the state as the given ones are.
std::vector<StatePiece> pieces_of(std::span<const StatePiece> all, Content content) {
  std::vector<StatePiece> chosen;
  std::copy_if(all.begin(), all.end(), std::back_inserter(chosen), [&](const StatePiece& piece) {
    return is_weight(piece) == (content == Content::model);
  });
  return chosen;
}

std::int64_t num_updates_in(const std::vector<fs::path>& parts) {
  const SafetensorsFile file(parts.at(0));
  const auto found = file.metadata().find(updates_key);
  const std::int64_t count =
      found == file.metadata().end() ? -1 : find_integer(found->second).value_or(-1);
  require(count >= 0, file.path().string(), "has no number of updates");
  return count;
}

// Files under a folder, named relative to `root`, in a fixed order.
std::vector<std::string> names_under(const fs::path& root, const char* folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    if (entry.is_regular_file()) names.push_back(fs::relative(entry.path(), root).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string text_of(const std::vector<StoredFile>& files) {
  return to_json(Manifest{.step = 0, .ordinal = 0, .contents = {}, .files = files});
}

void copy_to_host(std::vector<Parameter>& weights) {
  for (Parameter& weight : weights) {
    weight.value = weight.value.detach().to(at::kCPU, weight.value.scalar_type(),
                                            /*non_blocking=*/false, /*copy=*/true);
  }
}

// Reads files back from disk, not from memory, and compares.
void require_stored(const fs::path& checkpoint, const std::vector<StoredFile>& files) {
  for (const StoredFile& meant : files) {
    const fs::path path = checkpoint / meant.name;
    if (const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC); file >= 0) {
      (void)::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
      ::close(file);
    }
    if (stored_file(checkpoint, meant.name) != meant) {
      throw std::runtime_error(
          fmt::format("[{}] does not read back as it was written", path.string()));
    }
  }
}

struct ExportedModel {
  ModelConfig config;
  std::vector<Parameter> weights;
  at::ScalarType dtype;
};

}  // namespace

// All that a save needs, apart from the running state.
struct Checkpoints::Snapshot {
  std::int64_t step = 0;
  std::vector<StatePiece> pieces;
  std::int64_t num_updates = 0;
  std::optional<ExportedModel> exported;  // rank 0 alone, with hf_model
  std::string extra;
  std::shared_ptr<SaveAgreement> agreement;
};

Checkpoints::Checkpoints(fs::path run_folder, const CheckpointOptions& options, World& world,
                         fs::path model_folder)
    : run_folder_(std::move(run_folder)),
      options_(options),
      world_(world),
      model_folder_(std::move(model_folder)) {}

Checkpoints::~Checkpoints() {
  if (under_way_.valid()) under_way_.wait();
}

// The checkpoint to load, or nothing. On rank 0.
std::string Checkpoints::chosen_path(std::vector<std::string>& notices) const {
  if (options_.resume_mode == ResumeMode::disable) return "";
  if (options_.resume_from_path) {
    const fs::path path = fs::path(*options_.resume_from_path).lexically_normal();
    if (const auto damage = find_damage(path)) throw std::runtime_error(*damage);
    return path.string();
  }
  ChosenCheckpoint chosen = newest_intact(run_folder_);
  for (const std::string& damage : chosen.skipped) {
    notices.push_back(fmt::format("skipped a damaged checkpoint: {}", damage));
  }
  return chosen.path ? chosen.path->string() : "";
}

Resumed Checkpoints::resume(Engine& engine) {
  Resumed resumed;
  world_.set_activity(0, -1, "resuming");
  const fs::path path = SaveAgreement(world_, "resume").from_rank_0("choose", [&] {
    return chosen_path(resumed.notices);
  });
  if (path.empty()) return resumed;

  const Manifest manifest = read_manifest(path);
  for (const Content content : {Content::model, Content::optimizer, Content::extra}) {
    const bool is_there = std::find(manifest.contents.begin(), manifest.contents.end(), content) !=
                          manifest.contents.end();
    require(is_there || !options_.loads(content), where,
            "{} has no {}, which checkpoint.load_contents asks for", path.string(),
            name_of(content));
  }
  std::map<std::string, std::int64_t> num_elements_of;
  for (const Parameter& parameter : engine.model().parameters()) {
    num_elements_of[parameter.name] = parameter.value.numel();
  }
  const std::vector<StatePiece> all = engine.optimizer()->pieces();
  for (const Content content : {Content::model, Content::optimizer}) {
    if (!options_.loads(content)) continue;
    const std::vector<fs::path> parts = parts_of(path, manifest, content);
    std::vector<StatePiece> pieces = pieces_of(all, content);
    read_state(parts, num_elements_of, pieces);
    if (content == Content::optimizer) {
      engine.optimizer()->set_num_updates(num_updates_in(parts));
    }
  }
  engine.optimizer()->publish_weights();
  if (options_.loads(Content::extra)) {
    const MappedFile file(path / extra_name);
    resumed.extra.assign(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  }
  resumed.step = manifest.step;
  resumed.notices.push_back(fmt::format("resumed from {}", path.string()));
  return resumed;
}

void Checkpoints::save(std::int64_t step, Engine& engine, std::string extra) {
  finish();
  world_.set_activity(step, -1, "saving");
  Snapshot snapshot = {
      .step = step,
      .pieces = host_copy(engine.optimizer()->pieces()),
      .num_updates = engine.optimizer()->num_updates(),
      .exported = {},
      .extra = std::move(extra),
      .agreement = std::make_shared<SaveAgreement>(world_, fmt::format("save/{}", ++num_saves_))};
  if (world_.place().rank == 0 && options_.saves(Content::hf_model)) {
    const Decoder& model = engine.model();
    snapshot.exported = {
        .config = model.config(), .weights = model.parameters(), .dtype = model.options().dtype};
    if (options_.async_save) copy_to_host(snapshot.exported->weights);
  }
  if (!options_.async_save) return write(snapshot);
  under_way_ =
      std::async(std::launch::async, [this, moved = std::move(snapshot)] { write(moved); });
}

void Checkpoints::finish() {
  if (under_way_.valid()) under_way_.get();
}

void Checkpoints::write(const Snapshot& snapshot) {
  const std::int32_t rank = world_.place().rank;
  const fs::path temporary = temporary_path(run_folder_, snapshot.step);
  SaveAgreement& agreement = *snapshot.agreement;
  (void)agreement.from_rank_0("begin", [&] {
    begin_checkpoint(run_folder_, snapshot.step);
    return std::string();
  });

  std::vector<StoredFile> own;
  const std::vector<std::string> reports = agreement.on_every_rank("write", [&] {
    for (const Content content : {Content::model, Content::optimizer}) {
      if (!options_.saves(content)) continue;
      const std::string name = part_name(content, rank);
      fs::create_directories((temporary / name).parent_path());
      write_state(temporary / name, pieces_of(snapshot.pieces, content),
                  {{updates_key, std::to_string(snapshot.num_updates)}});
      own.push_back(stored_file(temporary, name));
    }
    if (snapshot.exported) {
      save_weights(snapshot.exported->config, snapshot.exported->weights,
                   temporary / hf_folder_name, snapshot.exported->dtype, model_folder_);
      for (const std::string& name : names_under(temporary, hf_folder_name)) {
        own.push_back(stored_file(temporary, name));
      }
    }
    return text_of(own);
  });
  (void)agreement.from_rank_0("publish", [&] {
    Manifest manifest = {
        .step = snapshot.step, .ordinal = 0, .contents = options_.save_contents, .files = {}};
    for (const std::string& report : reports) {
      for (StoredFile& file : manifest_from_json(report, where).files) {
        manifest.files.push_back(std::move(file));
      }
    }
    if (options_.saves(Content::extra)) {
      replace_file(temporary / extra_name, snapshot.extra);
      manifest.files.push_back(stored_file(temporary, extra_name));
    }
    publish_checkpoint(run_folder_, std::move(manifest));
    return std::string();
  });
  if (!options_.max_ckpt_to_keep) return;
  (void)agreement.on_every_rank("read back", [&] {
    require_stored(checkpoint_path(run_folder_, snapshot.step), own);
    return std::string();
  });
  (void)agreement.from_rank_0("retain", [&] {
    keep_newest(run_folder_, *options_.max_ckpt_to_keep);
    return std::string();
  });
}

}  // namespace isochron
