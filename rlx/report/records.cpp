// Matches the nodes of one stage with those of the previous stage, in linear time.
#include "rlx/report/records.h"

#include <algorithm>
#include <functional>

#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/ir/text.h"

namespace rlx {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

std::uint64_t mixed(std::uint64_t seed, std::uint64_t v) {
  seed ^= v + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2);
  seed *= 0xff51afd7ed558ccdULL;
  return seed ^ seed >> 32;
}

std::uint64_t hash_of(std::string_view text) { return std::hash<std::string_view>()(text); }

// Hashes a signature with its operands. Each operand is hashed as the number that `of` has for its node.
std::uint64_t with_operands(std::uint64_t signature, const Node& n, const std::vector<std::uint32_t>* of) {
  for (Value v : n.inputs)
    signature = mixed(signature, std::uint64_t{of ? (*of)[v.node.index] : v.node.index} << 8 | v.result);
  return signature;
}

// Nodes by hash, in node order. Each node is returned at most once.
class Candidates {
 public:
  explicit Candidates(std::vector<std::pair<std::uint64_t, std::uint32_t>> rows) : rows_(std::move(rows)) {
    std::sort(rows_.begin(), rows_.end());
    next_.assign(rows_.size(), 0);
  }
  // The first of the next few nodes with that hash that `accept` takes; kNone for none.
  template <class F>
  std::uint32_t find(std::uint64_t hash, const std::vector<bool>& used, F&& accept) {
    const auto begin = std::lower_bound(rows_.begin(), rows_.end(), std::pair(hash, std::uint32_t{0}));
    if (begin == rows_.end() || begin->first != hash) return kNone;
    std::size_t& skip = next_[static_cast<std::size_t>(begin - rows_.begin())];
    auto at = begin + static_cast<std::ptrdiff_t>(skip);
    for (; at != rows_.end() && at->first == hash && used[at->second]; ++at) ++skip;
    constexpr int kLook = 8;
    for (int seen = 0; seen < kLook && at != rows_.end() && at->first == hash; ++at) {
      if (used[at->second]) continue;
      ++seen;
      if (accept(at->second)) return at->second;
    }
    return kNone;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint32_t>> rows_;
  std::vector<std::size_t> next_;  // by the first row of a hash: number of used rows after it
};

template <class T>
void write_list(JsonWriter& json, const std::vector<T>& numbers) {
  json.begin_array();
  for (T n : numbers) json.value(n);
  json.end_array();
}

}  // namespace

const ReportRecords::OpTexts& ReportRecords::texts(const OpBox& op) {
  const auto [at, is_new] = ops_.try_emplace(op.data());
  if (!is_new) return at->second;
  OpTexts t;
  t.name = strings_.id(op_text_name(op));
  t.attrs = strings_.id(print_attrs(op, {.bodies = false, .max_elements = 8}));
  std::vector<Subgraph> bodies = body_graphs(op);
  t.has_bodies = !bodies.empty();
  for (const Subgraph& b : bodies) t.bodies.push_back(body(*b));
  return ops_[op.data()] = std::move(t);  // the bodies have inserted ops of their own
}

// Hashes what an untouched node keeps: everything but operands, shapes and bodies.
std::vector<std::uint64_t> ReportRecords::signatures(const Graph& g) {
  std::vector<std::uint64_t> out;
  out.reserve(g.num_nodes());
  for (const Node& n : g.nodes()) {
    const OpTexts& t = texts(n.op);
    std::uint64_t h = mixed(t.name, t.has_bodies ? 0 : t.attrs);
    h = mixed(h, hash_of(n.origin.label));
    h = mixed(h, static_cast<std::uint64_t>(n.origin.loc.line));
    h = mixed(h, hash_of(n.origin.pass));
    out.push_back(mixed(h, n.origin.from.size() << 8 | n.num_results()));
  }
  return out;
}

// Matches each node of `after` with its node in the previous stage, or kNone. First choice: a node with the same
// operands. Since operands may be what changed, then the next node with the same first operand, then the next node.
std::vector<std::uint32_t> ReportRecords::match(const Graph& after, const std::vector<std::uint64_t>& signature) {
  const Graph& before = *before_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> exact, loose;
  for (std::uint32_t i = 0; i < before.num_nodes(); ++i) {
    exact.emplace_back(with_operands(before_signature_[i], before.nodes()[i], nullptr), i);
    loose.emplace_back(before_signature_[i], i);
  }
  Candidates same(std::move(exact)), alike(std::move(loose));
  std::vector<bool> used(before.num_nodes(), false);
  std::vector<std::uint32_t> found(after.num_nodes(), kNone);
  for (std::uint32_t j = 0; j < after.num_nodes(); ++j) {
    const Node& n = after.nodes()[j];
    const auto any = [](std::uint32_t) { return true; };
    std::uint32_t i = same.find(with_operands(signature[j], n, &found), used, any);
    if (i == kNone && !n.inputs.empty()) {
      const std::uint32_t first = found[n.inputs[0].node.index];
      i = alike.find(signature[j], used, [&](std::uint32_t k) {
        const std::vector<Value>& ins = before.nodes()[k].inputs;
        return !ins.empty() && ins[0].node.index == first;
      });
    }
    if (i == kNone) i = alike.find(signature[j], used, any);
    if (i == kNone) continue;
    found[j] = i;
    used[i] = true;
  }
  return found;
}

