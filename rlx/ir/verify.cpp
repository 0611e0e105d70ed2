// The verifier of graphs.
#include "rlx/ir/verify.h"

#include <algorithm>
#include <map>
#include <set>

#include "rlx/ir/packed_layout.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/rewrite/symbol_order.h"

namespace rlx {
namespace {

constexpr std::string_view level_name(Level level) {
  return level == Level::Hir ? "HIR" : level == Level::Mir ? "MIR" : "LIR";
}

bool allowed(Level op, Level graph) { return op == Level::Mir || op == graph; }

class Verifier {
 public:
  Verifier(const Graph& g, Level level, bool is_body, int depth, std::vector<Diagnostic>& out)
      : g_(g), level_(level), is_body_(is_body), depth_(depth), out_(out) {}

  void run() {
    for (const auto& [name, info] : g_.symbols())
      if (info.min < 0 || info.min > info.max || info.divisor < 1)
        report(ErrorCode::InvalidArgument, concat_text("symbol ", name, " has impossible bounds [", info.min, ", ",
                                                       info.max, "] div ", info.divisor));
    sound_.assign(g_.num_nodes(), false);
    for (std::uint32_t i = 0; i < g_.num_nodes(); ++i) sound_[i] = check_node(NodeId{i});
    for (std::size_t i = 0; i < g_.outputs().size(); ++i)
      if (!exists(g_.outputs()[i]))
        report(ErrorCode::InvalidArgument,
               concat_text("output ", i, " is ", g_.outputs()[i], ", which does not exist"));
    check_states();
    check_sources();
  }

 private:
  void report(ErrorCode code, std::string message, std::string where = {}, std::string hint = {}) {
    out_.push_back({code, std::move(message), std::move(where), std::move(hint)});
  }
  void report_node(NodeId id, ErrorCode code, std::string message, std::string hint = {}) {
    report(code, concat_text(op_text_name(g_.node(id).op), ": ", message), node_where(g_, id), std::move(hint));
  }

  bool exists(Value v) const { return v.node.index < g_.num_nodes() && v.result < g_.node(v.node).num_results(); }

  // True when the users of the node can rely on its shapes.
  bool check_node(NodeId id) {
    const Node& n = g_.node(id);
    const OpDef& def = op_def(n.op);
    // The name of a mnemonic op needs its enum in range. Without that the node cannot be printed.
    if (!enums_in_range(id, def)) return false;
    if (!allowed(def.level, level_))
      report_node(
          id, ErrorCode::Unsupported,
          concat_text(def.name, " is a ", level_name(def.level), " op, but the graph is at level ", level_name(level_)),
          def.level == Level::Hir ? "lower the graph first" : "");
    if (is_body_ && (n.kind() == OpKind::Param || n.kind() == OpKind::State))
      report_node(id, ErrorCode::InvalidArgument, "a sub-graph may have only inputs, constants and ops",
                  "pass the value in as an operand");
    if (def.leaf == LeafKind::Named && !names_.emplace(g_.leaf_name(id), id).second)
      report_node(id, ErrorCode::InvalidArgument,
                  concat_text("the name '", g_.leaf_name(id), "' is already used by ", names_[g_.leaf_name(id)]),
                  "give every input, param and state its own name");
    if (n.shapes.empty()) {
      report_node(id, ErrorCode::InvalidArgument, "has no results");
      return false;
    }
    bool operands_ok = true;
    ShapeRefs shapes;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      Value v = n.inputs[i];
      if (!exists(v))
        report_node(id, ErrorCode::InvalidArgument, concat_text("operand ", i, " is ", v, ", which does not exist"));
      else if (v.node >= id)
        report_node(id, ErrorCode::InvalidArgument,
                    concat_text("operand ", i, " is ", v, ", which comes after its user"));
      else if (sound_[v.node.index]) {
        shapes.add(g_.shape(v));
        continue;
      }
      operands_ok = false;
    }
    if (!check_bodies(id, def) || !operands_ok) return false;
    Result<Shapes> inferred = infer_shapes(n.op, shapes);
    if (!inferred) {
      Diagnostic d = inferred.error();
      d.where = node_where(g_, id);
      out_.push_back(std::move(d));
      return false;
    }
    if (*inferred == n.shapes) return check_packed_layouts(id);
    std::string expected;
    for (const Shape& s : *inferred) expected += (expected.empty() ? "" : ", ") + s.text();
    report_node(id, ErrorCode::ShapeMismatch, concat_text("the results should be ", expected));
    return false;
  }

