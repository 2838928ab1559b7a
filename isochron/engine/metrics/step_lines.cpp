#include "isochron/engine/metrics/step_lines.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace isochron {

namespace {

// Copies the lines that stay; whether there were any.
bool copy_lines(std::istream& from, std::ostream& to, std::int64_t last_step,
                const StepLines::StepOf& step_of) {
  bool is_any = false;
  for (std::string line; std::getline(from, line);) {
    if (from.eof()) break;  // no end: cut off while it was written
    try {
      const auto step = step_of(line);
      if (step && *step > last_step) continue;
    } catch (const std::exception&) {
      continue;
    }
    to << line << '\n';
    is_any = true;
  }
  return is_any;
}

}  // namespace

StepLines::StepLines(std::filesystem::path path, std::int64_t last_step, const StepOf& step_of)
    : path_(std::move(path)) {
  if (std::filesystem::exists(path_)) {
    std::filesystem::path temporary = path_;
    temporary += ".tmp";
    {
      std::ifstream from(path_, std::ios::binary);
      std::ofstream to(temporary, std::ios::binary);
      is_empty_ = !copy_lines(from, to, last_step, step_of);
      if (!to.flush()) {
        throw std::runtime_error(fmt::format("[{}] cannot be written", temporary.string()));
      }
    }
    std::filesystem::rename(temporary, path_);
  }
  stream_.open(path_, std::ios::binary | std::ios::app);
  if (!stream_) throw std::runtime_error(fmt::format("[{}] cannot be written", path_.string()));
}

void StepLines::write(std::string_view lines) {
  stream_ << lines << std::flush;
  if (!stream_) throw std::runtime_error(fmt::format("[{}] cannot be written", path_.string()));
  is_empty_ = is_empty_ && lines.empty();
}

}  // namespace isochron
