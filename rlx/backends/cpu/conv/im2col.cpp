// im2col convolutions, for integers, complex numbers, and bf16 where bf16 matmuls are fast: the elements that each
// position reads are copied to columns, and a matmul does the rest.
#include <algorithm>

#include "rlx/backends/cpu/conv/conv.h"
#include "rlx/backends/cpu/matmul/dot_axes.h"
#include "rlx/backends/cpu/matmul/matmul_calls.h"
#include "rlx/ir/math/conv_geometry.h"

namespace rlx::cpu {
namespace {

using i64 = std::int64_t;

/// The elements that the positions of some lines of the result read: columns[position][k] of all groups where features
/// of x are contiguous; else columns[k][position], which runs along the lines of x. k runs over groups, taps and
/// features of a group.
struct ColumnsStep {
  struct Axis {
    ConvAxis moves;
    i64 places = 1, extent = 1, taps = 1, x = 0;  // x: stride of x, in bytes
  };
  int space = 0;  // spatial axes without the axis of lines
  Axis axes[kGemmMaxAxes];
  Axis line;
  i64 batch_lines = 1;  // lines of a batch entry
  i64 x_batch = 0, x_feature = 0, groups = 1, depth = 1, taps = 1, k = 1, element = 1;
  bool by_place = true;
  i64 first_line = 0, lines = 0;  // of this task
  i64 units = 0, per_chunk = 1;   // lines, or steps of k
  const std::byte* x = nullptr;
  std::byte* columns = nullptr;

  static void run(const ColumnsStep& s, i64 chunk) {
    const i64 end = std::min(s.units, (chunk + 1) * s.per_chunk);
    for (i64 u = chunk * s.per_chunk; u < end; ++u) {
      if (s.by_place)
        s.line_by_place(u);
      else
        s.lines_of_k(u);
    }
  }

  /// Byte offset in x that tap `tap` reads from for line `number`, without the axis of lines; -1: padding.
  i64 line_source(i64 number, i64 tap) const {
    i64 at = number / batch_lines * x_batch, rest = number % batch_lines;
    for (int a = space; a-- > 0; rest /= axes[a].places, tap /= axes[a].taps) {
      const Axis& axis = axes[a];
      const i64 from = axis.moves.source(rest % axis.places, tap % axis.taps, axis.extent);
      if (from < 0) return -1;
      at += from * axis.x;
    }
    return at;
  }
  template <std::size_t kSize>
  void copy_spaced(const std::byte* from, i64 step, i64 n, std::byte* to) const {
    for (i64 i = 0; i < n; ++i) std::memcpy(to + i * static_cast<i64>(kSize), from + i * step, kSize);
  }
  void copy(const std::byte* from, i64 step, i64 n, std::byte* to) const {
    if (step == element) {
      std::memcpy(to, from, static_cast<std::size_t>(n * element));
      return;
    }
    switch (element) {
      case 1: return copy_spaced<1>(from, step, n, to);
      case 2: return copy_spaced<2>(from, step, n, to);
      case 4: return copy_spaced<4>(from, step, n, to);
      case 8: return copy_spaced<8>(from, step, n, to);
      default: return copy_spaced<16>(from, step, n, to);
    }
  }

  void line_by_place(i64 u) const {
    const i64 outer_taps = taps / line.taps, row = depth * element;
    std::byte* const first = columns + u * line.places * k * element;
    for (i64 group = 0; group < groups; ++group) {
      for (i64 tap = 0; tap < taps; ++tap) {
        const i64 at = line_source(first_line + u, outer_taps == 1 ? 0 : tap / line.taps);
        std::byte* to = first + (group * taps + tap) * row;
        for (i64 p = 0; p < line.places; ++p, to += k * element) {
          const i64 from = at < 0 ? -1 : line.moves.source(p, tap % line.taps, line.extent);
          if (from < 0)
            std::memset(to, 0, static_cast<std::size_t>(row));
          else
            copy(x + at + from * line.x + group * depth * x_feature, x_feature, depth, to);
        }
      }
    }
  }