  bool enums_in_range(NodeId id, const OpDef& def) {
    for (const AttrField& f : def.attrs) {
      std::vector<std::int64_t> values;
      AttrValue v = f.get(g_.node(id).op.data());
      if (f.enum_names.empty()) continue;
      if (const auto* one = std::get_if<std::int64_t>(&v)) values = {*one};
      if (auto* list = std::get_if<std::vector<std::int64_t>>(&v)) values = *list;
      for (std::int64_t e : values)
        if (e < 0 || static_cast<std::size_t>(e) >= f.enum_names.size()) {
          report(ErrorCode::InvalidArgument,
                 concat_text(def.name, ": attribute '", f.name, "' is ", e, ", outside its enum"), id.text());
          return false;
        }
    }
    return true;
  }

  bool check_bodies(NodeId id, const OpDef& def) {
    bool ok = true;
    for (const AttrField& f : def.attrs) {
      if (!holds_body(f.type)) continue;
      const auto body = std::get<Subgraph>(f.get(g_.node(id).op.data()));
      if (!body) continue;  // the shape rule reports it
      if (depth_ == kMaxBodyDepth) {
        report_node(id, ErrorCode::InvalidArgument,
                    concat_text("sub-graphs are nested more than ", kMaxBodyDepth, " deep"));
        return false;
      }
      std::size_t before = out_.size();
      Verifier(*body, level_, true, depth_ + 1, out_).run();
      for (std::size_t i = before; i < out_.size(); ++i)
        out_[i].where += concat_text(out_[i].where.empty() ? "in '" : "\n  in '", f.name, "' of ", node_where(g_, id));
      ok = ok && out_.size() == before;
    }
    return ok;
  }

  // Kernels rely on the packed layout of their operands. Only prepared weights, and body inputs that get one from their
  // node, have one.
  bool check_packed_layouts(NodeId id) {
    const Node& n = g_.node(id);
    const PackedLayout& own = packed_layout_of(g_, Value(id));
    if ((n.kind() == OpKind::Param || n.kind() == OpKind::Input) && !own.empty() &&
        (level_ != Level::Lir || (n.kind() == OpKind::Input && !is_body_))) {
      report_node(id, ErrorCode::InvalidArgument,
                  concat_text("'", g_.leaf_name(id), "' has the packed layout '", packed_layout_text(own), "'"),
                  "remove the packed layout: the compiler chooses packed layouts");
      return false;
    }
    const std::optional<LoopParts> loop = loop_parts(n.op);
    bool ok = true;
    for (const Subgraph& body : body_graphs(n.op)) {
      const std::vector<NodeId> inputs = body->leaves(OpKind::Input);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        PackedLayout given;
        const std::size_t k = n.kind() == OpKind::If ? i + 1 : i;
        if ((loop || n.kind() == OpKind::If) && k < n.inputs.size()) given = packed_layout_of(g_, n.inputs[k]);
        if (loop && i >= loop->first_x() && given.count > 0 && given.bytes % given.count == 0)
          given = layout_of_one_matrix(given);
        const PackedLayout& taken = packed_layout_of(*body, Value(inputs[i]));
        const bool carry = loop && i >= loop->first_carry() && i < loop->first_x();
        if (taken == given && !(carry && !taken.empty())) continue;
        ok = false;
        report_node(id, ErrorCode::InvalidArgument,
                    concat_text("input '", body->leaf_name(inputs[i]), "' of the body has the packed layout '",
                                packed_layout_text(taken), "', but its operand has '", packed_layout_text(given), "'"));
      }
    }
    return ok;
  }

