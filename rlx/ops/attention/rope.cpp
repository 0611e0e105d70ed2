// Rope: rotary position embedding. Composite. The reference rotates each pair in double.
#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/ir/ops/rope.h"
#include "rlx/ops/elementwise/compute_in_f32.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

// The axes of batch, sequence and heads in x, by layout.
struct RopeAxes {
  int sequence;
  explicit RopeAxes(HeadLayout layout) : sequence(layout == HeadLayout::HeadsFirst ? 2 : 1) {}
};

// x with a separate axis for its heads: [B, S, H, D], or [B, H, S, D] when heads come first.
Expr as_heads(Graph& g, const ops::Rope& op, Expr x) {
  if (op.layout != HeadLayout::Merged) return x;
  return g.reshape(x, {x.dim(0), x.dim(1), *exact_div(x.dim(2), Dim(op.head_dim)), op.head_dim});
}

// The first and second elements of each rotated pair, [.., n_rot / 2] each.
std::pair<Expr, Expr> split_pairs(Graph& g, const ops::Rope& op, Expr heads) {
  const std::int64_t half = op.n_rot / 2;
  if (op.pairing == RopePairing::Half) return {g.narrow(heads, -1, 0, half), g.narrow(heads, -1, half, half)};
  Expr front = op.n_rot == op.head_dim ? heads : g.narrow(heads, -1, 0, op.n_rot);
  Dims pairs = front.shape().dims();
  pairs.back() = half;
  pairs.push_back(2);
  Expr split = g.reshape(front, pairs);
  return {g.squeeze(g.narrow(split, -1, 0, 1), -1), g.squeeze(g.narrow(split, -1, 1, 1), -1)};
}

// The first n_rot elements of each head rotated by (cos, sin). The others are copied, or 0 when `zero_rest` is set. x
// is in op.layout; tables are [S', T] or [B, S', T] with S' >= S.
Expr rotate(Graph& g, const ops::Rope& op, Expr x, Expr cos, Expr sin, bool zero_rest) {
  const Dims dims = x.shape().dims();
  const RopeAxes axes(op.layout);
  const Dim seq = dims[static_cast<std::size_t>(axes.sequence)];
  const std::int64_t half = op.n_rot / 2, rest = op.head_dim - op.n_rot;
  Expr heads = as_heads(g, op, x);
  auto table = [&](Expr t) {
    const int row_axis = t.rank() - 2;
    if (!(t.dim(row_axis) == seq)) t = g.narrow(t, row_axis, 0, seq);
    if (!t.dim(-1).is_static(half)) t = g.narrow(t, -1, 0, half);
    return g.unsqueeze(t, op.layout == HeadLayout::HeadsFirst ? row_axis : row_axis + 1);  // the axis of H
  };
  Expr c = table(cos), s = table(sin);
  auto [x1, x2] = split_pairs(g, op, heads);
  Expr y1 = op.inverse ? x1 * c + x2 * s : x1 * c - x2 * s, y2 = op.inverse ? x2 * c - x1 * s : x2 * c + x1 * s;
  Expr rotated;
  if (op.pairing == RopePairing::Half) {
    rotated = g.concat({y1, y2}, -1);
  } else {
    Dims flat = heads.shape().dims();
    flat.back() = op.n_rot;
    rotated = g.reshape(g.concat({g.unsqueeze(y1, -1), g.unsqueeze(y2, -1)}, -1), flat);
  }
  if (rest) {
    if (zero_rest) {
      rotated = g.pad(rotated, {0, 0, 0, 0}, {0, 0, 0, rest});
    } else {
      rotated = g.concat({rotated, g.narrow(heads, -1, op.n_rot, rest)}, -1);
    }
  }
  return rotated.shape().dims() == dims ? rotated : g.reshape(rotated, dims);
}

