// Runs the ops that a result depends on one at a time, then follows its NaN back, element by element.
#include "rlx/runtime/nan_search.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/control.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx {
namespace {

bool found_in(double v, NanCheck check) { return std::isnan(v) || (check == NanCheck::NanOrInf && std::isinf(v)); }

template <class T>
std::optional<std::int64_t> first_among(const std::byte* data, std::int64_t count, NanCheck check) {
  const T* const values = reinterpret_cast<const T*>(data);
  for (std::int64_t i = 0; i < count; ++i)
    if (found_in(static_cast<double>(values[i]), check)) return i;
  return std::nullopt;
}

// The real or imaginary part of an element of any dtype.
double part(const Tensor& t, std::int64_t element, bool imag) {
  const auto at = static_cast<std::size_t>(2 * element + (imag ? 1 : 0));
  if (t.dtype() == DType::C64) return reinterpret_cast<const float*>(t.data())[at];
  if (t.dtype() == DType::C128) return reinterpret_cast<const double*>(t.data())[at];
  return imag ? 0 : t.at(element);
}

bool is_found(const Tensor& t, std::int64_t element, NanCheck check) {
  return may_be_nan(t.dtype()) && (found_in(part(t, element, false), check) ||
                                   (is_complex(t.dtype()) && found_in(part(t, element, true), check)));
}

std::string real_text(double v, DType t) {
  if (std::isnan(v)) return "nan";
  if (v == std::trunc(v) && std::fabs(v) < 1e9) return concat_text(static_cast<std::int64_t>(v));
  if (std::isinf(v) || t == DType::F64 || t == DType::C128) return concat_text(v);
  char text[32] = "";
  for (int digits = 1; digits <= 9; ++digits) {  // the fewest that read back as the same float
    std::snprintf(text, sizeof text, "%.*g", digits, v);
    if (std::strtof(text, nullptr) == static_cast<float>(v)) break;
  }
  return text;
}

std::string element_text(const Tensor& t, std::int64_t i) {
  if (t.dtype() == DType::Bool) return t.at_i64(i) ? "true" : "false";
  if (is_complex(t.dtype())) {
    const std::string im = real_text(part(t, i, true), t.dtype());
    return concat_text(real_text(part(t, i, false), t.dtype()), im.starts_with('-') ? "" : "+", im, "i");
  }
  return is_inexact(t.dtype()) || is_storage_only(t.dtype()) ? real_text(t.at(i), t.dtype()) : concat_text(t.at_i64(i));
}

// "[4, 8] f32 from -1.5 to 3"
std::string range_text(const Tensor& t) {
  if (t.num_elements() == 0 || !is_float(t.dtype())) return t.shape().text();
  double low = t.at(0), high = low;
  for (std::int64_t i = 1; i < t.num_elements(); ++i) {
    const double v = t.at(i);
    if (v < low || std::isnan(low)) low = v;
    if (v > high || std::isnan(high)) high = v;
  }
  return concat_text(t.shape(), " from ", real_text(low, t.dtype()), " to ", real_text(high, t.dtype()));
}

// The element of an operand that the element of an elementwise result reads.
std::int64_t broadcast_element(const Shape& result, std::int64_t element, const Shape& operand) {
  std::int64_t out = 0, step = 1;
  for (int a = result.rank() - 1, b = operand.rank() - 1; b >= 0; --a, --b) {
    const std::int64_t extent = result.dim(a).value(), theirs = operand.dim(b).value();
    if (theirs != 1) out += element % extent * step;
    step *= theirs;
    element /= extent;
  }
  return out;
}

std::string line_of(const SourceLoc& loc) { return loc.file ? loc.file : ""; }

// The searched elements of a value; empty: none.
using Marks = std::vector<bool>;
struct Element {
  std::uint32_t result = 0;
  std::int64_t at = 0;
};

class Search {
 public:
  explicit Search(const SearchedRun& run) : run_(run) {}
  /// `inputs`: the operands of a body, null for the graph of the run.
  std::optional<NanFound> in(const Graph& g, const std::vector<Tensor>* inputs, const std::vector<Value>& roots);

