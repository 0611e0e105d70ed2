// sink-dequantize: moves dequantize after data movement, so that fewer bytes are decoded and only quantized values
// move.
#include <algorithm>
#include <variant>

#include "rlx/ir/graph.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/ops/shape.h"
#include "rlx/ir/rewrite/rebuild.h"
#include "rlx/passes/passes.h"

namespace rlx {
namespace {

constexpr std::string_view kDequantizePattern = "sink_dequantize";

// A Dequantize with its operands.
struct Coded {
  ops::Dequantize op;
  Expr codes;
  std::optional<Expr> scale, zero_point, global_scale;
  std::string label;  // views of quantized values find it by its label
  bool in_blocks() const { return is_block_scheme(op.scheme); }
  bool per_tensor() const { return !in_blocks() && !op.axis; }
  bool per_index() const { return op.axis && op.block == 0; }

  // Applies the same change to scale and zero point.
  template <class F>
  void move_scales(F f) {
    if (scale) scale = f(*scale);
    if (zero_point) zero_point = f(*zero_point);
  }
  Expr decode(Graph& g) const {
    std::vector<std::pair<std::string_view, Expr>> operands{{"codes", codes}};
    if (scale) operands.emplace_back("scale", *scale);
    if (zero_point) operands.emplace_back("zero_point", *zero_point);
    if (global_scale) operands.emplace_back("global_scale", *global_scale);
    const Expr y = g.add_named(op, operands);
    if (!label.empty()) g.set_label(y.value().node, label);
    return y;
  }
};

std::optional<Coded> coded(Graph& g, const Expr& x) {
  const Node& n = g.node(x.value().node);
  const auto* op = n.op.get_if<ops::Dequantize>();
  if (!op) return std::nullopt;
  Coded c{*op, {}, {}, {}, {}, n.origin.label};
  const int count = static_cast<int>(n.inputs.size());
  const auto operand = [&](std::string_view name) -> std::optional<Expr> {
    const std::optional<int> i = find_operand(n.op, count, name);
    return i ? std::optional(g.expr(n.inputs[static_cast<std::size_t>(*i)])) : std::nullopt;
  };
  c.codes = *operand("codes");
  c.scale = operand("scale");
  c.zero_point = operand("zero_point");
  c.global_scale = operand("global_scale");
  return c;
}

// Why a move is not possible.
struct MoveRefusal {
  MissReason reason;
  std::string detail;
};
using Moved = std::variant<Expr, MoveRefusal>;

class Sink {
 public:
  Sink(Graph& g, const Node& n) : g_(g), n_(n) {}

  Moved gather(Coded c, Expr indices) {
    const auto& op = n_.op.as<ops::Gather>();
    if (op.axes.size() != 1) return MoveRefusal{MissReason::ShapeMismatch, "the gather indexes several axes"};
    if (op.mode != IndexMode::Clamp)
      return MoveRefusal{MissReason::ShapeMismatch, "the gather fills elements out of range"};
    const std::int64_t axis = op.axes[0];
    const int rank = c.codes.rank(), grown = indices.rank() - 1;
    if (c.in_blocks()) {
      if (axis == rank - 1)
        return MoveRefusal{MissReason::ShapeMismatch, "the gather selects single elements of blocks"};
      c.op.dims = n_.shape().dims();
    } else if (c.per_index() && *c.op.axis == axis) {
      // With one scale per index, the scales are gathered too, as a list.
      if (grown != 0) {
        Dim count(1);
        for (const Dim& d : indices.shape().dims()) count = count * d;
        indices = g_.reshape(indices, {count});
      }
      c.move_scales([&](Expr s) { return g_.gather(s, indices, 0); });
    } else if (c.op.axis) {
      if (c.op.block > 1 && *c.op.axis == axis)
        return MoveRefusal{MissReason::ShapeMismatch,
                           concat_text("the scales have blocks of ", c.op.block, " along the gathered axis ", axis)};
      if (c.op.block > 0) c.move_scales([&](Expr s) { return g_.gather(s, indices, axis); });
      if (*c.op.axis > axis) *c.op.axis += grown;
      if (*c.op.axis == axis && c.op.block == 1 && grown != 0)
        return MoveRefusal{MissReason::ShapeMismatch, "the scales are along the gathered axis"};
    }
    c.codes = g_.gather(c.codes, indices, axis);
    Expr y = c.decode(g_);
    return y.shape().dims() == n_.shape().dims() ? y : g_.reshape(y, n_.shape().dims());
  }

