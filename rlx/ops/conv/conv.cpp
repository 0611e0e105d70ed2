// Conv: XLA's conv_general_dilated, the primitive of all convolutions.
#include <algorithm>
#include <complex>

#include "rlx/ir/math/conv_geometry.h"
#include "rlx/ops/conv/conv_rules.h"
#include "rlx/ops/dot/dot_dims.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

constexpr std::int64_t kMaxConvAmount = std::int64_t{1} << 31;  // keeps the arithmetic of extents from overflowing

// -- checks --

std::optional<Diagnostic> check_conv_spec(const InferContext& c, const char* name,
                                          const std::vector<std::int64_t>& spec, int rank) {
  if (spec.empty()) return std::nullopt;
  std::vector<bool> seen(static_cast<std::size_t>(rank), false);
  bool good = spec.size() == seen.size();
  for (std::size_t i = 0; i < spec.size() && good; ++i) {
    good = spec[i] >= 0 && spec[i] < rank && !seen[static_cast<std::size_t>(spec[i])];
    if (good) seen[static_cast<std::size_t>(spec[i])] = true;
  }
  if (good) return std::nullopt;
  return c.attr_error(name, " must list each of the ", rank, " axes once");
}

std::optional<Diagnostic> check_conv_amounts(const InferContext& c, const char* name,
                                             const std::vector<std::int64_t>& list, int space, std::int64_t least) {
  if (list.empty()) return std::nullopt;
  if (list.size() != static_cast<std::size_t>(space))
    return c.attr_error(name, " has ", list.size(), " entries for ", space, " spatial axes");
  for (std::int64_t amount : list)
    if (amount < least || amount > kMaxConvAmount)
      return c.attr_error(name, " holds ", amount, ", which is not in [", least, ", ", kMaxConvAmount, "]");
  return std::nullopt;
}

std::optional<Diagnostic> check_conv_attributes(const InferContext& c, const ops::Conv& op) {
  const Shape &x = c.input(0), &w = c.input(1);
  if (auto e = check_product_dtypes(c, op.out)) return e;
  if (x.rank() < 3 || x.rank() != w.rank())
    return c.error("needs x and w with the same rank of at least 3 (batch, feature, spatial..), got x ", x, " and w ",
                   w);
  for (const auto& [name, spec] :
       {std::pair{"lhs_spec", &op.lhs_spec}, {"rhs_spec", &op.rhs_spec}, {"out_spec", &op.out_spec}})
    if (auto e = check_conv_spec(c, name, *spec, x.rank())) return e;
  const int space = x.rank() - 2;
  for (const auto& [name, list] :
       {std::pair{"strides", &op.strides}, {"lhs_dilation", &op.lhs_dilation}, {"rhs_dilation", &op.rhs_dilation}})
    if (auto e = check_conv_amounts(c, name, *list, space, 1)) return e;
  for (const auto& [name, list] : {std::pair{"low", &op.low}, {"high", &op.high}})
    if (auto e = check_conv_amounts(c, name, *list, space, -kMaxConvAmount)) return e;
  if (op.groups < 1 || op.batch_groups < 1)
    return c.attr_error("groups is ", op.groups, " and batch_groups ", op.batch_groups, "; both must be at least 1");
  if (op.groups > 1 && op.batch_groups > 1)
    return c.attr_error("groups is ", op.groups, " and batch_groups ", op.batch_groups,
                        "; only one of them may be above 1");
  return std::nullopt;
}

// `extent` divided into `parts`; none when it does not divide, or when that is unknown.
std::optional<Dim> conv_part(const Dim& extent, std::int64_t parts) { return exact_div(extent, Dim(parts)); }

// -- axes --

// Splits `axis` of x into axes of the extents `parts`.
Expr split_axis(Expr x, std::int64_t axis, const Dims& parts) {
  Dims dims = x.shape().dims();
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, parts.begin(), parts.end());
  return x.graph().reshape(x, dims);
}
// Merges axes `axis` and axis + 1.
Expr merge_axes(Expr x, std::int64_t axis) {
  Dims dims = x.shape().dims();
  dims[static_cast<std::size_t>(axis)] =
      dims[static_cast<std::size_t>(axis)] * dims[static_cast<std::size_t>(axis) + 1];
  dims.erase(dims.begin() + axis + 1);
  return x.graph().reshape(x, dims);
}
Expr with_axis_moved(Expr x, std::int64_t from, std::int64_t to) {
  if (from == to) return x;
  std::vector<std::int64_t> perm = identity_perm(x.rank());
  perm.erase(perm.begin() + from);
  perm.insert(perm.begin() + to, from);
  return x.graph().transpose(x, perm);
}

