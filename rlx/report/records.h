// The nodes of all stages as records. A node keeps its number (its *entity*) from stage to stage as long as a pass
// keeps it or only changes its operands. So a stage is an order of entities plus its new records.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rlx/base/json_writer.h"
#include "rlx/ir/graph.h"
#include "rlx/report/strings.h"

namespace rlx {

class ReportRecords {
 public:
  explicit ReportRecords(ReportStrings& strings) : strings_(strings) {}

  /// The next stage, as JSON: {"name", "what", "order": [first entity, count, ..], "set": [entity, record, ..],
  /// "roots": [[text, entity, result], ..]}. Roots equal to those of the previous stage are omitted.
  void add_stage(JsonWriter& json, std::string_view name, std::string_view what, const Graph& g);
  /// The number of graph `g` among the bodies. Its entities are its node numbers. `g` must outlive this object.
  std::uint32_t body(const Graph& g);
  /// All records, [op, attrs, types, operands, label, file, line, pass, from, bodies], each without its empty end, then
  /// all bodies.
  void write(JsonWriter& json);

 private:
  struct OpTexts {
    std::uint32_t name = 0, attrs = 0;
    std::vector<std::uint32_t> bodies;
    bool has_bodies = false;
  };
  const OpTexts& texts(const OpBox& op);
  std::uint32_t write_record(const Node& n, const std::vector<std::uint32_t>& entity_of);
  std::vector<std::uint64_t> signatures(const Graph& g);
  std::vector<std::uint32_t> match(const Graph& after, const std::vector<std::uint64_t>& signature);
  bool changed(const Node& a, const Node& b, const std::vector<std::uint32_t>& entity_of_b);
  std::string roots_text(const Graph& g, const std::vector<std::uint32_t>& entity_of);

  ReportStrings& strings_;
  std::unordered_map<const void*, OpTexts> ops_;
  std::unordered_map<const Graph*, std::uint32_t> body_numbers_;
  std::vector<std::string> bodies_;
  std::string records_;
  std::uint32_t num_records_ = 0, num_entities_ = 0;
  // The graph of the previous stage, to which the next stage is compared.
  const Graph* before_ = nullptr;
  std::vector<std::uint64_t> before_signature_;
  std::vector<std::uint32_t> before_entity_;
  std::string before_roots_;
};

}  // namespace rlx
