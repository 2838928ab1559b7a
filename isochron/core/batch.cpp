#include "isochron/core/batch.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <type_traits>
#include <unordered_map>

#include "isochron/core/random.h"
#include "isochron/core/require.h"

namespace isochron {

namespace {

constexpr std::string_view where = "lengths";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// What a message shows of hostile text: printable, short.
std::string excerpt(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 32)) shown += (c >= ' ' && c <= '~') ? c : '?';
  if (text.size() > 32) shown += "...";
  return shown;
}

// Whether `text` is UTF-8 as JSON needs it: shortest form, no surrogates, at most U+10FFFF.
bool is_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t size = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || text.size() - i < size) return false;
    for (std::size_t j = 1; j < size; ++j) {
      const auto next = static_cast<unsigned char>(text[i + j]);
      unsigned char low = 0x80;
      unsigned char high = 0xbf;
      if (j == 1 && lead == 0xe0) low = 0xa0;
      if (j == 1 && lead == 0xed) high = 0x9f;
      if (j == 1 && lead == 0xf0) low = 0x90;
      if (j == 1 && lead == 0xf4) high = 0x8f;
      if (next < low || next > high) return false;
    }
    i += size;
  }
  return true;
}

std::int64_t bounded_integer(std::string_view text, std::int64_t line, std::string_view name,
                             std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
    reject(where, "line {}: {} is \"{}\", must be an integer from {} to {}", line, name,
           excerpt(text), low, high);
  }
  return value;
}

Tokens length_of(std::string_view text, std::int64_t line) {
  return bounded_integer(text, line, "the length", 1, max_length);
}

// Hands out the lines that are not skipped, with their numbers.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  [[nodiscard]] std::optional<std::string_view> next() {
    while (!rest_.empty()) {
      const std::size_t end = rest_.find('\n');
      const std::string_view line = trimmed(rest_.substr(0, end));
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
      ++number_;
      if (!line.empty() && line.front() != '#') return line;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

// The fields of a CSV line (RFC 4180, without line breaks inside quotes).
void split_csv(std::string_view line, std::int64_t number, std::vector<std::string>& fields) {
  fields.clear();
  while (true) {
    line = trimmed(line);
    std::string field;
    if (!line.empty() && line.front() == '"') {
      std::size_t i = 1;
      for (;; ++i) {
        require(i < line.size(), where, "line {}: a quote is not closed", number);
        if (line[i] == '"') {
          if (i + 1 >= line.size() || line[i + 1] != '"') break;
          ++i;
        }
        field += line[i];
      }
      line = trimmed(line.substr(i + 1));
      require(line.empty() || line.front() == ',', where,
              "line {}: text follows a closing quote, must be a comma", number);
    } else {
      const std::string_view plain = line.substr(0, line.find(','));
      field = trimmed(plain);
      line.remove_prefix(plain.size());
    }
    fields.push_back(std::move(field));
    if (line.empty()) return;
    line.remove_prefix(1);
  }
}

Batch parse_csv(Lines& lines, std::string_view header) {
  std::vector<std::string> fields;
  split_csv(header, lines.number(), fields);
  const std::size_t columns = fields.size();
  const auto find_column = [&](std::string_view name) {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < columns; ++i) {
      if (fields[i] != name) continue;
      require(!found, where, "line {}: the header has \"{}\" twice", lines.number(), name);
      found = i;
    }
    return found;
  };
  const auto length = find_column("length");
  const auto group = find_column("group");
  const auto extra = find_column("extra_cost_ns");
  require(length.has_value(), where, "line {}: the header \"{}\" has no column \"length\"",
          lines.number(), excerpt(header));

  Batch batch;
  std::unordered_map<std::string, PromptGroupId> id_of_name;
  while (const auto line = lines.next()) {
    split_csv(*line, lines.number(), fields);
    require(fields.size() == columns, where, "line {}: {} columns, must be {} as in the header",
            lines.number(), fields.size(), columns);
    batch.lengths.push_back(length_of(fields[*length], lines.number()));
    if (extra) {
      batch.extra_cost_ns.push_back(
          bounded_integer(fields[*extra], lines.number(), "extra_cost_ns", 0, max_total_cost));
    }
    if (group) {
      std::string& name = fields[*group];
      require(is_utf8(name), where, "line {}: the group is not valid UTF-8", lines.number());
      const PromptGroupId fresh(static_cast<std::int32_t>(batch.group_names.size()));
      const auto [entry, is_new] = id_of_name.try_emplace(std::move(name), fresh);
      if (is_new) batch.group_names.push_back(entry->first);
      batch.groups.push_back(entry->second);
    }
  }
  return batch;
}