// For the vjp of groups: moves the leading factor `groups` of axis `from` to the front of axis `to`.
Expr move_groups(Expr x, std::int64_t from, std::int64_t to, std::int64_t groups) {
  if (groups == 1) return x;
  const Dim rest = *conv_part(x.dim(static_cast<int>(from)), groups);
  return merge_axes(with_axis_moved(split_axis(x, from, {Dim(groups), rest}), from, to), to);
}

// Folds B of x [B, ..] into axis `axis` (counted without B), which is (outer, rest) and becomes (outer, B, rest).
Expr fold_members(Expr x, std::int64_t axis, std::int64_t outer) {
  const Dim rest = *conv_part(x.dim(static_cast<int>(axis) + 1), outer);
  x = split_axis(x, axis + 1, {Dim(outer), rest});
  x = with_axis_moved(x, 0, axis + 1);  // [.., outer, B, rest, ..]
  return merge_axes(merge_axes(x, axis), axis);
}
// The inverse: axis `axis` of y is (outer, B, rest); the result is [B, .., (outer, rest), ..].
Expr unfold_members(Expr y, std::int64_t axis, std::int64_t outer, const Dim& members, const Dim& whole) {
  y = split_axis(y, axis, {Dim(outer), members, *conv_part(whole, outer)});
  y = with_axis_moved(y, axis + 1, 0);
  return merge_axes(y, axis + 1);
}

bool conv_is_empty(const Shape& s) {
  return std::any_of(s.dims().begin(), s.dims().end(), [](const Dim& d) { return d.is_static(0); });
}

// Slices y to `dims` where an extent with symbols came out longer.
Expr cut_to(Expr y, const Dims& dims) {
  if (y.shape().dims() == dims) return y;
  return y.graph().slice(y, Dims(dims.size(), Dim(0)), dims);
}

std::vector<std::int64_t> conv_spec(std::int64_t first, std::int64_t second, const ConvGeometry& g,
                                    std::int64_t ConvAxis::*place) {
  std::vector<std::int64_t> spec{first, second};
  for (const ConvAxis& a : g.space) spec.push_back(a.*place);
  return spec;
}

// The attributes of a derivative, appended for one spatial axis at a time.
struct ConvAmounts {
  ops::Conv op;
  void add(std::int64_t stride, std::int64_t low, std::int64_t high, std::int64_t lhs_dilation,
           std::int64_t rhs_dilation) {
    op.strides.push_back(stride);
    op.low.push_back(low);
    op.high.push_back(high);
    op.lhs_dilation.push_back(lhs_dilation);
    op.rhs_dilation.push_back(rhs_dilation);
  }
};

// The number of elements at the end of the padded x that no window reaches, along an axis. With symbols, its largest or
// smallest possible value.
std::int64_t conv_rest(const ConvAxis& a, const Dim& x, const Dim& w, bool most) {
  if (!x.is_static() || !w.is_static()) return most ? a.stride - 1 : 0;
  return (a.spread(x.value()) + a.low + a.high - a.span(w.value())) % a.stride;
}

[[noreturn]] void fail_symbolic_window(const Shape& w) {
  throw Error(ErrorCode::Unsupported,
              concat_text("the derivative of conv with respect to x needs filters of known extents, got w ", w),
              "bind the symbol first");
}

// The cotangent of x: the cotangent of the result, dilated by the strides, convolved with the reversed filters.
Expr conv_x_cotangent(Graph& g, const ops::Conv& op, Expr x, Expr w, Expr ct) {
  const ConvGeometry geo = conv_geometry(op, x.rank());
  ConvAmounts d;
  std::vector<std::int64_t> turned;
  for (const ConvAxis& a : geo.space) {
    const Dim &extent = x.dim(static_cast<int>(a.x)), &window = w.dim(static_cast<int>(a.w));
    if (!window.is_static()) fail_symbolic_window(w.shape());
    const std::int64_t span = a.span(window.value());
    d.add(a.lhs_dilation, span - 1 - a.low, span - 1 - a.high + conv_rest(a, extent, window, true), a.stride,
          a.rhs_dilation);
    turned.push_back(a.w);
  }
  const std::int64_t groups = std::max(geo.groups, geo.batch_groups);
  d.op.groups = groups;
  d.op.lhs_spec = conv_spec(geo.y_batch, geo.y_feature, geo, &ConvAxis::y);
  d.op.rhs_spec = conv_spec(geo.w_in, geo.w_out, geo, &ConvAxis::w);
  d.op.out_spec = conv_spec(geo.x_batch, geo.x_feature, geo, &ConvAxis::x);
  const Expr filters = move_groups(g.reverse(w, turned), geo.w_out, geo.w_in, groups);
  Expr dx = g.conv(ct, filters, d.op);
  if (geo.batch_groups > 1) dx = move_groups(dx, geo.x_feature, geo.x_batch, geo.batch_groups);
  return cut_to(dx, x.shape().dims());
}