 private:
  struct Nodes {
    const Graph& g;
    std::vector<std::vector<Tensor>> results;
    std::vector<std::vector<Marks>> marks;
    const Tensor& at(Value v) const { return results[v.node.index][v.result]; }
  };
  Tensor leaf(const Graph& g, NodeId id, const std::vector<Tensor>* inputs) const;
  std::vector<Tensor> run_node(const Nodes& s, NodeId id) const;
  bool mark_all(Nodes& s, Value v) const;
  void mark(Nodes& s, Value v, std::int64_t element) const;
  std::optional<Element> mark_operands(Nodes& s, NodeId id) const;
  std::optional<Element> through_elementwise(Nodes& s, NodeId id, bool& done) const;
  bool through_moves(Nodes& s, NodeId id, std::optional<Element>& born) const;
  NanFound described(const Nodes& s, NodeId id, Element e) const;
  std::optional<NanFound> inside(const Nodes& s, NodeId id);
  std::optional<NanFound> in_body(const Nodes& s, NodeId id, const Graph& body, const std::vector<Tensor>& inputs,
                                  const std::vector<std::size_t>& outputs, const std::string& place);
  std::optional<NanFound> in_loop(const Nodes& s, NodeId id);
  bool wants(const Nodes& s, NodeId id, std::size_t result) const {
    const std::vector<Marks>& m = s.marks[id.index];
    return result < m.size() && !m[result].empty();
  }

  const SearchedRun& run_;
};

Tensor Search::leaf(const Graph& g, NodeId id, const std::vector<Tensor>* inputs) const {
  const Node& n = g.node(id);
  if (const auto* c = n.op.get_if<ops::Constant>()) return c->value;
  if (inputs) {
    const std::vector<NodeId> all = g.leaves(OpKind::Input);
    return (*inputs)[static_cast<std::size_t>(std::find(all.begin(), all.end(), id) - all.begin())];
  }
  const std::string& name = g.leaf_name(id);
  if (n.kind() == OpKind::Param) return run_.param(name);
  return n.kind() == OpKind::State ? run_.states.at(name) : run_.inputs.at(name);
}

// A graph of this op alone, on the device of the run. Weights and constants stay what they are, because a device may
// pack or fold them.
std::vector<Tensor> Search::run_node(const Nodes& s, NodeId id) const {
  const Node& n = s.g.node(id);
  if (run_.other_ranks && is_ordered(n.op) && n.kind() != OpKind::Custom)
    throw Error(
        ErrorCode::Unsupported,
        concat_text(op_text_name(n.op), " needs all ranks of the mesh, and this one cannot run it again alone"));
  Graph one(op_text_name(n.op));
  std::vector<Value> operands;
  std::vector<Tensor> inputs;
  NamedTensors params;
  for (std::size_t k = 0; k < n.inputs.size(); ++k) {
    const auto known = std::find(n.inputs.begin(), n.inputs.begin() + static_cast<std::ptrdiff_t>(k), n.inputs[k]);
    if (static_cast<std::size_t>(known - n.inputs.begin()) != k) {
      operands.push_back(operands[static_cast<std::size_t>(known - n.inputs.begin())]);
      continue;
    }
    const Node& from = s.g.node(n.inputs[k].node);
    const Tensor& value = s.at(n.inputs[k]);
    if (from.kind() == OpKind::Constant) {
      operands.push_back(one.add(from.op, std::vector<Value>()));
    } else if (const auto* param = from.op.get_if<ops::Param>()) {
      operands.push_back(one.param(concat_text("w", k), value.shape(), param->mode));
      params.emplace(concat_text("w", k), value);
    } else {
      operands.push_back(one.input(concat_text("x", k), value.shape()));
      inputs.push_back(value);
    }
  }
  const Expr result = one.add(n.op, operands, n.origin.loc);
  std::vector<Value> outputs;
  for (std::uint32_t r = 0; r < n.num_results(); ++r) outputs.emplace_back(result.value().node, r);
  one.set_outputs(std::move(outputs));
  return run_.compile(std::move(one), params)(inputs);
}

void Search::mark(Nodes& s, Value v, std::int64_t element) const {
  std::vector<Marks>& results = s.marks[v.node.index];
  if (results.size() <= v.result) results.resize(s.g.node(v.node).num_results());
  Marks& m = results[v.result];
  if (m.empty()) m.resize(static_cast<std::size_t>(s.at(v).num_elements()));
  m[static_cast<std::size_t>(element)] = true;
}

bool Search::mark_all(Nodes& s, Value v) const {
  const Tensor& t = s.at(v);
  bool any = false;
  for (std::int64_t i = 0; may_be_nan(t.dtype()) && i < t.num_elements(); ++i)
    if (is_found(t, i, run_.check)) mark(s, v, i), any = true;
  return any;
}

// Each element of an elementwise result reads one element of each operand.
std::optional<Element> Search::through_elementwise(Nodes& s, NodeId id, bool& done) const {
  const Node& n = s.g.node(id);
  done = op_def(n.op).elementwise != ElementwiseKind::No && n.num_results() == 1;
  std::optional<Element> born;
  if (!done) return born;
  const Marks wanted = s.marks[id.index][0];
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    bool inherited = false;
    for (std::size_t k = 0; k < n.inputs.size(); ++k) {
      const Tensor& operand = s.at(n.inputs[k]);
      const auto element = static_cast<std::int64_t>(i);
      if (n.kind() == OpKind::Where && k != 0) {  // reads the branch that the condition selects
        const Tensor& cond = s.at(n.inputs[0]);
        if ((cond.at_i64(broadcast_element(n.shape(), element, cond.shape())) != 0) != (k == 1)) continue;
      }
      const std::int64_t at = broadcast_element(n.shape(), element, operand.shape());
      if (is_found(operand, at, run_.check)) mark(s, n.inputs[k], at), inherited = true;
    }
    if (!inherited && !born) born = Element{0, static_cast<std::int64_t>(i)};
  }
  return born;
}