struct RopeRules {
  // A table with one row for each element of a sequence: [B, S, T], or [S, T] when table and positions are the same for
  // all batch entries.
  static Expr at_positions(Graph& g, Expr table, std::optional<Expr> positions) {
    if (!positions) return table;
    const Dims& at = positions->shape().dims();
    if (table.rank() == 2) return g.gather(table, *positions, 0);  // clamps
    const Dim batch = table.dim(0), rows = table.dim(1), width = table.dim(2);
    if (batch.is_static(1) || at.size() == 1) {  // one table for all, or one row of positions for all tables
      if (at.size() == 1) return g.gather(table, *positions, 1);
      return g.gather(g.reshape(table, {rows, width}), *positions, 0);
    }
    // The rows of batch entry b begin at b R.
    const DType t = count_dtype(g, {{batch, rows}});
    const Expr extent = extent_of(g, table, 1, t);
    const Expr row = g.max(g.min(g.cast(*positions, t), extent - 1), 0) + rlx::positions(g, batch, 0, 2, t) * extent;
    return g.gather(g.reshape(table, {batch * rows, width}), row, 0);
  }

  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Rope>();
    const Shape &x = c.input(0), &cos = c.input(1), &sin = c.input(2);
    if (!is_float(x.dtype())) return c.dtype_error("x must be float, got ", x);
    if (auto e = c.check_same_dtype(0, 3)) return *e;
    if (op.head_dim < 2) return c.attr_error("head_dim must be at least 2, got ", op.head_dim);
    if (op.n_rot < 2 || op.n_rot > op.head_dim || op.n_rot % 2)
      return c.attr_error("n_rot must be even and in [2, head_dim = ", op.head_dim, "], got ", op.n_rot);
    const int rank = op.layout == HeadLayout::Merged ? 3 : 4;
    if (x.rank() != rank) return c.error("x must have rank ", rank, " in layout ", enum_name(op.layout), ", got ", x);
    if (op.layout == HeadLayout::Merged) {
      if (!exact_div(x.dim(2), Dim(op.head_dim)))
        return c.error("x ", x, " cannot be split into heads of ", op.head_dim, " elements");
    } else if (!x.dim(3).is_static(op.head_dim)) {
      return c.error("the last dimension of x ", x, " must be head_dim ", op.head_dim);
    }
    if (!(cos == sin)) return c.error("cos ", cos, " and sin ", sin, " must have the same shape");
    if (cos.rank() != 2 && cos.rank() != 3) return c.error("cos and sin must be [S, T] or [B, S, T], got ", cos);
    const Dim &seq = x.dim(RopeAxes(op.layout).sequence), &rows = cos.dim(-2), &width = cos.dim(-1);
    if (c.has("positions")) {
      const Shape& p = c.input("positions");
      if (p.dtype() != DType::I32) return c.dtype_error("positions must be I32, got ", p);
      const bool fits = p.rank() == 1 ? p.dim(0) == seq : p.rank() == 2 && p.dim(0) == x.dim(0) && p.dim(1) == seq;
      if (!fits) return c.error("positions must be [", seq, "] or [", x.dim(0), ", ", seq, "], got ", p);
      if (c.negative(rows - min(Dim(1), seq))) return c.error("cos and sin ", cos, " have no rows");
    }
    const bool longer = rows.is_static() && seq.is_static() && rows.value() >= seq.value();
    if (!c.has("positions") && !(rows == seq) && !longer)
      return c.error("cos and sin ", cos, " must have a row for each of the ", seq, " positions of x ", x);
    if (!width.is_static() || width.value() < op.n_rot / 2)
      return c.error("rows of cos and sin ", cos, " must have at least n_rot / 2 = ", op.n_rot / 2, " values");
    if (cos.rank() == 3 && !(cos.dim(0) == x.dim(0)) && !cos.dim(0).is_static(1))
      return c.error("cos and sin ", cos, " must have the batch of x ", x, " or 1");
    return make_shapes(x);
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const std::optional<Expr> at = c.optional_input("positions");
    const auto table = [&](int i) { return at_positions(g, widen(c.input(i)), at); };
    Expr y = rotate(g, c.op<ops::Rope>(), widen(c.input(0)), table(1), table(2), false);
    c.set_result(round_to(y, c.result_shape().dtype()));
  }
  // Adds the op with the operands that are present.
  static Expr emit(Graph& g, ops::Rope op, Expr x, Expr cos, Expr sin, const std::optional<Expr>& positions) {
    std::vector<std::pair<std::string_view, Expr>> operands{{"x", x}, {"cos", cos}, {"sin", sin}};
    if (positions) operands.emplace_back("positions", *positions);
    return g.add_named(op, operands);
  }
  // y1 = x1 cos - x2 sin, y2 = x2 cos + x1 sin: dx rotates back, dcos and dsin are sums over heads.
  static void vjp(VjpContext& c) {
    Graph& g = c.graph();
    const auto& op = c.op<ops::Rope>();
    const std::optional<Expr> at = c.optional_input("positions");
    ops::Rope back = op;
    back.inverse = !op.inverse;
    c.accumulate(0, emit(g, back, c.cotangent(), c.input(1), c.input(2), at));
    const auto [x1, x2] = split_pairs(g, op, as_heads(g, op, widen(c.input(0))));
    const auto [g1, g2] = split_pairs(g, op, as_heads(g, op, widen(c.cotangent())));
    const std::int64_t head_axis = op.layout == HeadLayout::HeadsFirst ? 1 : 2;
    const Shape& table = c.input(1).shape();
    auto to_table =
        [&](Expr d) {  // [B, S, H, n_rot / 2] summed over H, zeros in the columns and rows that are not read
          d = g.sum(d, {head_axis});
          const std::int64_t columns = table.dim(-1).value() - op.n_rot / 2;
          if (at) return to_rows(g, columns ? g.pad(d, {0, 0, 0}, {0, 0, columns}) : d, table, *at);
          const Dim rows = table.dim(-2) - d.dim(1);
          if (columns || !rows.is_static(0)) d = g.pad(d, {0, 0, 0}, {0, rows.value(), columns});
          return d;
        };
    c.accumulate(1, to_table(g1 * x1 + g2 * x2));
    Expr dsin = g2 * x1 - g1 * x2;
    c.accumulate(2, to_table(op.inverse ? -dsin : dsin));
  }
  // Adds d [B, S, T] into the table rows that it was read from.
  static Expr to_rows(Graph& g, Expr d, const Shape& table, Expr at) {
    const Dim batch = d.dim(0), seq = d.dim(1), width = d.dim(2);
    const bool own = table.rank() == 3 && !table.dim(0).is_static(1);
    const Dim rows = table.dim(-2), tables = own ? batch : Dim(1);
    const DType t = count_dtype(g, {{tables, rows}});
    const Expr extent = dim_value(g, rows, t);
    Expr row = g.max(g.min(g.cast(at, t), extent - 1), 0);
    if (own) row = row + positions(g, batch, 0, 2, t) * extent;
    if (row.rank() == 1) row = g.unsqueeze(row, 0);
    row = g.reshape(g.expand(row, {batch, seq}), {batch * seq});
    Expr zero = g.expand(g.scalar(0, d.dtype()), {tables * rows, width});
    return g.reshape(g.scatter_add(zero, row, g.reshape(d, {batch * seq, width}), 0), table.dims());
  }
  // Linear in x and in the tables. The elements that are not rotated do not depend on the tables.
  static void jvp(JvpContext& c) {
    Graph& g = c.graph();
    const auto& op = c.op<ops::Rope>();
    const std::optional<Expr> at = c.optional_input("positions");
    if (c.has_tangent(0)) c.add_tangent(0, emit(g, op, c.tangent(0), c.input(1), c.input(2), at));
    if (c.has_tangent(1) || c.has_tangent(2))
      c.add_tangent(0, rotate(g, op, widen(c.input(0)), at_positions(g, widen(c.tangent(1)), at),
                              at_positions(g, widen(c.tangent(2)), at), true));
  }
  // The batch is folded into B.
  static void batch(BatchContext& c) {
    Graph& g = c.graph();
    auto folded = [&](Expr x) {  // [V, B, ..] -> [V * B, ..]
      Dims dims(x.shape().dims().begin() + 1, x.shape().dims().end());
      dims[0] = x.dim(0) * x.dim(1);
      return g.reshape(x, dims);
    };
    // An operand with one entry for each of V and B when it has entries for either.
    auto own = [&](int i, int shared_rank) {
      Expr t = c.lifted(i);  // [V, ..] or [V, B or 1, ..]
      if (c.rank(i) == shared_rank) t = g.unsqueeze(t, 1);
      Dims dims = t.shape().dims();
      dims[1] = c.result_shape().dim(0);
      return folded(g.expand(t, dims));
    };
    const bool own_tables = c.is_batched(1) || c.is_batched(2) || c.rank(1) == 3;
    auto table = [&](int i) { return own_tables ? own(i, 2) : c.input(i); };
    std::optional<Expr> at;
    if (c.has("positions")) {
      const int i = c.index("positions");
      at = c.is_batched(i) || c.rank(i) == 2 ? own(i, 1) : c.input(i);
    }
    Expr y = emit(g, c.op<ops::Rope>(), folded(c.lifted(0)), table(1), table(2), at);
    c.set_result(g.reshape(y, prepend(c.batch_size(), c.result_shape().dims())));
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Rope>();
    const Tensor &x = a.in(0), &table = a.in(1);
    const std::vector<double> v = x.to_f64(), cos = a.in(1).to_f64(), sin = a.in(2).to_f64();
    Tensor& out = a.out();
    std::byte* p = out.mutable_data();
    const std::int64_t d = op.head_dim, batch = x.dim(0), seq = x.dim(RopeAxes(op.layout).sequence);
    const std::int64_t heads =
        op.layout == HeadLayout::Merged ? x.dim(2) / d : x.dim(op.layout == HeadLayout::HeadsFirst ? 1 : 2);
    const std::int64_t width = table.dim(-1), table_rows = table.dim(-2), half = op.n_rot / 2;
    const bool placed = a.has("positions");
    const auto row_of = [&](std::int64_t b, std::int64_t i) {
      if (!placed) return i;
      const Tensor& at = a.in("positions");
      return std::clamp<std::int64_t>(at.at_i64(at.rank() == 2 ? b * seq + i : i), 0, table_rows - 1);
    };
    const std::int64_t table_batch = table.rank() == 3 && table.dim(0) != 1 ? table_rows * width : 0;
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t s = 0; s < seq; ++s) {
        for (std::int64_t h = 0; h < heads; ++h) {
          const std::int64_t first =
              op.layout == HeadLayout::HeadsFirst ? ((b * heads + h) * seq + s) * d : ((b * seq + s) * heads + h) * d;
          for (std::int64_t i = 0; i < half; ++i) {
            const auto at =
                static_cast<std::size_t>(b * table_batch + row_of(b, s) * width + i);  // the row stride of the table
            const double cs = cos[at], sn = op.inverse ? -sin[at] : sin[at];
            const std::int64_t i1 = op.pairing == RopePairing::Half ? first + i : first + 2 * i;
            const std::int64_t i2 = op.pairing == RopePairing::Half ? i1 + half : i1 + 1;
            const double x1 = v[static_cast<std::size_t>(i1)], x2 = v[static_cast<std::size_t>(i2)];
            store_element(p, out.dtype(), i1, x1 * cs - x2 * sn);
            store_element(p, out.dtype(), i2, x2 * cs + x1 * sn);
          }
          for (std::int64_t i = op.n_rot; i < d; ++i)
            store_element(p, out.dtype(), first + i, v[static_cast<std::size_t>(first + i)]);
        }
      }
    }
  }
  static constexpr AttrField attrs[] = {field<&ops::Rope::head_dim>("head_dim"), field<&ops::Rope::n_rot>("n_rot"),
                                        field<&ops::Rope::pairing>("pairing"),   field<&ops::Rope::layout>("layout"),
                                        field<&ops::Rope::inverse>("inverse"),   field<&ops::Rope::present>("present")};
};

}  // namespace

constinit const OpDef ops::Rope::def{
    .kind = kind,
    .name = "rope",
    .what = "Rotary position embedding: pairs of elements of each head, rotated by the angle of their position.",
    .inputs = inputs("x", "cos", "sin", maybe("positions")).masked_by<&ops::Rope::present>(),
    .attrs = RopeRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Elementwise,
    .infer = RopeRules::infer,
    .decompose = RopeRules::decompose,
    .vjp = RopeRules::vjp,
    .jvp = RopeRules::jvp,
    .batch = RopeRules::batch,
    .reference = RopeRules::reference,
    .cost = flops_per_element<3>};

}  // namespace rlx
