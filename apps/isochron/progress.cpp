#include "apps/isochron/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace isochron {

namespace {

constexpr std::chrono::milliseconds redraw_period{100};
constexpr std::chrono::milliseconds line_period{5000};  // a log should not drown in progress
constexpr std::int64_t bar_width = 40;

}  // namespace

Progress::Progress(std::string noun, std::int64_t total, Style style, Write write, Clock clock)
    : noun_(std::move(noun)),
      total_(total),
      style_(style),
      write_(std::move(write)),
      clock_(std::move(clock)),
      last_(clock_()) {}

Progress::~Progress() {
  if (shown_width_ > 0) write_(fmt::format("\r{:{}}\r", "", shown_width_));
}

void Progress::set_done(std::int64_t done) {
  const std::chrono::milliseconds now = clock_();
  if (now - last_ < (style_ == Style::bar ? redraw_period : line_period)) return;
  last_ = now;
  if (style_ == Style::lines) return write_(fmt::format("{} of {} {}\n", done, total_, noun_));
  const std::string line = bar(done);
  shown_width_ = line.size();
  write_(fmt::format("\r{}", line));
}

std::string Progress::bar(std::int64_t done) const {
  const auto filled = static_cast<std::size_t>(total_ > 0 ? bar_width * done / total_ : 0);
  const std::string digits = fmt::format("{}", total_);
  return fmt::format("[{}{}] {:>{}} of {} {}", std::string(filled, '#'),
                     std::string(static_cast<std::size_t>(bar_width) - filled, ' '), done,
                     digits.size(), digits, noun_);
}

Progress standard_progress(std::string noun, std::int64_t total) {
  return {std::move(noun), total,
          ::isatty(STDERR_FILENO) != 0 ? Progress::Style::bar : Progress::Style::lines,
          [](std::string_view text) {
            std::fwrite(text.data(), 1, text.size(), stderr);
            std::fflush(stderr);
          },
          [] {
            return std::chrono::duration_cast<std::chrono::milliseconds>(
                std::chrono::steady_clock::now().time_since_epoch());
          }};
}

}  // namespace isochron
