#include "apps/isochron/progress.h"

#include <gtest/gtest.h>

namespace isochron {
namespace {

// What a progress of four batches writes when one is done every `step`.
std::string written(Progress::Style style, std::chrono::milliseconds step) {
  std::string text;
  std::chrono::milliseconds now{1'000'000};
  {
    Progress progress(
        "batches", 4, style, [&](std::string_view part) { text += part; }, [&] { return now; });
    for (std::int64_t done = 1; done <= 4; ++done) {
      now += step;
      progress.set_done(done);
    }
  }
  return text;
}

TEST(Progress, WritesALineEveryFiveSeconds) {
  EXPECT_EQ(written(Progress::Style::lines, std::chrono::milliseconds(2500)),
            "2 of 4 batches\n4 of 4 batches\n");
}

TEST(Progress, DrawsABarInPlaceAndErasesIt) {
  const std::string bar = written(Progress::Style::bar, std::chrono::milliseconds(50));
  EXPECT_EQ(bar, "\r[" + std::string(20, '#') + std::string(20, ' ') + "] 2 of 4 batches" +  //
                     "\r[" + std::string(40, '#') + "] 4 of 4 batches" +                     //
                     "\r" + std::string(57, ' ') + "\r");
}

TEST(Progress, SaysNothingOfWorkThatIsOverSoon) {
  EXPECT_EQ(written(Progress::Style::bar, std::chrono::milliseconds(20)), "");
  EXPECT_EQ(written(Progress::Style::lines, std::chrono::milliseconds(1000)), "");
}

}  // namespace
}  // namespace isochron
