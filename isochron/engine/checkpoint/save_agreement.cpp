#include "isochron/engine/checkpoint/save_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

namespace isochron {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds shortest_pause{1};
constexpr std::chrono::milliseconds longest_pause{50};

// A report is "+" and a text, or "-" and why there is none.
std::string report_of(const std::function<std::string()>& work) {
  try {
    return "+" + work();
  } catch (const std::exception& error) {
    return std::string("-") + error.what();
  }
}

std::string text_of(const std::string& report) {
  if (report.starts_with('+')) return report.substr(1);
  throw std::runtime_error(report.substr(1));
}

}  // namespace

SaveAgreement::SaveAgreement(World& world, std::string name)
    : world_(world), name_(std::move(name)) {}

std::string SaveAgreement::key(const std::string& phase, std::int32_t rank) const {
  return fmt::format("{}/{}/{}", name_, phase, rank);
}

std::string SaveAgreement::await(const std::string& phase, std::int32_t rank) const {
  const auto timeout = world_.options().timeout;
  const auto deadline = Clock::now() + timeout;
  for (auto pause = shortest_pause; Clock::now() < deadline;
       pause = std::min(2 * pause, longest_pause)) {
    if (const auto report = world_.find(key(phase, rank))) return *report;
    std::this_thread::sleep_for(pause);
  }
  throw std::runtime_error(fmt::format("[checkpoint] rank {} has not said \"{}\" within {:.1f} s",
                                       rank, phase,
                                       std::chrono::duration<double>(timeout).count()));
}

std::string SaveAgreement::from_rank_0(const std::string& phase,
                                       const std::function<std::string()>& work) {
  if (world_.place().rank != 0) return text_of(await(phase, 0));
  const std::string report = failure_.empty() ? report_of(work) : "-" + failure_;
  world_.set(key(phase, 0), report);
  return text_of(report);
}

std::vector<std::string> SaveAgreement::on_every_rank(const std::string& phase,
                                                      const std::function<std::string()>& work) {
  const std::string own = report_of(work);
  std::vector<std::string> texts;
  if (world_.place().rank != 0) {
    world_.set(key(phase, world_.place().rank), own);
    return texts;
  }
  for (std::int32_t rank = 0; rank < world_.place().size; ++rank) {
    const std::string report = rank == 0 ? own : await(phase, rank);
    texts.push_back(report.substr(1));
    if (report.starts_with('-') && failure_.empty()) failure_ = texts.back();
  }
  return texts;
}

}  // namespace isochron
