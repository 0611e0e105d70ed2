// QConv: convolutions of quantized values with a quantized result. Composite: concatenated windows, and an 8-bit matmul
// with I32 sums.
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ops/quant/requantize.h"

namespace rlx {
namespace {

std::size_t place_of(int axis) { return static_cast<std::size_t>(axis); }

// The geometry over `space` axes, with empty lists filled in.
struct QConvWindows {
  std::vector<std::int64_t> strides, dilations, low, high;
  QConvWindows(const ops::QConv& op, int space)
      : strides(op.strides), dilations(op.dilations), low(op.low), high(op.high) {
    const std::size_t n = place_of(space);
    if (strides.empty()) strides.assign(n, 1);
    if (dilations.empty()) dilations.assign(n, 1);
    if (low.empty()) low.assign(n, 0);
    if (high.empty()) high.assign(n, 0);
  }
  Dim padded(const Dim& d, int i) const { return d + Dim(low[place_of(i)] + high[place_of(i)]); }
  // The reach of a kernel with k taps: its span minus one.
  Dim reach(const Dim& k, int i) const { return (k - Dim(1)) * Dim(dilations[place_of(i)]); }
};

struct QConvRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::QConv>();
    const Shape &x = c.input("x"), &w = c.input("w");
    if (x.rank() < 3 || x.rank() != w.rank())
      return c.error("needs x [N, C, spatial..] and w [O, C / groups, spatial..], got ", x, " and ", w);
    const int space = x.rank() - 2;
    constexpr std::int64_t kMost = std::int64_t{1} << 30;
    const auto check_list = [&](const char* name, const std::vector<std::int64_t>& list,
                                std::int64_t least) -> std::optional<Diagnostic> {
      if (!list.empty() && list.size() != place_of(space))
        return c.attr_error(name, " has ", list.size(), " entries, x ", x, " has ", space, " spatial axes");
      for (std::int64_t v : list)
        if (v < least || v > kMost) return c.attr_error(name, " must be from ", least, " to ", kMost, ", got ", v);
      return std::nullopt;
    };
    if (auto e = check_list("strides", op.strides, 1)) return *e;
    if (auto e = check_list("dilations", op.dilations, 1)) return *e;
    if (auto e = check_list("low", op.low, 0)) return *e;
    if (auto e = check_list("high", op.high, 0)) return *e;
    if (op.groups < 1) return c.attr_error("groups must be positive, got ", op.groups);
    for (int i = 1; i < w.rank(); ++i)
      if (!w.dim(i).is_static()) return c.error("all extents of w ", w, " except the first must be known");
    if (!x.dim(1).is_static() || !w.dim(0).is_static())
      return c.error("the channels of x ", x, " and w ", w, " must be known");
    const std::int64_t channels = x.dim(1).value(), out = w.dim(0).value();
    if (channels % op.groups != 0 || out % op.groups != 0)
      return c.attr_error("groups ", op.groups, " does not divide the channels of x ", x, " and w ", w);
    if (w.dim(1).value() != channels / op.groups)
      return c.error("w ", w, " must have ", channels / op.groups, " channels: those of x ", x, " in ", op.groups,
                     " groups");
    if (auto e = check_requantize(c, op, w.dim(0))) return *e;
    const QConvWindows windows(op, space);
    constexpr std::int64_t kMostTaps = 1 << 16;
    std::int64_t taps = 1;
    Dims dims{x.dim(0), w.dim(0)};
    for (int i = 0; i < space; ++i) {
      const std::int64_t extent = w.dim(i + 2).value();
      if (extent < 1 || extent > kMostTaps || (taps *= extent) > kMostTaps)
        return c.error("w ", w, " must have from 1 to ", kMostTaps, " elements in its window");
      const Dim room = windows.padded(x.dim(i + 2), i) - windows.reach(w.dim(i + 2), i) - Dim(1);
      if (c.negative(room)) return c.error("the window of w ", w, " is larger than the padded x ", x);
      dims.push_back(floordiv(room, Dim(windows.strides[place_of(i)])) + Dim(1));
    }
    return make_shapes(Shape(std::move(dims), op.dtype));
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const auto& op = c.op<ops::QConv>();
    const Expr x = c.input("x"), w = c.input("w");
    const Dims& out = c.result_shape().dims();
    const int space = x.rank() - 2;
    const QConvWindows windows(op, space);
    const Dim groups(op.groups), own_in = w.dim(1), own_out = Dim(w.dim(0).value() / op.groups);
    Dims places(out.begin() + 2, out.end());
    Dim taps(1), positions_out(1);
    for (int i = 0; i < space; ++i) taps = taps * w.dim(i + 2), positions_out = positions_out * places[place_of(i)];

    std::vector<std::int64_t> low{0, 0}, high{0, 0};
    low.insert(low.end(), windows.low.begin(), windows.low.end());
    high.insert(high.end(), windows.high.begin(), windows.high.end());
    const bool pads = std::any_of(low.begin(), low.end(), [](auto v) { return v != 0; }) ||
                      std::any_of(high.begin(), high.end(), [](auto v) { return v != 0; });
    const Expr padded = pads ? g.pad(x, low, high, g.scalar(op.x_zp, x.dtype())) : x;

