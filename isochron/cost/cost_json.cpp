#include "isochron/cost/cost_json.h"

#include <array>

namespace isochron {

namespace {

constexpr std::string_view where = "cost";

// Reads the members of one object, under the path that messages name it by.
class Members {
 public:
  Members(const Json& object, std::string path, std::span<const std::string> known)
      : object_(object), path_(std::move(path)) {
    require_object(object, where, path_.empty() ? "the cost model" : path_);
    require_known_keys(object, where, known);
  }

  [[nodiscard]] std::string name(const char* key) const {
    return path_.empty() ? key : path_ + "." + key;
  }
  [[nodiscard]] const Json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }

  // Keeps the default of `field` if the key is missing.
  void read(const char* key, double& field) const {
    if (const Json* value = find(key)) field = number_of(*value, where, name(key));
  }
  void read(const char* key, std::int64_t& field) const {
    if (const Json* value = find(key)) {
      field = integer_of(*value, where, name(key), 0, std::numeric_limits<std::int64_t>::max());
    }
  }
  void require_given(const char* key) const {
    if (find(key) == nullptr) reject(where, "\"{}\" is missing", name(key));
  }

 private:
  const Json& object_;
  std::string path_;
};

ContextLink link_from_json(const Json& json, std::string path) {
  static const std::array<std::string, 3> known = {"max_ranks", "gb_per_s", "latency_us"};
  const Members members(json, std::move(path), known);
  members.require_given("max_ranks");
  members.require_given("gb_per_s");
  ContextLink link;
  members.read("max_ranks", link.max_ranks);
  members.read("gb_per_s", link.gb_per_s);
  members.read("latency_us", link.latency_us);
  return link;
}

ContextCost context_from_json(const Json& json, std::string path) {
  static const std::array<std::string, 5> known = {"kind", "bytes_per_token", "divides", "links",
                                                   "overlap"};
  const Members members(json, std::move(path), known);
  members.require_given("kind");
  ContextCost context;
  context.kind = field_from_json<ContextKind>(*members.find("kind"), where, members.name("kind"));
  members.read("bytes_per_token", context.bytes_per_token);
  members.read("divides", context.divides);
  members.read("overlap", context.overlap);
  if (const Json* links = members.find("links")) {
    const std::string name = members.name("links");
    require(links->is_array(), where, "{} is {}, must be a list", name, shown(*links));
    for (std::size_t i = 0; i < links->size(); ++i) {
      context.links.push_back(link_from_json((*links)[i], fmt::format("{}[{}]", name, i)));
    }
  }
  return context;
}

Json context_to_json(const ContextCost& context) {
  Json links = Json::array();
  for (const ContextLink& link : context.links) {
    links.push_back({{"max_ranks", link.max_ranks},
                     {"gb_per_s", link.gb_per_s},
                     {"latency_us", link.latency_us}});
  }
  return {{"kind", name_of(context.kind)},
          {"bytes_per_token", context.bytes_per_token},
          {"divides", context.divides},
          {"links", std::move(links)},
          {"overlap", context.overlap}};
}

}  // namespace

Json cost_to_json(const CostModel& model) {
  require_valid(model);  // a number that is not finite has no JSON
  Json contexts = Json::array();
  for (const ContextCost& context : model.context) contexts.push_back(context_to_json(context));
  return {{"name", model.name},
          {"quadratic_ns", model.quadratic_ns},
          {"linear_ns", model.linear_ns},
          {"microbatch_ns", model.microbatch_ns},
          {"forward_share", model.forward_share},
          {"context", contexts.size() == 1 ? contexts[0] : contexts},
          {"activation_bytes_per_token", model.activation_bytes_per_token}};
}

CostModel cost_from_json(const Json& json) {
  static const std::array<std::string, 7> known = {"name",
                                                   "quadratic_ns",
                                                   "linear_ns",
                                                   "microbatch_ns",
                                                   "forward_share",
                                                   "context",
                                                   "activation_bytes_per_token"};
  const Members members(json, "", known);
  require(members.find("quadratic_ns") || members.find("linear_ns"), where,
          "\"linear_ns\" and \"quadratic_ns\" are missing, must have one of them");
  CostModel model;
  if (const Json* name = members.find("name")) model.name = text_of(*name, where, "name");
  members.read("quadratic_ns", model.quadratic_ns);
  members.read("linear_ns", model.linear_ns);
  members.read("microbatch_ns", model.microbatch_ns);
  members.read("forward_share", model.forward_share);
  members.read("activation_bytes_per_token", model.activation_bytes_per_token);
  if (const Json* context = members.find("context")) {
    model.context.clear();
    if (context->is_array()) {
      for (std::size_t i = 0; i < context->size(); ++i) {
        model.context.push_back(context_from_json((*context)[i], fmt::format("context[{}]", i)));
      }
    } else {
      require(context->is_object(), where, "context is {}, must be an object or a list of objects",
              shown(*context));
      model.context.push_back(context_from_json(*context, "context"));
    }
  }
  require_valid(model);
  return model;
}

std::string to_json(const CostModel& model) {
  return cost_to_json(model).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

CostModel cost_model_from_json(std::string_view json_text) {
  return cost_from_json(parse_json(json_text, where));
}

}  // namespace isochron
