#include "isochron/engine/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "isochron/core/random.h"
#include "isochron/engine/checkpoint/xxhash64.h"
#include "tests/support/message_of.h"
#include "tests/support/mutate.h"

namespace isochron {
namespace {

using testing::HasSubstr;

std::uint64_t hash_of(std::string_view text) {
  return xxhash64(std::as_bytes(std::span(text.data(), text.size())));
}

// The vectors of the reference, one for every branch.
TEST(Xxhash64, EqualsTheReference) {
  EXPECT_EQ(hash_of(""), 0xef46db3751d8e999ull);
  EXPECT_EQ(hash_of("a"), 0xd24ec4f1a98c6e5bull);
  EXPECT_EQ(hash_of("abc"), 0x44bc2cf5ad770999ull);
  EXPECT_EQ(hash_of("Nobody inspects the spammish repetition"), 0xfbcea83c8a378bf1ull);
}

TEST(Manifest, SurvivesARoundTripAndNoChange) {
  const Manifest manifest = {.step = 7,
                             .ordinal = 3,
                             .contents = {Content::model, Content::hf_model},
                             .files = {{.name = "a/b", .bytes = 5, .hash = 0xfedcba9876543210}}};
  const std::string text = to_json(manifest);
  EXPECT_EQ(manifest_from_json(text, "it"), manifest);
  std::string other = text;
  other.replace(other.find("\"step\": 7"), 9, "\"step\": 8");
  EXPECT_EQ(message_of([&] { (void)manifest_from_json(other, "it"); }),
            "[it] the checksum of the manifest is wrong");
  Manifest outside = manifest;
  outside.files[0].name = "../b";
  EXPECT_THAT(message_of([&] { (void)manifest_from_json(to_json(outside), "it"); }),
              HasSubstr("must be a file of the checkpoint"));
  for (std::int64_t i = 0; i < fuzz_iterations(); ++i) {
    Random random(static_cast<std::uint64_t>(i));
    try {
      EXPECT_EQ(manifest_from_json(mutated(text, random), "it"), manifest) << i;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr("[it]"));
    }
  }
}

}  // namespace
}  // namespace isochron