// Ops that only move elements. Moving the numbers of the elements shows where each came from. Returns false for an op
// of which this is not so, such as a sort.
bool Search::through_moves(Nodes& s, NodeId id, std::optional<Element>& born) const {
  const Node& n = s.g.node(id);
  if (op_def(n.op).precision != PrecisionCategory::DataMovement || n.num_results() != 1 ||
      !op_def(n.op).reference.has())
    return false;
  struct Source {
    std::size_t operand;
    std::int64_t first;
  };
  std::vector<Tensor> numbers;
  std::vector<Source> sources;
  std::int64_t count = 1;  // 0: an element of no operand, such as padding
  for (std::size_t k = 0; k < n.inputs.size(); ++k) {
    const Tensor& operand = s.at(n.inputs[k]);
    numbers.push_back(operand);
    if (operand.dtype() != n.shape().dtype()) continue;
    Tensor numbered = Tensor::zeros(operand.shape().with_dtype(DType::F64));
    for (std::int64_t i = 0; i < operand.num_elements(); ++i) numbered.set(i, static_cast<double>(count + i));
    numbers.back() = std::move(numbered);
    sources.push_back({k, count});
    count += operand.num_elements();
  }
  Tensor from;
  try {
    from = evaluate_op(n.op, numbers).at(0);
  } catch (const Error&) {
    return false;
  }
  const Tensor& result = s.at(Value(id));
  if (from.num_elements() != result.num_elements()) return false;
  const auto source_of = [&](std::int64_t i) -> std::optional<std::pair<Value, std::int64_t>> {
    const double number = from.at(i);
    if (!(number >= 1) || number >= static_cast<double>(count) || number != std::trunc(number)) return std::nullopt;
    const auto at = static_cast<std::int64_t>(number);
    std::size_t k = sources.size() - 1;
    while (sources[k].first > at) --k;
    return std::pair(n.inputs[sources[k].operand], at - sources[k].first);
  };
  for (std::int64_t i = 0; i < result.num_elements(); ++i)
    if (const auto source = source_of(i);
        source && element_text(s.at(source->first), source->second) != element_text(result, i))
      return false;
  const Marks wanted = s.marks[id.index][0];
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    if (const auto source = source_of(static_cast<std::int64_t>(i)))
      mark(s, source->first, source->second);
    else if (!born)
      born = Element{0, static_cast<std::int64_t>(i)};
  }
  return true;
}

// Marks the elements of the operands that the marked elements of the results come from. Returns the first that comes
// from none.
std::optional<Element> Search::mark_operands(Nodes& s, NodeId id) const {
  bool done = false;
  std::optional<Element> born = through_elementwise(s, id, done);
  if (done || through_moves(s, id, born)) return born;
  bool inherited = false;
  for (Value v : s.g.node(id).inputs) inherited = mark_all(s, v) || inherited;
  if (inherited) return std::nullopt;
  const std::vector<Marks>& results = s.marks[id.index];
  for (std::uint32_t r = 0; r < results.size(); ++r)
    for (std::size_t i = 0; i < results[r].size(); ++i)
      if (results[r][i]) return Element{r, static_cast<std::int64_t>(i)};
  return std::nullopt;
}

