#include <gtest/gtest.h>

#include <string>

#include "isochron/core/field_text.h"
#include "isochron/core/json.h"
#include "isochron/core/policy.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

struct SampleOptions {
  bool is_even = false;
  std::int32_t count = 3;
  std::optional<std::int32_t> limit = {};
  Oversize oversize = Oversize::error;
  double share = 0.5;
  std::string title = "none";
  Short short_ = Short::error;

  template <class Row>
  static void describe(Row row) {
    using Self = SampleOptions;
    row(Field{"is_even", &Self::is_even, "whether"});
    row(Field{"count", &Self::count, "how many"});
    row(Field{"limit", &Self::limit, "at most"});
    row(Field{"oversize", &Self::oversize, "what then"});
    row(Field{"share", &Self::share, "how much"});
    row(Field{"title", &Self::title, "called"});
    row(Field{"short", &Self::short_, "which", "error|drop"});
  }
};

std::string message_of_json(std::string_view text) {
  return message_of([&] { (void)options_from_json<SampleOptions>(parse_json(text, "it"), "it"); });
}

TEST(Fields, SurviveARoundTripThroughJson) {
  SampleOptions options;
  options.limit = 7;
  options.oversize = Oversize::alone;
  const Json json = options_to_json(options);
  EXPECT_EQ(
      json.dump(),
      R"({"is_even":false,"count":3,"limit":7,"oversize":"alone","share":0.5,"title":"none","short":"error"})");
  EXPECT_EQ(options_to_json(options_from_json<SampleOptions>(json, "it")), json);
  EXPECT_EQ(options_to_json(SampleOptions{})["limit"], nullptr);
}

TEST(Fields, NameTheKeyTheValueAndWhatIsAllowed) {
  EXPECT_EQ(message_of_json(R"({"cuont":3})"),
            "[it] unknown key \"cuont\", did you mean \"count\"?");
  EXPECT_EQ(message_of_json(R"({"count":"x"})"),
            "[it] count is \"x\", must be an integer from -2147483648 to 2147483647");
  EXPECT_EQ(message_of_json(R"({"count":99999999999})"),
            "[it] count is 99999999999, must be an integer from -2147483648 to 2147483647");
  EXPECT_EQ(
      message_of_json(R"({"count":18446744073709551615})"),
      "[it] count is 18446744073709551615, must be an integer from -2147483648 to 2147483647");
  EXPECT_EQ(message_of_json(R"({"oversize":"big"})"),
            "[it] oversize is \"big\", must be one of error, alone, widen");
  EXPECT_EQ(message_of_json(R"({"oversize":1})"),
            "[it] oversize is 1, must be one of error, alone, widen");
  EXPECT_EQ(message_of_json(R"({"short":"empty"})"),
            "[it] short is \"empty\", must be one of error, drop");
  EXPECT_EQ(message_of_json(R"({"is_even":1})"), "[it] is_even is 1, must be true or false");
  EXPECT_EQ(message_of_json(R"({"title":[1]})"), "[it] title is a list of 1, must be a string");
  EXPECT_EQ(message_of_json(R"([])"), "[it] options is a list of 0, must be an object");
}

struct LimitedOptions {
  std::optional<std::int32_t> level = {};

  template <class Row>
  static void describe(Row row) {
    row(Field{"level", &LimitedOptions::level, "how high", "", IntegerRange{1, 9}});
  }
};

TEST(Fields, NameTheIntegersThatMakeSense) {
  const auto read = [](std::string_view text) {
    return options_from_json<LimitedOptions>(parse_json(text, "it"), "it");
  };
  EXPECT_EQ(message_of([&] { (void)read(R"({"level":1.5})"); }),
            "[it] level is 1.5, must be an integer from 1 to 9");
  EXPECT_EQ(read(R"({"level":10})").level, 10);  // what that means, the owner of the option says
}

TEST(Json, RejectsWhatOtherReadersAcceptSilently) {
  EXPECT_EQ(message_of_json("{\"count\":1,\n\"count\":2}"),
            "[it] the key \"count\" occurs twice in one object");
  EXPECT_EQ(message_of_json(R"({"a\nb":1,"a\nb":2})"),
            R"([it] the key "a\nb" occurs twice in one object)");
  EXPECT_EQ(message_of_json(R"({"coun\u001b":1})"),
            R"([it] unknown key "coun\u001b", did you mean "count"?)");
  EXPECT_EQ(message_of_json("{\n\"count\":}"),
            "[it] line 2 is not valid JSON at byte 11 of the text");
  EXPECT_EQ(message_of_json(std::string(100000, '[')), "[it] the JSON nests deeper than 64 levels");
  EXPECT_EQ(message_of_json("{\"share\":1e999}"),
            "[it] the JSON holds a number outside the range of a double");
}

TEST(Fields, ReadFromText) {
  EXPECT_EQ(value_from_text<std::int32_t>("it", "count", "-5"), -5);
  EXPECT_EQ(value_from_text<Short>("it", "short", "drop"), Short::drop);
  EXPECT_EQ(message_of([] { (void)value_from_text<std::int32_t>("it", "count", "5x"); }),
            "[it] count is \"5x\", must be an integer from -2147483648 to 2147483647");
  EXPECT_EQ(message_of([] { (void)value_from_text<bool>("it", "is_even", "yes"); }),
            "[it] is_even is \"yes\", must be true or false");
  EXPECT_EQ(flag_of("min_count"), "--min-count");
  EXPECT_EQ(type_text<std::optional<Short>>(), "empty|error|drop");
}

struct Lists {
  std::vector<double> shares = {0.5, 1};
  std::optional<std::vector<Short>> shorts = {};

  template <class Row>
  static void describe(Row row) {
    row(Field{"shares", &Lists::shares, "how much of each"});
    row(Field{"shorts", &Lists::shorts, "which"});
  }
};

TEST(Fields, HoldListsAndTakeOneValueForAListOfOne) {
  EXPECT_EQ(options_to_json(Lists{}).dump(), R"({"shares":[0.5,1.0],"shorts":null})");
  const auto read = [](std::string_view text) {
    return options_from_json<Lists>(parse_json(text, "it"), "it");
  };
  EXPECT_EQ(read(R"({"shares":3})").shares, std::vector<double>{3});
  EXPECT_EQ(read(R"({"shorts":["drop","empty"]})").shorts,
            (std::vector<Short>{Short::drop, Short::empty}));
  EXPECT_EQ(message_of([&] { (void)read(R"({"shares":[1,"x"]})"); }),
            "[it] shares[1] is \"x\", must be a number");
  EXPECT_EQ(type_text<std::vector<double>>(), "list of number");
}

TEST(Fields, HaveAFlagThatChangesTheDefault) {
  struct Switches {
    bool is_off = false;
    bool is_on = true;
  };
  EXPECT_EQ(flag_of(Field{"is_off", &Switches::is_off, ""}), "--is-off");
  EXPECT_EQ(flag_of(Field{"is_on", &Switches::is_on, ""}), "--no-is-on");
  EXPECT_EQ(flag_of(Field{"count", &SampleOptions::count, ""}), "--count");
}

TEST(FindNumber, TakesFiniteDecimalsAndNothingElse) {
  EXPECT_EQ(find_number("0.5"), 0.5);
  EXPECT_EQ(find_number("-3"), -3.0);
  EXPECT_EQ(find_number("1e-3"), 0.001);
  for (const char* text : {"", " 1", "1 ", "1,5", "0x1", "inf", "nan", "1e999", "one"}) {
    EXPECT_EQ(find_number(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace isochron
