#include "isochron/core/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/support/message_of.h"

namespace isochron {
namespace {

using testing::ElementsAre;

std::string message_of_text(std::string_view text) {
  return message_of([&] { (void)parse_batch(text); });
}

TEST(ParseBatch, ReadsOneIntegerALine) {
  EXPECT_THAT(parse_batch("12\n7\n").lengths, ElementsAre(12, 7));
  EXPECT_THAT(parse_batch("12").lengths, ElementsAre(12));
  EXPECT_THAT(parse_batch("\xef\xbb\xbf# tokens\r\n\r\n 12 \r\n#x\n7\r\n").lengths,
              ElementsAre(12, 7));
  EXPECT_THAT(parse_batch("2147483647\n1\n").lengths, ElementsAre(2147483647, 1));
}

TEST(ParseBatch, ReadsAJsonArray) {
  EXPECT_THAT(parse_batch("[3, 1,\n 2]\n").lengths, ElementsAre(3, 1, 2));
  EXPECT_THAT(parse_batch("# made by hand\n\n[3]").lengths, ElementsAre(3));
}

TEST(ParseBatch, ReadsCsvWithGroupsAndExtraCosts) {
  const Batch batch = parse_batch(
      "# comment\n"
      "prompt_length,group,length,extra_cost_ns\n"
      "1,b,10,5\n"
      "1,\"a, \"\"quoted\"\"\",20,0\n"
      "\n"
      "1,b,30,7\n");
  EXPECT_THAT(batch.lengths, ElementsAre(10, 20, 30));
  EXPECT_THAT(batch.extra_cost_ns, ElementsAre(5, 0, 7));
  EXPECT_THAT(batch.groups, ElementsAre(PromptGroupId(0), PromptGroupId(1), PromptGroupId(0)));
  EXPECT_THAT(batch.group_names, ElementsAre("b", "a, \"quoted\""));
}

TEST(ParseBatch, NamesTheLineAndTheValueOfWhatIsWrong) {
  EXPECT_EQ(message_of_text(""), "[lengths] line 1: no length found, must be at least one");
  EXPECT_EQ(message_of_text("\n# only this\n\n"),
            "[lengths] line 3: no length found, must be at least one");
  EXPECT_EQ(message_of_text("5\n0\n"),
            "[lengths] line 2: the length is \"0\", must be an integer from 1 to 2147483647");
  EXPECT_EQ(message_of_text("5\n\n2147483648\n"),
            "[lengths] line 3: the length is \"2147483648\", must be an integer from 1 to "
            "2147483647");
  EXPECT_EQ(message_of_text("5\n-3\n"),
            "[lengths] line 2: the length is \"-3\", must be an integer from 1 to 2147483647");
  EXPECT_EQ(message_of_text("5\n99999999999999999999999\n"),
            "[lengths] line 2: the length is \"99999999999999999999999\", must be an integer from "
            "1 to 2147483647");
  EXPECT_EQ(message_of_text("5\n1.5\n"),
            "[lengths] line 2: the length is \"1.5\", must be an integer from 1 to 2147483647");
  EXPECT_EQ(message_of_text("5\n1 2\n"),
            "[lengths] line 2: the length is \"1 2\", must be an integer from 1 to 2147483647");
}

TEST(ParseBatch, RejectsBrokenArrays) {
  EXPECT_EQ(message_of_text("[]"), "[lengths] line 1: no length found, must be at least one");
  EXPECT_EQ(message_of_text("[1,\n2"),
            "[lengths] line 2: \"\" follows a length, must be a comma or ]");
  EXPECT_EQ(message_of_text("[1,\n]"),
            "[lengths] line 2: the length is \"]\", must be an integer from 1 to 2147483647");
  EXPECT_EQ(message_of_text("[1 2]"),
            "[lengths] line 1: \"2\" follows a length, must be a comma or ]");
  EXPECT_EQ(message_of_text("[1,2]\n3"), "[lengths] line 2: text follows the closing bracket");
  EXPECT_EQ(message_of_text("[[1]]"),
            "[lengths] line 1: the length is \"[\", must be an integer from 1 to 2147483647");
  EXPECT_EQ(message_of_text("[1.0]"),
            "[lengths] line 1: \".\" follows a length, must be a comma or ]");
  EXPECT_EQ(message_of_text("[007]"),
            "[lengths] line 1: the length is \"007\", must not start with 0");
  EXPECT_EQ(message_of_text("["),
            "[lengths] line 1: the length is \"\", must be an integer from 1 to 2147483647");
}

TEST(ParseBatch, RejectsBrokenCsv) {
  EXPECT_EQ(message_of_text("tokens,group\n5,a\n"),
            "[lengths] line 1: the header \"tokens,group\" has no column \"length\"");
  EXPECT_EQ(message_of_text("length,length\n5,5\n"),
            "[lengths] line 1: the header has \"length\" twice");
  EXPECT_EQ(message_of_text("length,group\n5\n"),
            "[lengths] line 2: 1 columns, must be 2 as in the header");
  EXPECT_EQ(message_of_text("length,group\n5,\"a\n"), "[lengths] line 2: a quote is not closed");
  EXPECT_EQ(message_of_text("length,group\n5,\"a\"b\n"),
            "[lengths] line 2: text follows a closing quote, must be a comma");
  EXPECT_EQ(message_of_text("length,extra_cost_ns\n5,-1\n"),
            "[lengths] line 2: extra_cost_ns is \"-1\", must be an integer from 0 to "
            "4611686018427387904");
  EXPECT_EQ(message_of_text("length,group\n5,\xff\n"),
            "[lengths] line 2: the group is not valid UTF-8");
  EXPECT_EQ(message_of_text("length\n"), "[lengths] line 1: no length found, must be at least one");
  EXPECT_EQ(message_of_text("nonsense\n"),
            "[lengths] line 1: the header \"nonsense\" has no column \"length\"");
}

TEST(ParseBatch, AcceptsEveryStringAsAGroup) {
  const Batch batch = parse_batch("length,group\n5,\n6,\xf0\x9f\x98\x80\n7,\n");
  EXPECT_THAT(batch.group_names, ElementsAre("", "\xf0\x9f\x98\x80"));
  EXPECT_EQ(message_of_text("length,group\n5,\xed\xa0\x80\n"),  // half of a surrogate pair
            "[lengths] line 2: the group is not valid UTF-8");
}

TEST(CutBatch, NumbersGroupsByTheirFirstOccurrenceInThePart) {
  const Batch batch =
      parse_batch("length,group,extra_cost_ns\n10,a,1\n20,b,2\n30,c,3\n40,b,4\n50,c,5\n");
  const Batch part = cut_batch(batch, 2, 3);
  EXPECT_THAT(part.lengths, ElementsAre(30, 40, 50));
  EXPECT_THAT(part.extra_cost_ns, ElementsAre(3, 4, 5));
  EXPECT_THAT(part.groups, ElementsAre(PromptGroupId(0), PromptGroupId(1), PromptGroupId(0)));
  EXPECT_THAT(part.group_names, ElementsAre("c", "b"));
  EXPECT_EQ(cut_batch(batch, 0, 5), batch);
}

TEST(CutBatch, TakesABatchOfLengthsAlone) {
  const Batch part = cut_batch(parse_batch("1\n2\n3\n"), 1, 1);
  EXPECT_EQ(part.lengths, std::vector<Tokens>{2});
  EXPECT_TRUE(part.groups.empty() && part.group_names.empty() && part.extra_cost_ns.empty());
  EXPECT_TRUE(cut_batch(part, 1, 0).lengths.empty());
}

TEST(CutBatch, RejectsAPartThatIsNotThere) {
  EXPECT_EQ(message_of([] { (void)cut_batch(parse_batch("1\n2\n"), 1, 2); }),
            "[batch] 2 sequences from 1 on, must be among the 2 of the batch");
  EXPECT_EQ(message_of([] { (void)cut_batch(parse_batch("1\n2\n"), 3, 0); }),
            "[batch] 0 sequences from 3 on, must be among the 2 of the batch");
}

}  // namespace
}  // namespace isochron