  void lines_of_k(i64 u) const {
    const i64 feature = u / (taps * depth) * depth + u % depth, tap = u / depth % taps, tap_in_line = tap % line.taps;
    std::byte* to = columns + u * lines * line.places * element;
    // Positions [begin, end) have the tap inside x, where x has no lhs_dilation.
    const ConvAxis& m = line.moves;
    const i64 start = tap_in_line * m.rhs_dilation - m.low;
    const i64 begin = std::clamp<i64>(start < 0 ? (-start + m.stride - 1) / m.stride : 0, 0, line.places);
    const i64 last = line.extent - 1 - start;
    const i64 end = std::clamp<i64>(last < 0 ? 0 : last / m.stride + 1, begin, line.places);
    for (i64 l = 0; l < lines; ++l, to += line.places * element) {
      const i64 at = line_source(first_line + l, tap / line.taps);
      const std::byte* from = x + feature * x_feature + at;
      if (at < 0) {
        std::memset(to, 0, static_cast<std::size_t>(line.places * element));
      } else if (m.lhs_dilation == 1) {
        std::memset(to, 0, static_cast<std::size_t>(begin * element));
        if (end > begin)
          copy(from + (begin * m.stride + start) * line.x, m.stride * line.x, end - begin, to + begin * element);
        std::memset(to + end * element, 0, static_cast<std::size_t>((line.places - end) * element));
      } else {
        for (i64 p = 0; p < line.places; ++p) {
          const i64 source = m.source(p, tap_in_line, line.extent);
          if (source < 0)
            std::memset(to + p * element, 0, static_cast<std::size_t>(element));
          else
            copy(from + source * line.x, element, 1, to + p * element);
        }
      }
    }
  }
};

bool is_byte_type(DType t) { return t == DType::I8 || t == DType::U8; }
bool is_whole_number(DType t) {
  return is_byte_type(t) || t == DType::I16 || t == DType::U16 || t == DType::I32 || t == DType::U32 ||
         t == DType::I64 || t == DType::U64;
}

/// Whether the positions of a batch entry fold into one axis of the result, in order, and positions or features are
/// contiguous.
bool places_are_one_axis(const ConvGeometry& g) {
  for (std::size_t a = 1; a < g.space.size(); ++a)
    if (g.space[a].y != g.space[a - 1].y + 1) return false;
  return g.y_batch < std::max(g.y_feature, g.space.back().y);
}

const char* columns_refuse(const Graph& g, NodeId id) {
  const DType x = in_dtype(g, id, 0), w = in_dtype(g, id, 1), y = g.shape(id).dtype();
  const bool bytes = is_byte_type(x) && is_byte_type(w) && y == DType::I32;
  if (const char* why = refuse_unless(bytes || (x == y && w == y && (is_whole_number(y) || is_complex(y))),
                                      "its operands are not integers or complex numbers of the dtype of the result"))
    return why;
  const ConvGeometry geo = conv_geometry(g.node(id).op.as<ops::Conv>(), g.shape(id).rank());
  if (const char* why = refuse_unless(geo.batch_groups == 1 && places_are_one_axis(geo),
                                      "it has batch groups, or the spatial axes of its result are not adjacent"))
    return why;
  return refuse_unless(g.shape(id).rank() + 2 < kGemmMaxAxes, "it has more axes than the kernel supports");
}

/// A matmul with the columns of some lines. Operands count elements.
struct Im2colGemm {
  i64 groups = 1, features = 1, k = 1;  // features: of a group
  std::vector<GemmAxis> taps;           // a: steps of k, b: strides of w; then the features of x
  i64 w_out = 1, y_feature = 1, y_place = 1;
};

/// Sets the axes: positions are rows where the features of the result are contiguous, else columns.
void set_columns_axes(MatmulOperands& p, const Im2colGemm& c, bool places_first, i64 places, i64 place, i64 step,
                      i64 members, i64 y_batch) {
  p.m = places_first ? places : c.features;
  p.n = places_first ? c.features : places;
  p.a_m_stride = places_first ? place : c.w_out;
  p.b_n_stride = places_first ? c.w_out : place;
  p.ldc = places_first ? c.y_place : c.y_feature;
  const auto turned = [&](i64 extent, i64 columns, i64 w, i64 y) {
    return GemmAxis{extent, places_first ? columns : w, places_first ? w : columns, y};
  };
  p.num_contracted = 0;
  for (const GemmAxis& t : c.taps) p.contracted[p.num_contracted++] = turned(t.extent, t.a * step, t.b, 0);
  p.num_outer = 0;
  if (members > 1) p.outer[p.num_outer++] = turned(members, places * place, 0, y_batch);
  if (c.groups > 1)
    p.outer[p.num_outer++] = turned(c.groups, c.k / c.groups * step, c.features * c.w_out, c.features * c.y_feature);
}

void lower_columns(LowerContext& c) {
  const View x = c.in(0), w = c.in(1), y = c.out();
  if (y.elements() == 0) return;
  const auto axis = [](i64 a) { return static_cast<int>(a); };
  const ConvGeometry g = conv_geometry(c.op<ops::Conv>(), x.rank());
  ColumnsStep lines;
  lines.element = static_cast<i64>(size_bytes(x.dtype));
  Im2colGemm product;
  product.groups = lines.groups = g.groups;
  lines.depth = w.dim(axis(g.w_in));
  product.features = y.dim(axis(g.y_feature)) / g.groups;
  for (const ConvAxis& a : g.space) {
    const ColumnsStep::Axis to{a, y.dim(axis(a.y)), x.dim(axis(a.x)), w.dim(axis(a.w)),
                               x.stride(axis(a.x)) * lines.element};
    if (&a == &g.space.back()) {
      lines.line = to;
    } else {
      lines.axes[lines.space++] = to;
      lines.batch_lines *= to.places;
    }
    lines.taps *= to.taps;
  }
  product.k = lines.k = g.groups * lines.taps * lines.depth;
  lines.x_batch = x.stride(axis(g.x_batch)) * lines.element;
  lines.x_feature = x.stride(axis(g.x_feature)) * lines.element;
  lines.by_place = lines.x_feature == lines.element && lines.depth > 1;
  i64 step = lines.taps * lines.depth;
  for (const ConvAxis& a : g.space) {
    const i64 taps = w.dim(axis(a.w));
    step /= taps;
    product.taps.push_back({taps, step, w.stride(axis(a.w)), 0});
  }
  product.taps.push_back({lines.depth, 1, w.stride(axis(g.w_in)), 0});
  product.taps = folded(product.taps);
  product.w_out = w.stride(axis(g.w_out));
  product.y_feature = y.stride(axis(g.y_feature));
  product.y_place = y.stride(axis(g.space.back().y));

  // Columns of several batch entries at a time, or of some lines of one entry.
  constexpr i64 kMostBytes = 32 << 20;
  const i64 batch = y.dim(axis(g.y_batch)), y_batch = y.stride(axis(g.y_batch));
  const i64 line_bytes = std::max<i64>(1, lines.line.places * lines.k * lines.element);
  const i64 lines_at_once = c.finest() ? 1 : std::max<i64>(1, kMostBytes / line_bytes);
  const i64 members_at_once = std::clamp<i64>(lines_at_once / lines.batch_lines, 1, batch);
  const i64 lines_of_one = std::min(lines_at_once, lines.batch_lines);
  std::byte* const columns = c.workspace(static_cast<std::size_t>(members_at_once * lines_of_one * line_bytes));
  const bool places_first = product.y_feature == 1 && (product.y_place != 1 || product.features > 1);
  for (i64 member = 0; member < batch; member += members_at_once) {
    const i64 members = std::min(members_at_once, batch - member);
    for (i64 line = 0; line < lines.batch_lines; line += lines_of_one) {
      auto& s = c.keep<ColumnsStep>(lines);
      s.columns = columns;
      s.first_line = member * lines.batch_lines + line;
      const i64 own_lines = std::min(lines_of_one, lines.batch_lines - line);  // of one batch entry
      s.lines = members * own_lines;
      s.units = s.by_place ? s.lines : s.k;
      const i64 elements = s.lines * s.line.places * s.k;
      s.per_chunk = c.grain(std::max<i64>(1, s.units * 32768 / std::max<i64>(1, elements)));
      c.point(s.x, x);
      c.step<&ColumnsStep::run>(s, (s.units + s.per_chunk - 1) / s.per_chunk, 0.5 * static_cast<double>(elements));
      const i64 places = own_lines * s.line.places, all = s.lines * s.line.places;
      const i64 place = s.by_place ? s.k : 1, one_step = s.by_place ? 1 : all;
      const i64 at = member * y_batch + line * s.line.places * product.y_place;
      const MatmulSource from{nullptr, columns}, filters{&w};
      const MatmulSource &a = places_first ? from : filters, &b = places_first ? filters : from;
      MatmulOperands p;
      set_columns_axes(p, product, places_first, places, place, one_step, members, y_batch);
      p.a_type = (places_first ? x : w).dtype, p.b_type = (places_first ? w : x).dtype, p.c_type = y.dtype;
      add_number_product(c, p, a, b, at);
    }
  }
}

}  // namespace

bool lower_conv_bf16(LowerContext& c) {
  const View x = c.in(0), w = c.in(1), y = c.out();
  const auto* op = c.node().op.get_if<ops::Conv>();
  const bool halves =
      x.dtype == DType::BF16 && w.dtype == DType::BF16 && (y.dtype == DType::BF16 || y.dtype == DType::F32);
  if (op == nullptr || !halves || c.kernels().bf16 == nullptr || x.rank() + 2 >= kGemmMaxAxes) return false;
  const ConvGeometry g = conv_geometry(*op, x.rank());
  if (g.batch_groups != 1 || !places_are_one_axis(g)) return false;
  // bf16 pair kernels run 32 steps of k at once. Columns are written and read once for all features of a group.
  const i64 features = y.dim(static_cast<int>(g.y_feature)) / g.groups, depth = w.dim(static_cast<int>(g.w_in));
  if (features < 32 || depth < 32) return false;
  for (const ConvAxis& a : g.space)
    if (a.lhs_dilation != 1) return false;  // most of the columns would be zeros
  // If the features are not contiguous, each step of k is copied line by line. With short lines the copy takes as long
  // as the matmul.
  constexpr i64 kShortLine = 14;
  if (x.stride(static_cast<int>(g.x_feature)) != 1 &&
      (g.space.empty() || y.dim(static_cast<int>(g.space.back().y)) < kShortLine))
    return false;
  lower_columns(c);
  return true;
}

namespace {

bool columns_read_strided(const Graph&, NodeId, int) { return true; }

constexpr KernelEntry kColumnEntries[] = {
    {OpKind::Conv, "conv_columns", columns_refuse, lower_columns, columns_read_strided}};

}  // namespace

std::span<const KernelEntry> conv_column_entries() { return kColumnEntries; }

}  // namespace rlx::cpu