  // A node with a symbol in its shape runs after the value of the symbol is known, so no source may need the node.
  void check_sources() {
    if (g_.symbol_sources().empty()) return;
    bool sound = std::find(sound_.begin(), sound_.end(), false) == sound_.end();
    for (const auto& [name, source] : g_.symbol_sources()) {
      if (is_body_) {
        report(ErrorCode::InvalidArgument, concat_text("a sub-graph must not compute symbol ", name), {},
               "only the outer graph may compute symbols");
        sound = false;
        continue;
      }
      if (!exists(source)) {
        report(ErrorCode::InvalidArgument,
               concat_text("the source of symbol ", name, " is ", source, ", which does not exist"));
        sound = false;
        continue;
      }
      if (!(g_.shape(source) == Shape({}, DType::I64)))
        report(ErrorCode::ShapeMismatch,
               concat_text("the source of symbol ", name, " is ", source, " ", g_.shape(source)),
               node_where(g_, source.node), "an extent must be an I64 scalar");
    }
    if (!sound) return;
    for (OpKind kind : {OpKind::Input, OpKind::Param, OpKind::State})
      for (NodeId id : g_.leaves(kind))
        for (const std::string& name : symbols_of(g_.node(id)))
          if (g_.symbol_sources().contains(name)) {
            report(ErrorCode::InvalidArgument,
                   concat_text(op_def(kind).name, " '", g_.leaf_name(id), "' has symbol ", name,
                               ", whose value is computed"),
                   node_where(g_, id), "use another symbol for the shape, and slice the value to the computed extent");
            sound = false;
          }
    SymbolCircle circle;
    if (sound && !symbol_order(g_, &circle))
      report(ErrorCode::InvalidArgument,
             concat_text("symbol ", circle.symbol, " is used before its source ", g_.symbol_sources().at(circle.symbol),
                         ", which depends on it"),
             node_where(g_, circle.node), "build values with the symbol in their shape after the source");
  }

  void check_states() {
    std::set<std::string> updated;
    for (const Graph::StateUpdate& u : g_.state_updates()) {
      if (is_body_) {
        report(ErrorCode::InvalidArgument, concat_text("a sub-graph sets state '", u.name, "'"), {},
               "only the outer graph may set states");
        continue;
      }
      NodeId id = g_.find_leaf(OpKind::State, u.name);
      if (!id.valid())
        report(ErrorCode::NotFound, concat_text("set_state names '", u.name, "', which is not a state of the graph"));
      else if (!exists(u.value))
        report(ErrorCode::InvalidArgument,
               concat_text("the new value of state '", u.name, "' is ", u.value, ", which does not exist"));
      else if (!(g_.shape(u.value) == g_.shape(id)))
        report(ErrorCode::ShapeMismatch,
               concat_text("state '", u.name, "' is ", g_.shape(id), ", but its new value is ", g_.shape(u.value)),
               node_where(g_, u.value.node));
      if (!updated.insert(u.name).second)
        report(ErrorCode::InvalidArgument, concat_text("state '", u.name, "' is set twice"));
    }
  }

  const Graph& g_;
  Level level_;
  bool is_body_;
  int depth_;
  std::vector<Diagnostic>& out_;
  std::vector<bool> sound_;
  std::map<std::string, NodeId> names_;
};

}  // namespace

std::vector<Diagnostic> verify(const Graph& g, Level level) {
  std::vector<Diagnostic> out;
  Verifier(g, level, false, 0, out).run();
  return out;
}

void verify_or_throw(const Graph& g, Level level, std::string_view what) {
  std::vector<Diagnostic> problems = verify(g, level);
  if (problems.empty()) return;
  Diagnostic d = std::move(problems.front());
  d.message = concat_text(what, ": graph '", g.name(), "': ", d.message);
  if (problems.size() > 1)
    d.where += concat_text("\n  and ", problems.size() - 1, problems.size() == 2 ? " more problem" : " more problems");
  throw Error(std::move(d));
}

}  // namespace rlx