Batch parse_plain(Lines& lines, std::string_view first) {
  Batch batch;
  batch.lengths.push_back(length_of(first, lines.number()));
  while (const auto line = lines.next()) {
    batch.lengths.push_back(length_of(*line, lines.number()));
  }
  return batch;
}

// By hand rather than by the JSON library, for the line numbers and a million lengths.
Batch parse_array(std::string_view text, std::int64_t line) {
  Batch batch;
  std::size_t i = 1;  // after the bracket
  const auto skip_blank = [&] {
    for (; i < text.size() && (is_blank(text[i]) || text[i] == '\n'); ++i) line += text[i] == '\n';
  };
  const auto is_at = [&](char c) { return i < text.size() && text[i] == c; };
  skip_blank();
  while (!is_at(']') || !batch.lengths.empty()) {  // no bracket after a comma
    std::size_t end = i;
    while (end < text.size() && (text[end] == '-' || (text[end] >= '0' && text[end] <= '9'))) ++end;
    if (end == i) end = std::min(i + 1, text.size());  // so that the message shows what is there
    const std::string_view digits = text.substr(i, end - i);
    require(digits.size() < 2 || digits.front() != '0', where,
            "line {}: the length is \"{}\", must not start with 0", line, digits);
    batch.lengths.push_back(length_of(digits, line));
    i = end;
    skip_blank();
    if (!is_at(',')) break;
    ++i;
    skip_blank();
  }
  require(is_at(']'), where, "line {}: \"{}\" follows a length, must be a comma or ]", line,
          excerpt(text.substr(std::min(i, text.size()), 1)));
  ++i;
  skip_blank();
  require(i == text.size(), where, "line {}: text follows the closing bracket", line);
  return batch;
}

}  // namespace

Batch parse_batch(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark
  const std::string_view whole = text;
  Lines lines(text);
  const auto first = lines.next();
  require(first.has_value(), where, "line {}: no length found, must be at least one",
          std::max<std::int64_t>(1, lines.number()));

  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  Batch batch;
  if (first->front() == '[') {
    batch = parse_array(whole.substr(static_cast<std::size_t>(first->data() - whole.data())),
                        lines.number());
  } else if (std::any_of(first->begin(), first->end(), is_letter)) {
    batch = parse_csv(lines, *first);
  } else {
    batch = parse_plain(lines, *first);
  }
  require(!batch.lengths.empty(), where, "line {}: no length found, must be at least one",
          lines.number());
  require(batch.lengths.size() <= static_cast<std::size_t>(max_length), where,
          "{} lengths, must be at most {}", batch.lengths.size(), max_length);
  return batch;
}

Batch cut_batch(const Batch& batch, std::size_t first, std::size_t count) {
  const std::size_t size = batch.lengths.size();
  require(first <= size && count <= size - first, "batch",
          "{} sequences from {} on, must be among the {} of the batch", count, first, size);
  const auto cut = [&](const auto& values) {
    using Values = std::decay_t<decltype(values)>;
    if (values.empty()) return Values{};
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    return Values(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  Batch part;
  part.lengths = cut(batch.lengths);
  part.extra_cost_ns = cut(batch.extra_cost_ns);
  part.groups = cut(batch.groups);
  std::unordered_map<std::int32_t, PromptGroupId> id_of;
  for (PromptGroupId& group : part.groups) {
    const PromptGroupId fresh(static_cast<std::int32_t>(part.group_names.size()));
    const auto [entry, is_new] = id_of.try_emplace(group.value(), fresh);
    if (is_new) part.group_names.push_back(batch.group_names[group.index()]);
    group = entry->second;
  }
  return part;
}

std::vector<Tokens> long_tailed_lengths(std::int32_t count, std::uint64_t seed) {
  // Quantiles; a draw falls into a step by its share and is uniform inside the step.
  struct Step {
    std::uint64_t per_mille;
    Tokens low, high;
  };
  static constexpr std::array<Step, 7> steps = {{{150, 32, 160},
                                                 {350, 160, 600},
                                                 {300, 600, 2000},
                                                 {130, 2000, 6000},
                                                 {60, 6000, 16000},
                                                 {9, 16000, 60000},
                                                 {1, 60000, 120000}}};
  Random random(seed);
  std::vector<Tokens> lengths;
  for (std::int32_t i = 0; i < count; ++i) {
    std::uint64_t draw = random.below(1000);
    const Step* step = steps.data();
    while (draw >= step->per_mille) draw -= (step++)->per_mille;
    lengths.push_back(random.between(step->low, step->high - 1));
  }
  return lengths;
}

}  // namespace isochron