  Moved slice(Coded c) {
    ops::Slice op = n_.op.as<ops::Slice>();
    op.strides.resize(op.starts.size(), 1);  // empty strides are steps of 1
    const auto cut = [&](Expr x, const Dims& starts, const Dims& limits) {
      return g_.slice(x, starts, limits, op.strides);
    };
    Dims starts = op.starts, limits = op.limits;
    if (c.in_blocks()) {
      const BlockLayout& l = block_layout(c.op.scheme);
      const Dims& x = c.op.dims;
      if (!whole_blocks(starts.back(), limits.back(), op.strides.back(), x.back(), l.elements))
        return MoveRefusal{MissReason::ShapeMismatch, concat_text("the slice splits blocks of ", l.elements)};
      starts.back() = Dim(starts.back().value() / l.elements * l.bytes);
      limits.back() = Dim(limits.back().value() / l.elements * l.bytes);
      c.codes = cut(c.codes, starts, limits);
      c.op.dims = n_.shape().dims();
      return c.decode(g_);
    }
    if (c.per_index()) {
      const auto a = static_cast<std::size_t>(*c.op.axis);
      c.move_scales([&](Expr s) { return g_.slice(s, {starts[a]}, {limits[a]}, {op.strides[a]}); });
    } else if (c.op.axis) {
      const auto a = static_cast<std::size_t>(*c.op.axis);
      const std::int64_t block = c.op.block;
      const Dim& extent = c.codes.dim(static_cast<int>(a));
      const bool all = starts[a].is_static(0) && limits[a] == extent && op.strides[a] == 1;
      if (!all && block > 1 && !whole_blocks(starts[a], limits[a], op.strides[a], extent, block))
        return MoveRefusal{MissReason::ShapeMismatch, concat_text("the slice splits blocks of ", block)};
      Dims from = starts, to = limits;
      if (all) {
        if (c.scale) to[a] = c.scale->dim(static_cast<int>(a));
        if (!c.scale && c.zero_point) to[a] = c.zero_point->dim(static_cast<int>(a));
      } else if (block > 1) {
        from[a] = Dim(starts[a].value() / block);
        to[a] = Dim((limits[a].value() + block - 1) / block);
      }
      c.move_scales([&](Expr s) { return cut(s, from, to); });
    }
    c.codes = cut(c.codes, starts, limits);
    return c.decode(g_);
  }

  Moved transpose(Coded c) {
    const auto& perm = n_.op.as<ops::Transpose>().perm;
    if (c.in_blocks()) {
      if (perm.back() != static_cast<std::int64_t>(perm.size()) - 1)
        return MoveRefusal{MissReason::AxisNotLast, "the transpose moves the axis of the blocks"};
      c.op.dims = n_.shape().dims();
    }
    if (c.op.axis) {
      if (c.op.block > 0) c.move_scales([&](Expr s) { return g_.transpose(s, perm); });
      c.op.axis = std::find(perm.begin(), perm.end(), *c.op.axis) - perm.begin();
    }
    c.codes = g_.transpose(c.codes, perm);
    return c.decode(g_);
  }

  Moved concat(const std::vector<Coded>& parts) {
    const std::int64_t axis = n_.op.as<ops::Concat>().axis;
    Coded c = parts[0];
    bool same_scales = true;
    for (const Coded& p : parts) {
      const bool alike = p.op.scheme == c.op.scheme && p.op.axis == c.op.axis && p.op.block == c.op.block &&
                         p.op.dtype == c.op.dtype && p.op.present == c.op.present &&
                         p.codes.dtype() == c.codes.dtype() && same(p.global_scale, c.global_scale) &&
                         (!p.scale || p.scale->dtype() == c.scale->dtype());
      if (!alike) return MoveRefusal{MissReason::ShapeMismatch, "its operands are quantized in different ways"};
      same_scales = same_scales && same(p.scale, c.scale) && same(p.zero_point, c.zero_point);
    }
    const auto joined = [&](auto part_of, std::int64_t along) {
      std::vector<Expr> list;
      for (const Coded& p : parts) list.push_back(part_of(p));
      return g_.concat(list, along);
    };
    const auto join_scales = [&](std::int64_t along, auto form) {
      if (c.scale) c.scale = joined([&](const Coded& p) { return form(p, *p.scale); }, along);
      if (c.zero_point) c.zero_point = joined([&](const Coded& p) { return form(p, *p.zero_point); }, along);
    };
    const auto as_is = [](const Coded&, Expr s) { return s; };
    if (c.in_blocks()) {
      c.op.dims = n_.shape().dims();
    } else if (c.per_tensor()) {
      if (!same_scales) {  // one scale per index of the joined axis
        c.op.axis = axis;
        join_scales(0, [&](const Coded& p, Expr s) { return g_.expand(s, {p.codes.dim(static_cast<int>(axis))}); });
      }
    } else if (c.per_index()) {
      if (*c.op.axis == axis)
        join_scales(0, as_is);
      else if (!same_scales)
        return MoveRefusal{MissReason::ShapeMismatch,
                           concat_text("scales along axis ", *c.op.axis,
                                       " differ between the operands, which are joined along axis ", axis)};
    } else {
      if (*c.op.axis == axis)
        for (std::size_t i = 0; i + 1 < parts.size(); ++i)
          if (const Dim& d = parts[i].codes.dim(static_cast<int>(axis)); !d.is_static() || d.value() % c.op.block != 0)
            return MoveRefusal{MissReason::ShapeMismatch,
                               concat_text("extent ", d, " ends inside a block of ", c.op.block)};
      join_scales(axis, as_is);
    }
    c.codes = joined([](const Coded& p) { return p.codes; }, axis);
    return c.decode(g_);
  }

