#include "isochron/engine/model/mask_stream.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "isochron/core/json.h"

namespace isochron {
namespace {

struct Name {
  std::int64_t seed = 42;
  std::int64_t step = 7;
  std::int64_t row = 100;
  std::int64_t position = 5;
  std::int64_t layer = 3;
  MaskedInput input = MaskedInput::gate_up;
};

// Which of the first `width` features are kept.
std::vector<bool> kept(const Name& name, double probability, std::int64_t width) {
  const std::uint64_t token =
      token_stream(step_stream(name.seed, name.step), name.row, name.position);
  const std::uint64_t stream = number_at(token, input_index(name.layer, name.input));
  std::vector<bool> result;
  for (std::int64_t i = 0; i < width; ++i) {
    const std::uint64_t number = number_at(stream, static_cast<std::uint64_t>(i / 2));
    result.push_back(half_of(number, i) >= drop_limit(probability));
  }
  return result;
}

TEST(MaskStream, ANumberIsThatOfSplitMix64WithoutTheOnesBefore) {
  // The vector that the authors publish.
  EXPECT_EQ(number_at(1234567, 0), 6457827717110365317ull);
  EXPECT_EQ(number_at(1234567, 1), 3203168211198807973ull);
  EXPECT_EQ(number_at(1234567, 2), 9817491932198370423ull);
  for (const std::uint64_t seed : {0ull, 1ull, ~0ull}) {
    Random random(seed);
    for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(number_at(seed, i), random.next());
  }
}

TEST(MaskStream, MasksAreThoseOfTheirDefinitionInWords) {
  std::ifstream file(ISOCHRON_SOURCE_FOLDER "/tests/reference/mask_golden.json");
  std::stringstream text;
  text << file.rdbuf();
  const Json cases = parse_json(text.str(), "mask_golden.json");
  ASSERT_EQ(cases.size(), 60);
  const std::array<std::string, 4> inputs = {"qkv", "output", "gate_up", "down"};
  for (const Json& wanted : cases) {
    const auto input = std::find(inputs.begin(), inputs.end(), wanted.at("input"));
    const Name name = {.seed = wanted.at("seed"),
                       .step = wanted.at("step"),
                       .row = wanted.at("row"),
                       .position = wanted.at("position"),
                       .layer = wanted.at("layer"),
                       .input = static_cast<MaskedInput>(input - inputs.begin())};
    const std::string expected = wanted.at("kept");
    std::string actual;
    for (const bool is_kept :
         kept(name, wanted.at("probability"), static_cast<std::int64_t>(expected.size()))) {
      actual += is_kept ? '1' : '0';
    }
    EXPECT_EQ(actual, expected) << wanted;
  }
}

TEST(MaskStream, LimitsAreExactAtTheEnds) {
  EXPECT_EQ(drop_limit(0), INT32_MIN);
  EXPECT_EQ(drop_limit(0.5), 0);
  EXPECT_EQ(drop_limit(std::nextafter(1.0, 0.0)), INT32_MAX);
}

// Means and variances over tokens and over features are those of independent draws.
TEST(MaskStream, DropsTheShareThatItPromises) {
  constexpr std::int64_t tokens = 2000;
  constexpr std::int64_t width = 100;
  for (const double probability : {0.01, 0.1, 0.5, 0.9}) {
    SCOPED_TRACE(probability);
    const double variance = probability * (1 - probability);
    double total = 0;
    double squares_of_tokens = 0;
    std::vector<double> of_feature(width, 0);
    for (std::int64_t t = 0; t < tokens; ++t) {
      double of_token = 0;
      const auto mask = kept({.position = t}, probability, width);
      for (std::size_t i = 0; i < mask.size(); ++i) {
        of_token += mask[i] ? 0 : 1;
        of_feature[i] += mask[i] ? 0 : 1;
      }
      total += of_token;
      squares_of_tokens += std::pow(of_token - width * probability, 2);
    }
    EXPECT_NEAR(total / (tokens * width), probability, 4 * std::sqrt(variance / (tokens * width)));
    EXPECT_NEAR(squares_of_tokens / tokens / (width * variance), 1, 0.2);
    double squares_of_features = 0;
    for (const double count : of_feature) {
      squares_of_features += std::pow(count - tokens * probability, 2);
    }
    EXPECT_NEAR(squares_of_features / width / (tokens * variance), 1, 0.6);
  }
}

// The correlation of the masks of many tokens with those of tokens that differ in one thing.
double correlation(const std::function<Name(Name)>& other, std::int64_t shift = 0) {
  constexpr double probability = 0.3;
  constexpr std::int64_t tokens = 1000;
  constexpr std::int64_t width = 100;
  double sum = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const Name name = {.row = t / 50, .position = t % 50};
    const auto first = kept(name, probability, width);
    const auto second = kept(other(name), probability, width + shift);
    for (std::size_t i = 0; i < first.size(); ++i) {
      const bool b = second[i + static_cast<std::size_t>(shift)];
      sum += ((first[i] ? 1 : 0) - (1 - probability)) * ((b ? 1 : 0) - (1 - probability));
    }
  }
  return sum / (tokens * width * probability * (1 - probability));
}

TEST(MaskStream, MasksOfDifferentNamesHaveNothingInCommon) {
  // Four standard deviations of 100,000 independent pairs.
  constexpr double limit = 0.0127;
  EXPECT_NEAR(correlation([](Name name) { return name; }), 1, 0.02);
  const std::vector<std::pair<const char*, std::function<Name(Name)>>> others = {
      {"seed", [](Name name) { return ++name.seed, name; }},
      {"step", [](Name name) { return ++name.step, name; }},
      {"row", [](Name name) { return name.row += 20, name; }},
      {"position", [](Name name) { return name.position += 50, name; }},
      {"layer", [](Name name) { return ++name.layer, name; }},
      {"input", [](Name name) { return name.input = MaskedInput::down, name; }},
      {"seed and step", [](Name name) { return ++name.seed, --name.step, name; }},
      {"row and position", [](Name name) { return name.row += 21, name.position -= 1, name; }},
      {"seed for step", [](Name name) { return std::swap(name.seed, name.step), name; }},
      {"layer for position",
       [](Name name) { return std::swap(name.layer, name.position), ++name.row, name; }}};
  for (const auto& [what, other] : others) {
    EXPECT_LT(std::abs(correlation(other)), limit) << what;
  }
  for (const std::int64_t shift : {1, 2, 64}) {
    EXPECT_LT(std::abs(correlation([](Name name) { return name; }, shift)), limit) << shift;
  }
}

}  // namespace
}  // namespace isochron