// The cotangent of w: x convolved with the cotangent of the result. Features act as batch, and batch as features.
Expr conv_w_cotangent(Graph& g, const ops::Conv& op, Expr x, Expr w, Expr ct) {
  const ConvGeometry geo = conv_geometry(op, x.rank());
  ConvAmounts d;
  for (const ConvAxis& a : geo.space)
    d.add(a.rhs_dilation, a.low,
          a.high - conv_rest(a, x.dim(static_cast<int>(a.x)), w.dim(static_cast<int>(a.w)), false), a.lhs_dilation,
          a.stride);
  d.op.groups = geo.batch_groups;
  d.op.batch_groups = geo.groups;
  d.op.lhs_spec = conv_spec(geo.x_feature, geo.x_batch, geo, &ConvAxis::x);
  d.op.rhs_spec = conv_spec(geo.y_feature, geo.y_batch, geo, &ConvAxis::y);
  d.op.out_spec = conv_spec(geo.w_in, geo.w_out, geo, &ConvAxis::w);
  return cut_to(g.conv(x, ct, d.op), w.shape().dims());
}

// -- reference --

// y[n, o, p] = sum over taps, then c, in T.
template <class T>
void conv_reference(const RefArgs& args, const ConvGeometry& g) {
  const Tensor &x = args.in(0), &w = args.in(1);
  Tensor& y = args.out();
  const std::vector<T> xs = load_all<T>(x), ws = load_all<T>(w);
  const auto x_strides = row_major_strides(x.dims()), w_strides = row_major_strides(w.dims()),
             y_strides = row_major_strides(y.dims());
  const auto of = [](const std::vector<std::int64_t>& v, std::int64_t axis) {
    return v[static_cast<std::size_t>(axis)];
  };
  const std::int64_t batch = y.dim(static_cast<int>(g.y_batch)), features = y.dim(static_cast<int>(g.y_feature)),
                     depth = w.dim(static_cast<int>(g.w_in));
  std::vector<std::int64_t> places, taps;  // extents of the spatial axes of the result and of the window
  for (const ConvAxis& a : g.space) {
    places.push_back(y.dim(static_cast<int>(a.y)));
    taps.push_back(w.dim(static_cast<int>(a.w)));
  }
  const auto count = [](const std::vector<std::int64_t>& dims) {
    std::int64_t n = 1;
    for (std::int64_t d : dims) n *= d;
    return n;
  };
  const std::int64_t num_places = count(places), num_taps = count(taps);
  if (y.num_elements() == 0) return;
  const std::int64_t group_out = features / (g.groups * g.batch_groups);
  for (std::int64_t p = 0; p < num_places; ++p) {
    // The offsets that each tap reads in x and w, relative to the first batch entry and feature.
    std::vector<std::pair<std::int64_t, std::int64_t>> reads;
    std::int64_t y_at = 0;
    for (std::int64_t rest = p, i = static_cast<std::int64_t>(places.size()); i-- > 0; rest /= of(places, i))
      y_at += rest % of(places, i) * of(y_strides, g.space[static_cast<std::size_t>(i)].y);
    for (std::int64_t t = 0; t < num_taps; ++t) {
      std::int64_t x_at = 0, w_at = 0;
      bool inside = true;
      for (std::int64_t rest_t = t, rest_p = p, i = static_cast<std::int64_t>(places.size()); i-- > 0;) {
        const ConvAxis& a = g.space[static_cast<std::size_t>(i)];
        const std::int64_t tap = rest_t % of(taps, i),
                           from = a.source(rest_p % of(places, i), tap, x.dim(static_cast<int>(a.x)));
        inside = inside && from >= 0;
        x_at += from * of(x_strides, a.x);
        w_at += tap * of(w_strides, a.w);
        rest_t /= of(taps, i);
        rest_p /= of(places, i);
      }
      if (inside) reads.emplace_back(x_at, w_at);
    }
    for (std::int64_t n = 0; n < batch; ++n) {
      for (std::int64_t o = 0; o < features; ++o) {
        const std::int64_t group = o / group_out;
        const std::int64_t member = g.batch_groups > 1 ? group * batch + n : n;
        const std::int64_t first = g.groups > 1 ? group * depth : 0;
        const std::int64_t x_base = member * of(x_strides, g.x_batch) + first * of(x_strides, g.x_feature);
        const std::int64_t w_base = o * of(w_strides, g.w_out);
        T sum{};
        for (const auto& [x_at, w_at] : reads)
          for (std::int64_t c = 0; c < depth; ++c)
            sum += xs[static_cast<std::size_t>(x_base + x_at + c * of(x_strides, g.x_feature))] *
                   ws[static_cast<std::size_t>(w_base + w_at + c * of(w_strides, g.w_in))];
        store_element(y.mutable_data(), y.dtype(), y_at + n * of(y_strides, g.y_batch) + o * of(y_strides, g.y_feature),
                      sum);
      }
    }
  }
}

}  // namespace

