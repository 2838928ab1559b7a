// The parser of yaml-cpp sends events; they are turned into JSON here, so that nothing is built for
// what a recipe does not need: an alias that is never followed cannot grow.

#include "isochron/engine/train/yaml_document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <vector>

namespace isochron {

namespace {

constexpr std::size_t max_depth = 16;  // a recipe needs 3
constexpr std::size_t max_bytes = std::size_t{1} << 20;

class JsonBuilder final : public YAML::EventHandler {
 public:
  explicit JsonBuilder(std::string_view where) : where_(where) {}

  [[nodiscard]] Json take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add(mark, nullptr); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    reject(where_, "line {} has an alias, must spell the value out", line(mark));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    if (is_key_expected()) return set_key(mark, value);
    require_no_tag(mark, tag);
    add(mark, tag == "!" ? Json(value) : plain_scalar(value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    require_no_tag(mark, tag);
    open(mark, Json::array());
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    require_no_tag(mark, tag);
    open(mark, Json::object());
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Json value;
    std::optional<std::string> key;  // of a mapping, whose value comes next
  };

  static int line(const YAML::Mark& mark) { return mark.line + 1; }

  // "?" is a plain scalar or collection, "!" a quoted scalar.
  void require_no_tag(const YAML::Mark& mark, const std::string& tag) const {
    require(tag.empty() || tag == "?" || tag == "!", where_,
            "line {} has a tag, must be a value alone", line(mark));
  }

  [[nodiscard]] bool is_key_expected() const {
    return !open_.empty() && open_.back().value.is_object() && !open_.back().key;
  }

  void set_key(const YAML::Mark& mark, const std::string& key) {
    require(!open_.back().value.contains(key), where_, "line {} has the key {} a second time",
            line(mark), shown(key));
    open_.back().key = key;
  }

  void open(const YAML::Mark& mark, Json empty) {
    require(!is_key_expected(), where_, "line {} has a key that is no scalar", line(mark));
    require(open_.size() < max_depth, where_, "line {} nests deeper than {} levels", line(mark),
            max_depth);
    open_.push_back({.value = std::move(empty), .key = {}});
  }

  void close() {
    Json value = std::move(open_.back().value);
    open_.pop_back();
    put(std::move(value));
  }

  void add(const YAML::Mark& mark, Json value) {
    require(!is_key_expected(), where_, "line {} has a key that is null", line(mark));
    put(std::move(value));
  }

  void put(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Open& parent = open_.back(); parent.key) {
      parent.value[*parent.key] = std::move(value);
      parent.key.reset();
    } else {
      parent.value.push_back(std::move(value));
    }
  }

  std::string where_;
  std::vector<Open> open_;
  Json root_;
};

// Whether YAML reads the text, unquoted, as the string that it is: letters, digits and marks that
// mean nothing anywhere in it.
bool is_plain(const std::string& text) {
  const auto is_safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '/' || c == '.' || c == '-';
  };
  return !text.empty() && text[0] != '-' && std::all_of(text.begin(), text.end(), is_safe) &&
         plain_scalar(text).is_string();
}

}  // namespace

Json parse_yaml(std::string_view text, std::string_view where) {
  require(text.size() <= max_bytes, where, "the text has {} bytes, must be at most {}", text.size(),
          max_bytes);
  JsonBuilder builder(where);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return Json::object();
    const bool is_last = !parser.HandleNextDocument(builder);
    require(is_last, where, "the text holds a second document, must be one");
  } catch (const YAML::Exception& error) {
    reject(where, "line {} is not valid YAML: {}", error.mark.line + 1, error.msg);
  }
  return builder.take();
}

Json plain_scalar(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return nullptr;
  }
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  const std::string_view unsigned_text = text.starts_with('+') ? text.substr(1) : text;
  if (const auto integer = find_integer(unsigned_text)) return *integer;
  if (const auto number = find_number(unsigned_text)) return *number;
  return std::string(text);
}

std::string yaml_value(const Json& value) {
  if (value.is_array()) {
    std::string list;
    for (const Json& element : value) list += (list.empty() ? "" : ", ") + yaml_value(element);
    return "[" + list + "]";
  }
  if (value.is_string() && is_plain(value.get_ref<const std::string&>())) {
    return value.get<std::string>();
  }
  // A string of JSON is a quoted string of YAML.
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace isochron
