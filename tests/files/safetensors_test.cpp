#include "isochron/files/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "tests/support/mutate.h"

namespace isochron {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// A file in a folder that goes away with the test.
class Safetensors : public testing::Test {
 protected:
  Safetensors() {
    std::string name = (std::filesystem::temp_directory_path() / "safetensors_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    path_ = folder_ / "file";
  }
  ~Safetensors() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& content) { std::ofstream(path_, std::ios::binary) << content; }
  void write_with_header(const std::string& header, const std::string& data) {
    const std::uint64_t size = header.size();
    std::string content(8, '\0');
    std::memcpy(content.data(), &size, 8);
    write(content + header + data);
  }
  [[nodiscard]] std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Reading must fail with this text behind the name of the file.
  void expect_rejected(const std::string& message) {
    EXPECT_THAT([&] { SafetensorsFile file(path_); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(message)));
  }

  std::filesystem::path folder_;
  std::filesystem::path path_;
};

template <class T>
StoredTensor stored(const std::string& name, ElementType type, std::vector<std::int64_t> shape,
                    const std::vector<T>& values) {
  return {name, type, std::move(shape), std::as_bytes(std::span(values))};
}

const std::vector<float> floats = {1, -2, 3.5f, 0, 1e30f, -0.0f};
const std::vector<std::int64_t> integers = {7, -1};

TEST_F(Safetensors, ReadsBackWhatItWrote) {
  const std::vector<float> none;
  write_safetensors(path_,
                    std::vector{stored("b", ElementType::F32, {2, 3}, floats),
                                stored("a", ElementType::I64, {2}, integers),
                                stored("nothing", ElementType::F32, {0, 4}, none),
                                stored("scalar", ElementType::I64, {}, std::vector{integers[0]})},
                    {{"format", "pt"}, {"who", "\xc3\xa9"}});
  const SafetensorsFile file(path_);
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.metadata().at("who"), "\xc3\xa9");
  const StoredTensor& b = file.get("b", ElementType::F32, {{-1, 3}});
  EXPECT_THAT(b.shape, ElementsAre(2, 3));
  EXPECT_EQ(std::memcmp(b.bytes.data(), floats.data(), b.bytes.size()), 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.bytes.data()) % 8, 0u);
  EXPECT_EQ(file.get("a", ElementType::I64).num_elements(), 2);
  EXPECT_EQ(file.get("nothing", ElementType::F32).num_elements(), 0);
  EXPECT_EQ(file.get("scalar", ElementType::I64).num_elements(), 1);
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST_F(Safetensors, AnEmptyFileOfNoTensorsIsAFile) {
  write_safetensors(path_, {});
  EXPECT_TRUE(SafetensorsFile(path_).tensors().empty());
}

TEST_F(Safetensors, EqualInputsGiveEqualBytes) {
  const std::vector tensors = {stored("x", ElementType::F32, {6}, floats)};
  write_safetensors(path_, tensors, {{"b", "1"}, {"a", "2"}});
  const std::string first = content();
  write_safetensors(path_, tensors, {{"a", "2"}, {"b", "1"}});
  EXPECT_EQ(content(), first);
}

TEST_F(Safetensors, SurvivesBeingMoved) {
  write_safetensors(path_, std::vector{stored("x", ElementType::F32, {6}, floats)});
  SafetensorsFile file(path_);
  const SafetensorsFile moved = std::move(file);
  EXPECT_EQ(std::memcmp(moved.find("x")->bytes.data(), floats.data(), 24), 0);
}

TEST_F(Safetensors, NamesTheTensorThatIsNotAsAsked) {
  write_safetensors(path_, std::vector{stored("x", ElementType::F32, {2, 3}, floats)});
  const SafetensorsFile file(path_);
  const std::string where = "[" + path_.string() + "] ";
  EXPECT_THAT([&] { (void)file.get("y", ElementType::F32); },
              ThrowsMessage<std::invalid_argument>(where + "has no tensor y"));
  EXPECT_THAT([&] { (void)file.get("x", ElementType::I32); },
              ThrowsMessage<std::invalid_argument>(where + "x is of F32, must be of I32"));
  EXPECT_THAT(
      [&] {
        (void)file.get("x", ElementType::F32, {{3, 2}});
      },
      ThrowsMessage<std::invalid_argument>(where + "x has the shape [2, 3], must have [3, 2]"));
}