Result<Shape> infer_conv(const InferContext& c, const ops::Conv& op) {
  if (auto e = check_conv_attributes(c, op)) return *e;
  const Shape &x = c.input(0), &w = c.input(1);
  const ConvGeometry g = conv_geometry(op, x.rank());
  const Dim &batch = x.dim(static_cast<int>(g.x_batch)), &depth = x.dim(static_cast<int>(g.x_feature)),
            &out = w.dim(static_cast<int>(g.w_out)), &in = w.dim(static_cast<int>(g.w_in));
  const std::optional<Dim> part = conv_part(depth, g.groups), members = conv_part(batch, g.batch_groups);
  if (!part) return c.error("x ", x, " has ", depth, " features, which cannot be divided into ", g.groups, " groups");
  if (!(*part == in))
    return c.error("x ", x, " has ", depth, " features in ", g.groups, " groups, but the filters w ", w, " read ", in);
  if (!members)
    return c.error("x ", x, " has a batch of ", batch, ", which cannot be divided into ", g.batch_groups,
                   " batch_groups");
  if (!conv_part(out, g.groups * g.batch_groups))
    return c.error("w ", w, " has ", out, " filters, which cannot be divided into ", g.groups * g.batch_groups,
                   " groups");
  Dims dims(static_cast<std::size_t>(x.rank()));
  dims[static_cast<std::size_t>(g.y_batch)] = *members;
  dims[static_cast<std::size_t>(g.y_feature)] = out;
  for (const ConvAxis& a : g.space) {
    const Dim &extent = x.dim(static_cast<int>(a.x)), &window = w.dim(static_cast<int>(a.w));
    if (window.is_static(0)) return c.error("filters w ", w, " have extent 0 along the spatial axis ", a.w);
    for (const Dim* d : {&extent, &window})
      if (d->is_static() && d->value() > kMaxConvAmount) return c.error("an axis of extent ", *d, " is too long");
    const Dim spread =
        a.lhs_dilation == 1 ? extent : max(extent * Dim(a.lhs_dilation) - Dim(a.lhs_dilation - 1), Dim(0));
    const Dim padded = spread + Dim(a.low) + Dim(a.high);
    if (c.negative(padded))
      return c.error("low ", a.low, " and high ", a.high, " crop more elements than axis ", a.x, " of x ", x, " has");
    const Dim steps = padded - ((window - Dim(1)) * Dim(a.rhs_dilation) + Dim(1));  // -1 or less: no window fits
    Dim& places = dims[static_cast<std::size_t>(a.y)];
    if (steps.is_static()) {
      places = Dim(steps.value() < 0 ? 0 : steps.value() / a.stride + 1);
    } else {
      // Assumes that the axis holds a window, or misses one by less than a stride.
      (void)c.negative(steps + Dim(a.stride));
      places = floordiv(steps, Dim(a.stride)) + Dim(1);
    }
  }
  return Shape(std::move(dims), op.out.value_or(x.dtype()));
}

double conv_depth(const Shape& w, const ops::Conv& op) {
  const ConvGeometry g = conv_geometry(op, w.rank());
  double depth = static_cast<double>(w.dim(static_cast<int>(g.w_in)).value());
  for (const ConvAxis& a : g.space) depth *= static_cast<double>(w.dim(static_cast<int>(a.w)).value());
  return depth;
}

