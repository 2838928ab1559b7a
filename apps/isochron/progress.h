#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace isochron {

// Says how far long work has come: a bar that is redrawn in place on a terminal and erased at the
// end, otherwise a plain line now and then. Work that is over soon says nothing.
class Progress {
 public:
  enum class Style { bar, lines };
  using Write = std::function<void(std::string_view)>;
  using Clock = std::function<std::chrono::milliseconds()>;  // time since any fixed moment

  // Of `total` things called `noun` ("batches").
  Progress(std::string noun, std::int64_t total, Style style, Write write, Clock clock);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void set_done(std::int64_t done);

 private:
  [[nodiscard]] std::string bar(std::int64_t done) const;

  std::string noun_;
  std::int64_t total_;
  Style style_;
  Write write_;
  Clock clock_;
  std::chrono::milliseconds last_;
  std::size_t shown_width_ = 0;  // of the bar that stands on the terminal
};

// On standard error, in the style that fits what that is.
[[nodiscard]] Progress standard_progress(std::string noun, std::int64_t total);

}  // namespace isochron