    // The quantized values that each tap reads, [N, G, C / G, 1, P] each, concatenated.
    std::vector<Expr> seen;
    std::vector<std::int64_t> at(place_of(space), 0);
    std::vector<std::int64_t> strides{1, 1};
    strides.insert(strides.end(), windows.strides.begin(), windows.strides.end());
    for (std::int64_t tap = 0; tap < taps.value(); ++tap) {
      Dims starts{Dim(0), Dim(0)}, limits{x.dim(0), x.dim(1)};
      for (int i = 0; i < space; ++i) {
        const std::int64_t start = at[place_of(i)] * windows.dilations[place_of(i)];
        starts.push_back(Dim(start));
        limits.push_back(Dim(start + 1) + (places[place_of(i)] - Dim(1)) * Dim(windows.strides[place_of(i)]));
      }
      const Expr part = g.slice(padded, starts, limits, strides);
      seen.push_back(g.reshape(part, {x.dim(0), groups, own_in, Dim(1), positions_out}));
      for (int i = space - 1; i >= 0 && ++at[place_of(i)] == w.dim(i + 2).value(); --i) at[place_of(i)] = 0;
    }
    const Dim depth = own_in * taps;
    const Expr columns =
        g.reshape(seen.size() == 1 ? seen[0] : g.concat(seen, 3), {x.dim(0), groups, depth, positions_out});
    const Expr filters = g.reshape(w, {groups, own_out, depth});
    const ops::DotGeneral dot{{2}, {2}, {0}, {1}, DType::I32};  // [G, O / G, N, P]
    Expr sum = without_zero_points(
        g, op, g.dot_general(filters, columns, dot),
        [&] {  // sums of the quantized x: [G, 1, N, P]
          return g.unsqueeze(g.transpose(g.sum(g.cast(columns, DType::I32), {2}), {1, 0, 2}), 1);
        },
        [&] {  // sums of the quantized w
          return g.reshape(g.sum(g.cast(filters, DType::I32), {2}), {groups, own_out, Dim(1), Dim(1)});
        },
        op.x_zp != 0 && op.w_zp != 0 ? dim_value(g, depth, DType::I32) : Expr());
    Dims spread = out;
    sum = g.reshape(g.transpose(sum, {2, 0, 1, 3}), std::move(spread));
    if (c.has("bias")) {
      Dims dims(place_of(x.rank()), Dim(1));
      dims[1] = w.dim(0);
      sum = sum + g.reshape(c.input("bias"), dims);
    }
    c.set_result(requantized(g, op, sum, 1));
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::QConv>();
    const Tensor &x = a.in("x"), &w = a.in("w");
    const std::int64_t total = a.out().num_elements();
    if (total == 0) return;
    const int space = x.rank() - 2;
    const QConvWindows windows(op, space);
    const std::int64_t own_in = w.dim(1), own_out = w.dim(0) / op.groups;
    std::int64_t taps = 1, places = 1, pixels = 1;
    for (int i = 2; i < x.rank(); ++i) taps *= w.dim(i), places *= a.out().dim(i), pixels *= x.dim(i);
    std::vector<double> out(static_cast<std::size_t>(total));
    for (std::int64_t e = 0; e < total; ++e) {
      const std::int64_t place = e % places, channel = e / places % w.dim(0), n = e / places / w.dim(0);
      std::uint32_t sum = a.has("bias") ? static_cast<std::uint32_t>(a.in("bias").at_i64(channel)) : 0;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        std::int64_t pixel = 0, scale = 1, left_tap = tap, left_place = place;
        bool inside = true;
        for (int i = space - 1; i >= 0; --i) {
          const std::int64_t k = left_tap % w.dim(i + 2), p = left_place % a.out().dim(i + 2);
          left_tap /= w.dim(i + 2), left_place /= a.out().dim(i + 2);
          const std::int64_t at =
              p * windows.strides[place_of(i)] + k * windows.dilations[place_of(i)] - windows.low[place_of(i)];
          inside = inside && at >= 0 && at < x.dim(i + 2);
          pixel += at * scale, scale *= x.dim(i + 2);
        }
        if (!inside) continue;
        for (std::int64_t i = 0; i < own_in; ++i) {
          const std::int64_t in = channel / own_out * own_in + i;
          sum += static_cast<std::uint32_t>((x.at_i64((n * x.dim(1) + in) * pixels + pixel) - op.x_zp) *
                                            (w.at_i64((channel * own_in + i) * taps + tap) - op.w_zp));
        }
      }
      out[static_cast<std::size_t>(e)] = requantized_code(op, static_cast<std::int32_t>(sum), channel);
    }
    store_all(a.out(), out);
  }
  static Cost cost(const CostContext& c) {
    double depth = 1;
    for (int i = 1; i < c.inputs[1].rank(); ++i) depth *= static_cast<double>(c.inputs[1].dim(i).value());
    return c.with_flops(2 * depth * c.elements());
  }
  static constexpr AttrField attrs[] = {
      field<&ops::QConv::strides>("strides"), field<&ops::QConv::dilations>("dilations"),
      field<&ops::QConv::low>("low"),         field<&ops::QConv::high>("high"),
      field<&ops::QConv::groups>("groups"),   field<&ops::QConv::x_zp>("x_zp"),
      field<&ops::QConv::w_zp>("w_zp"),       field<&ops::QConv::out_zp>("out_zp"),
      field<&ops::QConv::mult>("mult"),       field<&ops::QConv::dtype>("dtype"),
      field<&ops::QConv::present>("present")};
};

}  // namespace

constinit const OpDef ops::QConv::def{
    .kind = kind,
    .name = "q_conv",
    .what = "A convolution of 8-bit quantized values with a quantized result: summed in I32 and rounded once.",
    .inputs = inputs("x", "w", maybe("bias")).masked_by<&ops::QConv::present>(),
    .attrs = QConvRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = QConvRules::infer,
    .decompose = QConvRules::decompose,
    .vjp = none("its result is an integer"),
    .jvp = none("its result is an integer"),
    .batch = by_decomposition,
    .reference = QConvRules::reference,
    .cost = QConvRules::cost};

}  // namespace rlx