TEST_F(Safetensors, WritesNothingThatCannotBeRead) {
  const StoredTensor x = stored("x", ElementType::F32, {6}, floats);
  EXPECT_THAT(
      [&] {
        write_safetensors(path_, std::vector{x, x});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("the tensor x occurs twice")));
  EXPECT_THAT(
      [&] { write_safetensors(path_, std::vector{stored("x", ElementType::F32, {5}, floats)}); },
      ThrowsMessage<std::invalid_argument>(
          HasSubstr("x has 24 bytes, not those of the shape [5]")));
  EXPECT_THAT(
      [&] {
        write_safetensors(path_,
                          std::vector{stored("__metadata__", ElementType::F32, {6}, floats)});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("must not be named __metadata__")));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(Safetensors, SaysWhatTheWorldRefuses) {
  EXPECT_THAT([&] { SafetensorsFile file(path_); },
              ThrowsMessage<std::runtime_error>("[" + path_.string() +
                                                "] cannot be opened: No such file or directory"));
  EXPECT_THAT([&] { SafetensorsFile file(folder_); },
              ThrowsMessage<std::runtime_error>(HasSubstr("cannot be read: Is a directory")));
  EXPECT_THAT([&] { write_safetensors(folder_ / "none" / "file", {}); },
              ThrowsMessage<std::runtime_error>(HasSubstr("cannot be written: No such file")));
}

TEST_F(Safetensors, RejectsABrokenFrame) {
  write("");
  expect_rejected("has 0 bytes, a safetensors file has at least 8");
  write_with_header("{}", "");
  EXPECT_NO_THROW(SafetensorsFile file(path_));
  write(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10));
  expect_rejected("its header has 18446744073709551615 bytes, allowed are 100000000");
  write(std::string("\x03\0\0\0\0\0\0\0{}", 10));
  expect_rejected("is cut off: its header has 3 bytes, 2 are there");
  write_with_header("[]", "");
  expect_rejected("the header is a list of 0, must be an object");
}

TEST_F(Safetensors, RejectsTensorsThatDoNotCoverTheFileOnce) {
  const auto entry = [](const char* name, int begin, int end) {
    return "\"" + std::string(name) + R"(":{"dtype":"U8","shape":[)" + std::to_string(end - begin) +
           R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  write_with_header("{" + entry("a", 0, 4) + "," + entry("b", 4, 8) + "}", "12345678");
  EXPECT_NO_THROW(SafetensorsFile file(path_));
  write_with_header("{" + entry("a", 0, 4) + "," + entry("b", 2, 8) + "}", "12345678");
  expect_rejected("\"b\" starts at byte 2 of the data, must start at 4");
  write_with_header("{" + entry("a", 0, 4) + "," + entry("b", 6, 8) + "}", "12345678");
  expect_rejected("\"b\" starts at byte 6 of the data, must start at 4");
  write_with_header("{" + entry("a", 0, 4) + "}", "12345678");
  expect_rejected("has 8 bytes of data, its tensors take 4");
  write_with_header("{" + entry("a", 0, 9) + "}", "12345678");
  expect_rejected("data_offsets is 9, must be an integer from 0 to 8");
  write_with_header("{" + entry("a", 0, 4) + "," + entry("a", 4, 8) + "}", "12345678");
  expect_rejected("occurs twice");
}

TEST_F(Safetensors, RejectsEntriesThatLie) {
  const auto reject = [&](const std::string& entry, const std::string& message) {
    write_with_header("{\"x\":" + entry + "}", "12345678");
    expect_rejected(message);
  };
  reject(R"({"dtype":"F99","shape":[2],"data_offsets":[0,8]})", "dtype is \"F99\"");
  reject(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})",
         "has 8 bytes, the shape [3] of F32 takes 12");
  reject(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", "shape is -2");
  reject(R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})", "shape is 2, must be an array");
  reject(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})",
         "more elements than 64 bits can count");
  reject(R"({"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,8]})",
         "more elements than 64 bits can count");
  reject(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", "data_offsets is 0");
  reject(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})", "must be two integers");
  reject(R"({"dtype":"F32","shape":[2]})", "data_offsets");
  reject(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"extra":1})", "extra");
  reject("3", "the entry is 3");
}

// Whatever is in the file: it is read, within its bytes, or rejected in one line.
TEST_F(Safetensors, MutationIsReadOrRejected) {
  write_safetensors(path_,
                    std::vector{stored("x", ElementType::F32, {2, 3}, floats),
                                stored("y", ElementType::I64, {2}, integers)},
                    {{"format", "pt"}});
  const std::string text = content();
  for (std::int64_t seed = 0; seed < fuzz_iterations(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(static_cast<std::uint64_t>(seed));
    write(mutated(text, random));
    try {
      const SafetensorsFile file(path_);
      for (const StoredTensor& tensor : file.tensors()) {
        int sum = 0;
        for (const std::byte value : tensor.bytes) sum += static_cast<int>(value);
        ASSERT_GE(sum, 0);
        ASSERT_EQ(file.find(tensor.name), &tensor);
      }
    } catch (const std::invalid_argument& error) {
      for (const char c : std::string(error.what())) ASSERT_TRUE(c >= ' ' && c <= '~');
    }
  }
}

}  // namespace
}  // namespace isochron
