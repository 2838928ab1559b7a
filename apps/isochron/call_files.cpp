#include "apps/isochron/call_files.h"

#include <algorithm>
#include <filesystem>

#include "apps/isochron/output_file.h"
#include "isochron/core/require.h"

namespace isochron {

namespace {

namespace fs = std::filesystem;

fs::path real_path(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  const fs::path real = fs::weakly_canonical(whole, error);
  return error ? whole.lexically_normal() : real;
}

// Through links of either kind. Devices and pipes are no files that could be lost.
bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (!fs::exists(a, error) || !fs::exists(b, error)) return real_path(a) == real_path(b);
  return fs::equivalent(a, b, error) && fs::is_regular_file(a, error);
}

bool is_overwritten(const std::string& input, const std::string& output) {
  std::error_code error;
  if (!fs::is_directory(input, error)) return is_same_file(input, output);
  const fs::path file = real_path(output);
  const fs::path below = file.lexically_relative(real_path(input));
  const bool is_inside = !below.empty() && *below.begin() != "..";
  return is_inside && fs::is_regular_file(file, error) && file.extension() != ".html";
}

std::string shown(const std::string& path) { return path == "-" ? path : '"' + path + '"'; }

}  // namespace

void require_separate(const CallFiles& files, std::string_view where) {
  const auto is_stream = [](const CallFile& file) { return file.path == "-"; };
  require(std::count_if(files.inputs.begin(), files.inputs.end(), is_stream) <= 1, where,
          "standard input is given more than once, must be once");
  std::vector<CallFile> outputs;
  for (const CallFile& output : files.outputs) {
    if (output.path.empty()) continue;
    for (const CallFile& other : outputs) {
      const bool is_one = is_stream(output)
                              ? is_stream(other)
                              : !is_stream(other) && is_same_file(output.path, other.path);
      require(!is_one, where, "{} and {} are both {}, must be two places", other.flag, output.flag,
              shown(output.path));
    }
    for (const CallFile& input : files.inputs) {
      if (is_stream(output) || is_stream(input) || input.path.empty()) continue;
      require(!is_overwritten(input.path, output.path), where,
              "{} is {}, which is also {}, must be another file", output.flag, shown(output.path),
              input.flag);
    }
    outputs.push_back(output);
  }
  for (const CallFile& output : outputs) require_writable(output.path);
}

}  // namespace isochron
