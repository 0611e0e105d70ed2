// eliminate-common-subexpressions: merges equal ops on equal operands into one node.
#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/ir/rewrite/roots.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15ULL;  // 2^64 / golden ratio
  return h ^ (h >> 29);
}

std::uint64_t hash_bytes(std::uint64_t h, const void* data, std::size_t size) {
  // A prefix is enough: same_op decides equality, and large weights must not be read as a whole.
  const auto* p = static_cast<const unsigned char*>(data);
  const std::size_t used = std::min<std::size_t>(size, 1024);
  h = mix(h, size);
  std::size_t i = 0;
  for (; i + 8 <= used; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, p + i, 8);
    h = mix(h, word);
  }
  for (; i < used; ++i) h = mix(h, p[i]);
  return h;
}

// The hash of everything that same_op compares. Ops that differ only in a number inside a body must not collide.
struct AttrHash {
  std::uint64_t h;
  void add_op(const OpBox& op) {
    h = mix(h, static_cast<std::uint64_t>(op.kind()));
    for (const AttrField& f : attr_fields(op.kind())) std::visit(*this, f.get(op.data()));
  }
  void operator()(std::monostate) { h = mix(h, 1); }
  void operator()(bool v) { h = mix(h, v ? 3 : 2); }
  void operator()(std::int64_t v) { h = mix(h, static_cast<std::uint64_t>(v)); }
  void operator()(double v) { h = mix(h, std::bit_cast<std::uint64_t>(v)); }
  void operator()(const std::string& v) { h = hash_bytes(h, v.data(), v.size()); }
  void operator()(DType v) { h = mix(h, static_cast<std::uint64_t>(v)); }
  void operator()(const Dims& v) {
    h = mix(h, v.size());
    for (const Dim& d : v) {
      if (d.is_static())
        (*this)(d.value());
      else
        (*this)(d.text());
    }
  }
  void operator()(const std::vector<std::int64_t>& v) { h = hash_bytes(h, v.data(), v.size() * sizeof(std::int64_t)); }
  void operator()(const std::vector<double>& v) { h = hash_bytes(h, v.data(), v.size() * sizeof(double)); }
  void operator()(const std::vector<std::byte>& v) { h = hash_bytes(h, v.data(), v.size()); }
  void operator()(const Tensor& v) {
    (*this)(v.shape().dims());
    (*this)(v.dtype());
    if (!v.empty()) h = hash_bytes(h, v.data(), v.size_bytes());
  }
  void operator()(Value v) { h = mix(h, std::uint64_t{v.node.index} << 8 | v.result); }
  void operator()(const Subgraph& v) {
    h = mix(h, v ? v->num_nodes() : 0);
    if (!v) return;
    for (const Node& n : v->nodes()) {
      add_op(n.op);
      for (Value in : n.inputs) (*this)(in);
    }
    for (Value out : v->outputs()) (*this)(out);
  }
};

// True for sums and products, which do not depend on the order of their operands, bit for bit.
bool commutes(const OpBox& op) {
  const auto* b = op.get_if<ops::Binary>();
  return b && (b->fn == BinaryKind::Add || b->fn == BinaryKind::Mul);
}

// The operands as values of the new graph, in a canonical order if the order has no effect.
template <class Map>
void key_of(const Node& n, const Map& mapped, std::vector<Value>& key) {
  key.clear();
  for (Value v : n.inputs) key.push_back(mapped(v));
  if (commutes(n.op)) std::sort(key.begin(), key.end());
}

std::uint64_t hash_node(const OpBox& op, const std::vector<Value>& key) {
  AttrHash a{0};
  a.add_op(op);
  for (Value v : key) a(v);
  return a.h;
}

std::optional<Graph> run_eliminate_common_subexpressions(const Graph& g, const PassContext& context) {
  std::unordered_multimap<std::uint64_t, std::uint32_t> seen;
  std::vector<std::uint32_t> first_of(g.num_nodes());  // for each node the earliest equal node
  // Operands are compared by their earliest equal value.
  const auto first_equal = [&](Value v) { return Value(NodeId{first_of[v.node.index]}, v.result); };
  std::vector<Value> key, other_key;
  bool any = false;
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    const Node& n = g.nodes()[i];
    first_of[i] = i;
    const OpKind kind = n.kind();
    if (is_named_leaf(kind) || is_ordered(n.op)) continue;  // identified by name; ordered ops must all run
    key_of(n, first_equal, key);
    const std::uint64_t h = hash_node(n.op, key);
    auto [first, last] = seen.equal_range(h);
    for (auto it = first; it != last && first_of[i] == i; ++it) {
      const Node& other = g.nodes()[it->second];
      if (other.kind() != kind || !(other.shapes == n.shapes)) continue;
      key_of(other, first_equal, other_key);
      const bool together = kind == OpKind::Constant || context.together(g, NodeId{i}, NodeId{it->second});
      if (together && key == other_key && same_op(n.op, other.op)) first_of[i] = it->second;
    }
    if (first_of[i] == i)
      seen.emplace(h, i);
    else
      any = true;
  }
  if (!any) return std::nullopt;
  return replace_nodes(g, eliminate_common_subexpressions.name, [&](Rebuilder& r, NodeId id) -> Replacement {
    const NodeId first{first_of[id.index]};
    if (first == id) return std::nullopt;
    std::vector<Expr> results;
    for (std::uint32_t k = 0; k < g.node(id).num_results(); ++k) results.push_back(r.expr(Value(first, k)));
    return results;
  });
}

}  // namespace

const Pass eliminate_common_subexpressions{
    "eliminate-common-subexpressions",
    "Keeps one of several nodes with the same op, attributes (bit for bit) and operands, placed on one device; "
    "operands of sums and products may be in either order. Legal: the nodes are pure; ordered ops stay.",
    run_eliminate_common_subexpressions};

}  // namespace rlx
