#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace isochron {

// A file of lines, each of one step, that a resumed run continues: lines of steps that will run
// again are cut, so that no step stands in it twice. A line is on its way to disk when write()
// returns: whoever looks sees whole lines.
class StepLines {
 public:
  // The step of a line; none for a line that belongs to no step and stays.
  using StepOf = std::function<std::optional<std::int64_t>(std::string_view line)>;

  // Keeps the lines of steps up to `last_step`; what `step_of` throws over, and a last line without
  // an end, which a crash left, are cut. Throws std::runtime_error if the file cannot be written.
  StepLines(std::filesystem::path path, std::int64_t last_step, const StepOf& step_of);

  [[nodiscard]] bool is_empty() const { return is_empty_; }
  void write(std::string_view lines);  // with their ends

 private:
  std::filesystem::path path_;
  std::ofstream stream_;
  bool is_empty_ = true;
};

}  // namespace isochron
