#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "isochron/engine/parallel/communicator.h"

namespace isochron {

// What is wrong with the collectives that the ranks of a run issued; empty if nothing is. Two rules
// keep them from waiting for each other in a circle, however long each takes:
//
//   members agree   all members of a communicator issue the same operations, in the same order;
//   acyclic         the orders in which ranks issue over all their communicators fit into one.
//
// Opening and closing a group count as collectives of its communicator, and a third rule holds; a
// communicator that nobody opened is open all along:
//
//   open            nothing is issued on a group before it is opened and after it is closed.
//
// issued_by_rank[r] is World::issued() of rank r, for all ranks of the world.
[[nodiscard]] inline std::optional<std::string> find_order_violation(
    const std::vector<std::vector<IssuedCollective>>& issued_by_rank) {
  using Node = std::pair<std::string, std::size_t>;  // the i-th collective of a communicator
  std::map<std::string, std::map<std::size_t, std::vector<IssuedCollective>>> by_communicator;
  std::map<Node, std::vector<Node>> next;
  std::map<Node, std::size_t> num_before;
  for (std::size_t rank = 0; rank < issued_by_rank.size(); ++rank) {
    std::optional<Node> last;
    std::map<std::string, bool> is_open;  // groups that were opened or closed so far
    for (const IssuedCollective& issued : issued_by_rank[rank]) {
      const bool opens = issued.operation == group_opened;
      const bool closes = issued.operation == group_closed;
      const auto group = is_open.try_emplace(issued.communicator, !opens && !closes).first;
      if (group->second == opens) {
        return fmt::format("rank {} issued {} on {}, which is {}", rank, issued.operation,
                           issued.communicator, opens ? "open" : "not open");
      }
      group->second = !closes;
      auto& of_rank = by_communicator[issued.communicator][rank];
      Node node{issued.communicator, of_rank.size()};
      of_rank.push_back(issued);
      num_before.try_emplace(node, 0);
      if (last) {
        next[*last].push_back(node);
        ++num_before[node];
      }
      last = std::move(node);
    }
  }
  for (auto& [communicator, by_rank] : by_communicator) {
    const auto& [first_issuer, expected] = *by_rank.begin();
    const IssuedCollective& sample = expected.front();
    for (std::int32_t i = 0; i < sample.num_ranks; ++i) {
      const auto member = static_cast<std::size_t>(sample.first_rank + i);
      const auto& issued = by_rank[member];
      for (std::size_t k = 0; k < std::max(issued.size(), expected.size()); ++k) {
        const auto text = [&](const std::vector<IssuedCollective>& list) {
          return k < list.size() ? fmt::format("{} of {}", list[k].operation, list[k].elements)
                                 : std::string("nothing");
        };
        if (k < issued.size() && k < expected.size() && issued[k] == expected[k]) continue;
        return fmt::format("collective {} of {}: rank {} issued {}, rank {} {}", k, communicator,
                           first_issuer, text(expected), member, text(issued));
      }
    }
  }
  std::vector<Node> ready;
  for (const auto& [node, count] : num_before) {
    if (count == 0) ready.push_back(node);
  }
  std::size_t num_done = 0;
  while (!ready.empty()) {
    const Node node = ready.back();
    ready.pop_back();
    ++num_done;
    for (const Node& after : next[node]) {
      if (--num_before[after] == 0) ready.push_back(after);
    }
  }
  if (num_done == num_before.size()) return std::nullopt;
  std::string waiting;
  for (const auto& [node, count] : num_before) {
    if (count > 0)
      waiting += fmt::format("{}{} {}", waiting.empty() ? "" : ", ", node.first, node.second);
  }
  return "these wait for each other: " + waiting;
}

// Records as text, for a rank to return to its test, and back.
[[nodiscard]] inline std::string issued_text(const std::vector<IssuedCollective>& issued) {
  std::string text;
  for (const IssuedCollective& it : issued) {
    text += fmt::format("{}\t{}\t{}\t{}\t{}\n", it.communicator, it.first_rank, it.num_ranks,
                        it.operation, it.elements);
  }
  return text;
}

[[nodiscard]] inline std::vector<IssuedCollective> issued_from_text(const std::string& text) {
  std::vector<IssuedCollective> issued;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    IssuedCollective& it = issued.emplace_back();
    std::getline(fields, it.communicator, '\t');
    fields >> it.first_rank >> it.num_ranks >> std::ws;
    std::getline(fields, it.operation, '\t');
    fields >> it.elements;
  }
  return issued;
}

}  // namespace isochron