bool ReportRecords::changed(const Node& a, const Node& b, const std::vector<std::uint32_t>& entity_of_b) {
  if (a.inputs.size() != b.inputs.size() || a.shapes != b.shapes) return true;
  for (std::size_t i = 0; i < a.inputs.size(); ++i)
    if (a.inputs[i].result != b.inputs[i].result ||
        before_entity_[a.inputs[i].node.index] != entity_of_b[b.inputs[i].node.index])
      return true;
  return a.op.data() != b.op.data() && texts(a.op).has_bodies && texts(a.op).bodies != texts(b.op).bodies;
}

std::uint32_t ReportRecords::write_record(const Node& n, const std::vector<std::uint32_t>& entity_of) {
  const OpTexts& t = texts(n.op);
  JsonWriter json(kHtmlJson);
  json.begin_array().value(t.name).value(t.attrs);
  if (n.shapes.size() == 1) {
    json.value(strings_.id(n.shapes[0].text()));
  } else {
    json.begin_array();
    for (const Shape& s : n.shapes) json.value(strings_.id(s.text()));
    json.end_array();
  }
  json.begin_array();
  for (Value v : n.inputs) {
    if (v.result == 0)
      json.value(entity_of[v.node.index]);
    else
      json.begin_array().value(entity_of[v.node.index]).value(v.result).end_array();
  }
  json.end_array();
  const Origin& o = n.origin;
  const int fields = !t.bodies.empty()  ? 6
                     : !o.from.empty()  ? 5
                     : !o.pass.empty()  ? 4
                     : o.loc.line > 0   ? 3
                     : !o.label.empty() ? 1
                                        : 0;
  if (fields >= 1) json.value(strings_.id(o.label));
  if (fields >= 2) json.value(strings_.id(o.loc.file ? o.loc.file : ""));
  if (fields >= 3) json.value(o.loc.line);
  if (fields >= 4) json.value(strings_.id(o.pass));
  if (fields >= 5) {
    json.begin_array();
    for (const std::string& from : o.from) json.value(strings_.id(from));
    json.end_array();
  }
  if (fields >= 6) write_list(json, t.bodies);
  if (num_records_ > 0) records_ += ",\n";
  records_ += json.end_array().take();
  return num_records_++;
}

std::string ReportRecords::roots_text(const Graph& g, const std::vector<std::uint32_t>& entity_of) {
  JsonWriter json(kHtmlJson);
  json.begin_array();
  const auto root = [&](const std::string& what, Value v) {
    json.begin_array().value(what).value(entity_of[v.node.index]).value(v.result).end_array();
  };
  for (std::size_t i = 0; i < g.outputs().size(); ++i) root(concat_text("output ", i), g.outputs()[i]);
  for (const Graph::StateUpdate& u : g.state_updates()) root(concat_text("new value of state '", u.name, "'"), u.value);
  for (const auto& [symbol, source] : g.symbol_sources()) root(concat_text("value of symbol ", symbol), source);
  for (NodeId id : g.ordered()) root("runs in order", id);
  return json.end_array().take();
}

void ReportRecords::add_stage(JsonWriter& json, std::string_view name, std::string_view what, const Graph& g) {
  std::vector<std::uint64_t> signature = signatures(g);
  std::vector<std::uint32_t> found(g.num_nodes(), kNone), entity(g.num_nodes());
  if (before_) found = match(g, signature);
  json.begin_object().member("name", name).member("what", what).member("graph", g.name());
  std::vector<std::uint32_t> set;
  for (std::uint32_t j = 0; j < g.num_nodes(); ++j) {
    entity[j] = found[j] == kNone ? num_entities_++ : before_entity_[found[j]];
    const Node& n = g.nodes()[j];
    if (found[j] != kNone && !changed(before_->nodes()[found[j]], n, entity)) continue;
    set.push_back(entity[j]);
    set.push_back(write_record(n, entity));
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t e : entity) {
    if (!order.empty() && order[order.size() - 2] + order.back() == e)
      ++order.back();
    else
      order.push_back(e), order.push_back(1);
  }
  json.key("order");
  write_list(json, order);
  json.key("set");
  write_list(json, set);
  std::string ends = roots_text(g, entity);
  if (ends != before_roots_ || !before_) json.key("roots").raw(ends);
  json.end_object();
  before_ = &g;
  before_signature_ = std::move(signature);
  before_entity_ = std::move(entity);
  before_roots_ = std::move(ends);
}

std::uint32_t ReportRecords::body(const Graph& g) {
  if (const auto at = body_numbers_.find(&g); at != body_numbers_.end()) return at->second;
  std::vector<std::uint32_t> numbers(g.num_nodes()), records;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) numbers[i] = i;
  for (const Node& n : g.nodes()) records.push_back(write_record(n, numbers));
  JsonWriter json(kHtmlJson);
  json.begin_object().member("graph", g.name()).key("records");
  write_list(json, records);
  json.key("roots").raw(roots_text(g, numbers)).end_object();
  const auto number = static_cast<std::uint32_t>(bodies_.size());
  bodies_.push_back(json.take());
  body_numbers_.emplace(&g, number);
  return number;
}

void ReportRecords::write(JsonWriter& json) {
  json.key("records").raw(concat_text("[", records_, "]")).key("bodies").begin_array();
  for (const std::string& body : bodies_) json.raw(body);
  json.end_array();
}

}  // namespace rlx