std::optional<NanFound> Search::in(const Graph& g, const std::vector<Tensor>* inputs, const std::vector<Value>& roots) {
  std::vector<bool> needed(g.num_nodes(), false);
  for (Value v : roots) needed[v.node.index] = true;
  for (std::size_t i = g.num_nodes(); i-- > 0;)
    if (needed[i])
      for (Value v : g.nodes()[i].inputs) needed[v.node.index] = true;
  Nodes s{g, std::vector<std::vector<Tensor>>(g.num_nodes()), std::vector<std::vector<Marks>>(g.num_nodes())};
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
    if (needed[i])
      s.results[i] =
          op_def(g.nodes()[i].op).is_leaf() ? std::vector<Tensor>{leaf(g, NodeId{i}, inputs)} : run_node(s, NodeId{i});
  for (Value v : roots) mark_all(s, v);
  // Operands come before their users, so all marks of a node are set when the walk is at it.
  std::optional<std::pair<NodeId, Element>> first;
  for (std::uint32_t i = static_cast<std::uint32_t>(g.num_nodes()); i-- > 0;) {
    const NodeId id{i};
    if (s.marks[i].empty()) continue;
    if (op_def(g.node(id).op).is_leaf()) {
      const Marks& m = s.marks[i][0];
      first = {id, Element{0, std::find(m.begin(), m.end(), true) - m.begin()}};
    } else if (const std::optional<Element> born = mark_operands(s, id)) {
      first = {id, *born};
    }
  }
  if (!first) return std::nullopt;
  if (op_def(g.node(first->first).op).bodies == BodyKind::Programs)
    if (std::optional<NanFound> deeper = inside(s, first->first)) return deeper;
  return described(s, first->first, first->second);
}

NanFound Search::described(const Nodes& s, NodeId id, Element e) const {
  const Node& n = s.g.node(id);
  const Tensor& result = s.at(Value(id, e.result));
  NanFound out;
  out.origin.op = op_text_name(n.op);
  out.origin.label = node_label(s.g, id);
  out.origin.file = line_of(n.origin.loc);
  out.origin.line = n.origin.loc.line;
  out.origin.element = position_of(result.shape(), e.at);
  out.origin.value = not_finite_text(result, e.at);
  out.where = node_where(s.g, id);
  const std::string element = result.rank() == 0
                                  ? concat_text(" (", result.shape(), ")")
                                  : concat_text(" in element ", dims_text(out.origin.element), " of ", result.shape());
  if (op_def(n.op).is_leaf()) {
    const std::string named =
        n.kind() == OpKind::Constant ? "a constant" : concat_text(out.origin.op, " '", s.g.leaf_name(id), "'");
    out.sentence = concat_text(named, " holds ", out.origin.value, element);
    return out;
  }
  const bool elementwise = op_def(n.op).elementwise != ElementwiseKind::No;
  std::string operands;
  for (Value v : n.inputs) {
    const Tensor& t = s.at(v);
    out.origin.operands.push_back(elementwise ? element_text(t, broadcast_element(result.shape(), e.at, t.shape()))
                                              : range_text(t));
    operands += (operands.empty() ? "" : elementwise ? ", " : "; ") + out.origin.operands.back();
  }
  out.sentence = elementwise ? concat_text(out.origin.op, "(", operands, ") gives ", out.origin.value, element)
                             : concat_text(out.origin.op, " gives ", out.origin.value, element,
                                           operands.empty() ? "" : ", from operands ", operands);
  return out;
}

std::optional<NanFound> Search::in_body(const Nodes& s, NodeId id, const Graph& body, const std::vector<Tensor>& inputs,
                                        const std::vector<std::size_t>& outputs, const std::string& place) {
  std::vector<Value> roots;
  for (std::size_t k : outputs) roots.push_back(body.outputs()[k]);
  std::optional<NanFound> found = in(body, &inputs, roots);
  // An Input of the body is clean, because the operands of the node are.
  if (!found || found->origin.op == "input") return std::nullopt;
  found->where += concat_text("\n  in ", place, " of ", node_where(s.g, id));
  return found;
}

std::optional<NanFound> Search::inside(const Nodes& s, NodeId id) {
  const Node& n = s.g.node(id);
  std::vector<Tensor> operands;
  for (Value v : n.inputs) operands.push_back(s.at(v));
  std::vector<std::size_t> wanted;
  for (std::size_t r = 0; r < n.num_results(); ++r)
    if (wants(s, id, r)) wanted.push_back(r);
  if (const auto* call = n.op.get_if<ops::Call>()) return in_body(s, id, *call->body, operands, wanted, "the body");
  if (const auto* branch = n.op.get_if<ops::If>()) {
    const bool taken = operands[0].at_i64(0) != 0;
    operands.erase(operands.begin());
    return in_body(s, id, taken ? *branch->then : *branch->otherwise, operands, wanted,
                   taken ? "the first branch" : "the second branch");
  }
  return in_loop(s, id);
}