 private:
  static bool same(const std::optional<Expr>& a, const std::optional<Expr>& b) {
    return a.has_value() == b.has_value() && (!a || a->value() == b->value());
  }
  static bool whole_blocks(const Dim& start, const Dim& limit, std::int64_t stride, const Dim& extent,
                           std::int64_t block) {
    return stride == 1 && start.is_static() && limit.is_static() && start.value() % block == 0 &&
           (limit.value() % block == 0 || limit == extent);
  }
  Graph& g_;
  const Node& n_;
};

std::optional<Graph> run_sink_dequantize(const Graph& g, const PassContext& context) {
  if (std::none_of(g.nodes().begin(), g.nodes().end(), [](const Node& n) { return n.kind() == OpKind::Dequantize; }))
    return std::nullopt;
  const UseIndex uses(g);
  return replace_nodes(g, sink_dequantize.name, [&](Rebuilder& r, NodeId id) -> Replacement {
    const Node& n = g.node(id);
    const OpKind kind = n.kind();
    const bool reads_part = kind == OpKind::Gather || kind == OpKind::Slice;
    if (!reads_part && kind != OpKind::Transpose && kind != OpKind::Concat) return std::nullopt;
    if (context.claims->reads_encoded(g, id, 0)) return std::nullopt;  // its kernel decodes only what it gathers
    const std::vector<Expr> operands = r.operands(id);
    std::vector<Coded> parts;
    for (const Expr& x : operands)
      if (std::optional<Coded> c = coded(r.graph(), x)) parts.push_back(std::move(*c));
    const std::size_t wanted = kind == OpKind::Concat ? operands.size() : 1;
    if (parts.size() != wanted || !coded(r.graph(), operands[0])) return std::nullopt;
    // Decoding only a part is cheaper, unless another reader needs the whole decoded value anyway.
    Moved moved = MoveRefusal{MissReason::MultiConsumer, {}};
    std::string readers;
    if (!reads_part)
      for (Value v : n.inputs)
        if (!uses.single_use(v)) readers = concat_text(v, " has ", uses.use_count(v), " readers");
    Sink sink(r.graph(), n);
    if (!readers.empty())
      moved = MoveRefusal{MissReason::MultiConsumer, readers};
    else if (kind == OpKind::Gather)
      moved = sink.gather(parts[0], operands[1]);
    else if (kind == OpKind::Slice)
      moved = sink.slice(parts[0]);
    else if (kind == OpKind::Transpose)
      moved = sink.transpose(parts[0]);
    else
      moved = sink.concat(parts);
    if (const auto* stop = std::get_if<MoveRefusal>(&moved)) {
      context.missed(kDequantizePattern, g, id, stop->reason, stop->detail);
      return std::nullopt;
    }
    context.fused(kDequantizePattern);
    return {{std::get<Expr>(moved)}};
  });
}

}  // namespace

const Pass sink_dequantize{"sink-dequantize",
                           "Moves a dequantize after a gather, slice, transpose or concat, which then move quantized "
                           "values and scales: rows of a table are selected first and decoded after. Legal where "
                           "scales and blocks stay with their elements. Not after a transpose or concat if another "
                           "node reads the decoded value, nor where a kernel reads the quantized values itself.",
                           run_sink_dequantize};

}  // namespace rlx
