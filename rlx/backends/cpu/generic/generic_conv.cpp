// Convolutions of every dtype and any axes, in the generic compute types: a block of the features of one position at a
// time.
#include <algorithm>

#include "rlx/backends/cpu/conv/conv.h"
#include "rlx/backends/cpu/generic/generic.h"
#include "rlx/backends/cpu/generic/generic_blocks.h"
#include "rlx/ir/math/conv_geometry.h"

namespace rlx::cpu {
namespace {

template <class A>
struct ConvStep {
  struct Axis {
    ConvAxis moves;
    std::int64_t extent = 1, taps = 1, places = 1;
    std::int64_t x = 0, w = 0, y = 0;  // strides
  };
  int space = 0;
  Axis axes[kGenericMaxRank];
  std::int64_t batch = 1, places = 1, taps = 1, depth = 1, group_features = 1, feature_groups = 1;
  std::int64_t blocks = 1;  // of the features of a group
  std::int64_t units = 0, per_chunk = 1;
  std::int64_t x_batch = 0, x_feature = 0, w_out = 0, w_in = 0, y_batch = 0, y_feature = 0;
  std::int64_t x_group = 0;  // between groups of results
  const void *x = nullptr, *w = nullptr;
  void* y = nullptr;
  LoadBlock<A> load_x = nullptr, load_w = nullptr;
  StoreBlock<A> store = nullptr;

  static void run(const ConvStep& s, std::int64_t chunk) {
    const std::int64_t end = std::min(s.units, (chunk + 1) * s.per_chunk);
    for (std::int64_t u = chunk * s.per_chunk; u < end; ++u) s.unit(u);
  }
  void unit(std::int64_t u) const {
    const std::int64_t first = u % blocks * kGenericBlock;
    u /= blocks;
    const std::int64_t group = u % feature_groups;
    u /= feature_groups;
    std::int64_t place = u % places;
    const std::int64_t member = u / places, feature = group * group_features + first;
    const int n = static_cast<int>(std::min<std::int64_t>(kGenericBlock, group_features - first));
    std::int64_t at[kGenericMaxRank], y_at = member * y_batch + feature * y_feature;
    for (int i = space; i-- > 0; place /= axes[i].places) {
      at[i] = place % axes[i].places;
      y_at += at[i] * axes[i].y;
    }
    A acc[kGenericBlock] = {}, values[kGenericBlock], scale;
    const std::int64_t x_base = member * x_batch + group * x_group, w_base = feature * w_out;
    for (std::int64_t t = 0; t < taps; ++t) {
      std::int64_t x_at = x_base, w_at = w_base;
      bool inside = true;
      std::int64_t rest = t;
      for (int i = space; i-- > 0 && inside; rest /= axes[i].taps) {
        const Axis& a = axes[i];
        const std::int64_t tap = rest % a.taps, from = a.moves.source(at[i], tap, a.extent);
        inside = from >= 0;
        x_at += from * a.x;
        w_at += tap * a.w;
      }
      if (!inside) continue;
      for (std::int64_t c = 0; c < depth; ++c) {
        load_x(x, x_at + c * x_feature, 0, 1, &scale);
        load_w(w, w_at + c * w_in, w_out, n, values);
        for (int i = 0; i < n; ++i) acc[i] = add_vd(acc[i], mul_vd(scale, values[i]));
      }
    }
    store(y, y_at, y_feature, n, acc);
  }
};

const char* refuses(const Graph& g, NodeId id) { return refuse_high_rank(g.shape(id)); }

void lower(LowerContext& c) {
  const View x = c.in(0), w = c.in(1), y = c.out();
  if (y.elements() == 0) return;
  const ConvGeometry g = conv_geometry(c.op<ops::Conv>(), x.rank());
  const auto axis = [](std::int64_t a) { return static_cast<int>(a); };
  visit_f64(y.dtype, [&]<class A>(A) {
    auto& s = c.keep<ConvStep<A>>();
    for (const ConvAxis& a : g.space) {
      auto& to = s.axes[s.space++];
      to = {a,
            x.dim(axis(a.x)),
            w.dim(axis(a.w)),
            y.dim(axis(a.y)),
            x.stride(axis(a.x)),
            w.stride(axis(a.w)),
            y.stride(axis(a.y))};
      s.taps *= to.taps;
      s.places *= to.places;
    }
    s.batch = y.dim(axis(g.y_batch));
    s.depth = w.dim(axis(g.w_in));
    s.feature_groups = g.groups * g.batch_groups;
    s.group_features = y.dim(axis(g.y_feature)) / s.feature_groups;
    s.blocks = (s.group_features + kGenericBlock - 1) / kGenericBlock;
    s.x_batch = x.stride(axis(g.x_batch)), s.x_feature = x.stride(axis(g.x_feature));
    s.w_out = w.stride(axis(g.w_out)), s.w_in = w.stride(axis(g.w_in));
    s.y_batch = y.stride(axis(g.y_batch)), s.y_feature = y.stride(axis(g.y_feature));
    s.x_group = g.batch_groups > 1 ? s.batch * s.x_batch : s.depth * s.x_feature;
    s.units = s.batch * s.places * s.feature_groups * s.blocks;
    const std::int64_t work = s.taps * (s.depth + 1) * std::min<std::int64_t>(s.group_features, kGenericBlock);
    s.per_chunk = c.grain(std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, work)));
    s.load_x = load_block<A>(x.dtype);
    s.load_w = load_block<A>(w.dtype);
    s.store = store_block<A>(y.dtype);
    c.point(s.x, x);
    c.point(s.w, w);
    c.point(s.y, y);
    c.step<ConvStep<A>::run>(s, (s.units + s.per_chunk - 1) / s.per_chunk,
                             static_cast<double>(s.units) * static_cast<double>(work));
  });
}

bool any_strides(const Graph&, NodeId, int) { return true; }

constexpr KernelEntry kRows[] = {{OpKind::Conv, "generic_conv", refuses, lower, any_strides}};

}  // namespace

std::span<const KernelEntry> generic_conv_entries() { return kRows; }

}  // namespace rlx::cpu
