// Compares with the answers of verl itself, which make_reference.py has written down.

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "isochron/balance/karmarkar_karp.h"
#include "isochron/core/json.h"
#include "isochron/pack/verl_microbatches.h"
#include "tests/support/ids_of.h"

namespace isochron {
namespace {

using Lists = std::vector<std::vector<std::int32_t>>;

const Json& golden() {
  static const Json document = [] {
    std::ifstream file(ISOCHRON_TEST_FOLDER "/reference/verl_golden.json");
    std::stringstream text;
    text << file.rdbuf();
    return parse_json(text.str(), "verl_golden.json");
  }();
  return document;
}

template <class T>
void expect_partitions(const Json& wanted) {
  const auto values = wanted.at("values").get<std::vector<T>>();
  const auto parts = wanted.at("parts").get<std::int32_t>();
  const auto sizes = *find_value<PartSizes>(wanted.at("sizes").get<std::string>());
  const std::span<const T> view(values);
  ASSERT_EQ(ids_of(karmarkar_karp(view, parts, sizes)), wanted.at("raw").get<Lists>());
  ASSERT_EQ(ids_of(balanced_partitions(view, parts, sizes)), wanted.at("sorted").get<Lists>());
}

TEST(VerlGolden, PartitionsAreEqual) {
  for (const Json& wanted : golden().at("partitions")) {
    SCOPED_TRACE(wanted.dump());
    const auto dtype = wanted.at("dtype").get<std::string>();
    if (dtype == "int64") expect_partitions<std::int64_t>(wanted);
    if (dtype == "float32") expect_partitions<float>(wanted);
    if (dtype == "float64") expect_partitions<double>(wanted);
  }
}

VerlMicrobatchOptions options_of(const Json& json) {
  VerlMicrobatchOptions options;
  VerlMicrobatchOptions::describe([&](const auto& field) {
    const auto value = json.find(std::string(field.key));
    if (value == json.end()) return;
    auto& member = options.*field.member;
    using T = std::remove_reference_t<decltype(member)>;
    if constexpr (is_optional<T>) {
      member = value->template get<typename T::value_type>();
    } else if constexpr (!std::is_enum_v<T>) {
      member = value->template get<T>();
    }
  });
  return options;
}

// Micro-batches or the error, in the form of the file.
Json answer_of(const Json& lengths, const VerlMicrobatchOptions& options,
               const VerlAgreement& agreement = {}) {
  Json answer;
  answer["lengths"] = lengths;
  try {
    answer["microbatches"] =
        ids_of(verl_microbatches(lengths.get<std::vector<Tokens>>(), options, agreement));
  } catch (const PeerAssertionError& error) {
    answer["error"] = "AssertionError";
    answer["message"] = error.what();
  } catch (const PeerValueError& error) {
    answer["error"] = "ValueError";
    answer["message"] = error.what();
  }
  return answer;
}

TEST(VerlGolden, MicrobatchesAndErrorsAreEqual) {
  for (Json wanted : golden().at("microbatches")) {
    SCOPED_TRACE(wanted.dump());
    const VerlMicrobatchOptions options = options_of(wanted.at("options"));
    wanted.erase("options");
    ASSERT_EQ(answer_of(wanted.at("lengths"), options), wanted);
  }
}

// An all-reduce between two threads.
class TwoRanks {
 public:
  void all_reduce_max(std::span<std::int64_t> numbers) {
    std::unique_lock lock(mutex_);
    const std::int64_t round = round_;
    if (++num_arrived_ == 1) {
      largest_.assign(numbers.begin(), numbers.end());
      arrived_.wait(lock, [&] { return round_ != round; });
    } else {
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        largest_[i] = std::max(largest_[i], numbers[i]);
      }
      num_arrived_ = 0;
      agreed_ = largest_;  // the other may still be asleep when the next round begins
      ++round_;
      arrived_.notify_all();
    }
    std::copy(agreed_.begin(), agreed_.end(), numbers.begin());
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::int64_t round_ = 0;
  int num_arrived_ = 0;
  std::vector<std::int64_t> largest_;
  std::vector<std::int64_t> agreed_;
};

TEST(VerlGolden, RanksThatAgreeGiveEqualAnswers) {
  for (const Json& wanted : golden().at("agreed")) {
    SCOPED_TRACE(wanted.dump());
    TwoRanks group;
    const VerlAgreement agreement = {
        [&](std::span<std::int64_t> numbers) { group.all_reduce_max(numbers); }};
    const VerlMicrobatchOptions options = options_of(wanted.at("options"));
    std::vector<Json> answers(2);
    const auto run = [&](std::size_t rank) {
      answers[rank] = answer_of(wanted.at("ranks").at(rank).at("lengths"), options, agreement);
    };
    std::thread other(run, 1);
    run(0);
    other.join();
    ASSERT_EQ(answers[0], wanted.at("ranks").at(0));
    ASSERT_EQ(answers[1], wanted.at("ranks").at(1));
  }
}

}  // namespace
}  // namespace isochron