namespace {

struct ConvRules {
  static Result<Shapes> infer(const InferContext& c) {
    auto result = infer_conv(c, c.op<ops::Conv>());
    if (!result) return result.error();
    return make_shapes(*result);
  }
  static void reference(const RefArgs& a) {
    const ConvGeometry g = conv_geometry(a.op<ops::Conv>(), a.in(0).rank());
    const DType t = a.out().dtype();
    // uint64 wraps, and its low bits are those of the signed result.
    if (is_int(t))
      conv_reference<std::uint64_t>(a, g);
    else if (is_complex(t))
      conv_reference<std::complex<double>>(a, g);
    else
      conv_reference<double>(a, g);
  }
  static void vjp(VjpContext& c) {
    const auto& op = c.op<ops::Conv>();
    const Expr x = c.input(0), w = c.input(1);
    if (conv_is_empty(x.shape()) || conv_is_empty(w.shape()) || conv_is_empty(c.result_shape())) return;
    // Computed in the dtype of the result. When that is wider than the operand's dtype, the cotangent is rounded once.
    if (c.wants(0)) c.accumulate(0, c.graph().cast(conv_x_cotangent(c.graph(), op, x, w, c.cotangent()), x.dtype()));
    if (c.wants(1)) c.accumulate(1, c.graph().cast(conv_w_cotangent(c.graph(), op, x, w, c.cotangent()), w.dtype()));
  }
  static void jvp(JvpContext& c) {
    const auto& op = c.op<ops::Conv>();
    if (c.has_tangent(0)) c.add_tangent(0, c.graph().conv(c.tangent(0), c.input(1), op));
    if (c.has_tangent(1)) c.add_tangent(0, c.graph().conv(c.input(0), c.tangent(1), op));
  }
  // Batch members become batch, results or groups.
  static void batch(BatchContext& c) {
    ops::Conv op = c.op<ops::Conv>();
    Graph& g = c.graph();
    const Dim& members = c.batch_size();
    const ConvGeometry geo = conv_geometry(op, c.rank(0));
    const Dim &batch = c.result_shape().dim(static_cast<int>(geo.y_batch)),
              &features = c.result_shape().dim(static_cast<int>(geo.y_feature));
    const std::int64_t groups = op.groups * op.batch_groups;
    if (!c.is_batched(1)) {
      const Expr x = fold_members(c.input(0), geo.x_batch, op.batch_groups);
      return c.set_result(unfold_members(g.conv(x, c.input(1), op), geo.y_batch, 1, members, batch));
    }
    if (!c.is_batched(0)) {
      const Expr w = fold_members(c.input(1), geo.w_out, groups);
      return c.set_result(unfold_members(g.conv(c.input(0), w, op), geo.y_feature, groups, members, features));
    }
    if (!members.is_static())
      throw Error(ErrorCode::Unsupported, "vmap of conv with batched filters needs a known batch size",
                  "bind the symbol first");
    if (members.is_static(0))
      return c.set_result(c.zeros(Shape(prepend(members, c.result_shape().dims()), c.result_shape().dtype())));
    const bool by_batch = op.batch_groups > 1;
    (by_batch ? op.batch_groups : op.groups) *= members.value();
    const Expr x = fold_members(c.input(0), by_batch ? geo.x_batch : geo.x_feature, 1);
    const Expr w = fold_members(c.input(1), geo.w_out, 1);
    c.set_result(unfold_members(g.conv(x, w, op), geo.y_feature, 1, members, features));
  }
  static Cost cost(const CostContext& c) {
    return c.with_flops(2 * conv_depth(c.inputs[1], c.op<ops::Conv>()) * c.elements());
  }
  static constexpr AttrField attrs[] = {field<&ops::Conv::strides>("strides"),
                                        field<&ops::Conv::low>("low"),
                                        field<&ops::Conv::high>("high"),
                                        field<&ops::Conv::lhs_dilation>("lhs_dilation"),
                                        field<&ops::Conv::rhs_dilation>("rhs_dilation"),
                                        field<&ops::Conv::groups>("groups"),
                                        field<&ops::Conv::batch_groups>("batch_groups"),
                                        field<&ops::Conv::lhs_spec>("lhs_spec"),
                                        field<&ops::Conv::rhs_spec>("rhs_spec"),
                                        field<&ops::Conv::out_spec>("out_spec"),
                                        field<&ops::Conv::out>("out")};
};

}  // namespace

constinit const OpDef ops::Conv::def{.kind = kind,
                                     .name = "conv",
                                     .what = "Cross-correlation of x with filters, of any layout, dilation and groups.",
                                     .inputs = inputs("x", "w"),
                                     .attrs = ConvRules::attrs,
                                     .level = Level::Mir,
                                     .leaf = LeafKind::None,
                                     .elementwise = ElementwiseKind::No,
                                     .view = ViewKind::None,
                                     .precision = PrecisionCategory::Compute,
                                     .infer = ConvRules::infer,
                                     .decompose = none("a primitive"),
                                     .vjp = ConvRules::vjp,
                                     .jvp = ConvRules::jvp,
                                     .batch = ConvRules::batch,
                                     .reference = ConvRules::reference,
                                     .cost = ConvRules::cost};

}  // namespace rlx