// Drives the loop from here, up to the first iteration whose results have such an element.
std::optional<NanFound> Search::in_loop(const Nodes& s, NodeId id) {
  const Node& n = s.g.node(id);
  const auto* scan = n.op.get_if<ops::Scan>();
  const auto* loop = n.op.get_if<ops::While>();
  if (!scan && !loop) return std::nullopt;
  const Graph& body = scan ? *scan->body : *loop->body;
  const auto invariants = static_cast<std::size_t>(scan ? scan->invariants : loop->invariants);
  const std::size_t carries = scan ? static_cast<std::size_t>(scan->carries) : n.inputs.size() - invariants;
  std::vector<Tensor> state;  // invariants, carries
  for (std::size_t k = 0; k < invariants + carries; ++k) state.push_back(s.at(n.inputs[k]));
  const SmallProgram step = run_.compile(Graph(body), {});
  const SmallProgram go_on = scan ? SmallProgram() : run_.compile(Graph(*loop->cond), {});
  const std::optional<std::int64_t> trips = scan ? scan->length[0].value() : loop->max_trips;
  for (std::int64_t done = 0; !trips || done < *trips; ++done) {
    if (loop && go_on(state).at(0).at_i64(0) == 0) break;
    const std::int64_t t = scan && scan->reverse ? *trips - 1 - done : done;
    std::vector<Tensor> inputs = state;
    for (std::size_t k = state.size(); k < n.inputs.size(); ++k) {
      const Tensor& xs = s.at(n.inputs[k]);
      std::vector<std::int64_t> dims = xs.dims();
      dims.erase(dims.begin());
      inputs.push_back(xs.rows(t, 1).reshaped(dims));
    }
    std::vector<Tensor> outputs = step(inputs);
    std::vector<std::size_t> bad;
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if ((k < carries || wants(s, id, k)) && first_not_finite(outputs[k], run_.check)) bad.push_back(k);
    if (!bad.empty()) {
      std::optional<NanFound> found = in_body(s, id, body, inputs, bad, concat_text("iteration ", t));
      if (found) found->origin.iterations.insert(found->origin.iterations.begin(), t);
      return found;
    }
    for (std::size_t k = 0; k < carries; ++k) state[invariants + k] = std::move(outputs[k]);
  }
  return std::nullopt;
}

}  // namespace

bool may_be_nan(DType t) { return is_inexact(t) || t == DType::F8E4M3 || t == DType::F8E5M2; }

std::optional<std::int64_t> first_not_finite(const Tensor& t, NanCheck check) {
  const std::int64_t n = t.num_elements();
  if (check == NanCheck::Off || n == 0 || !may_be_nan(t.dtype())) return std::nullopt;
  const auto whole = [](std::optional<std::int64_t> half) { return half ? std::optional(*half / 2) : half; };
  switch (t.dtype()) {
    case DType::F32: return first_among<float>(t.data(), n, check);
    case DType::F64: return first_among<double>(t.data(), n, check);
    case DType::C64: return whole(first_among<float>(t.data(), 2 * n, check));
    case DType::C128: return whole(first_among<double>(t.data(), 2 * n, check));
    default: break;
  }
  for (std::int64_t i = 0; i < n; ++i)
    if (found_in(t.at(i), check)) return i;
  return std::nullopt;
}

std::string not_finite_text(const Tensor& t, std::int64_t element) {
  const double re = part(t, element, false), im = is_complex(t.dtype()) ? part(t, element, true) : 0;
  if (std::isnan(re) || std::isnan(im)) return "nan";
  const double v = std::isinf(re) ? re : im;
  return v > 0 ? "inf" : "-inf";
}

std::vector<std::int64_t> position_of(const Shape& shape, std::int64_t element) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(shape.rank()));
  for (int a = shape.rank() - 1; a >= 0; --a) {
    out[static_cast<std::size_t>(a)] = element % shape.dim(a).value();
    element /= shape.dim(a).value();
  }
  return out;
}

std::optional<NanFound> find_nan(const SearchedRun& run, const std::vector<Value>& roots) {
  return Search(run).in(run.graph, nullptr, roots);
}

}  // namespace rlx
