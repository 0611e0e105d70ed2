// Searches each group's best grid first, then alternates between integers and numbers of the block until nothing
// improves.
#include "rlx/tensor/block_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "rlx/error.h"
#include "rlx/tensor/block_pack.h"

namespace rlx {
namespace {

constexpr int kLanes = 8;  // sums in a fixed order that vectorises; group sizes are multiples of it

// The nearest integer of v, for |v| < 2^22.
float nearest_whole(float v) { return (v + 12582912.0F) - 12582912.0F; }

// The sums over a group that least squares need, with quantized values of one grid.
struct Moments {
  double w = 0, x = 0, q = 0, xq = 0, qq = 0;
};

struct Group {
  const float *x, *w;
  int n;
  float low, high;  // bounds of the quantized values minus the offset

  // The quantized values nearest to (x + shift) / factor.
  void codes(QuantizedGrid grid, float* q) const {
    const float inverse = grid.factor == 0 ? 0 : 1 / grid.factor;
    for (int i = 0; i < n; ++i) {  // as selections, which vectorise
      const float v = (x[i] + grid.shift) * inverse, above = v > low ? v : low;
      q[i] = nearest_whole(above < high ? above : high);
    }
  }
  Moments moments(const float* q) const {
    std::array<std::array<float, kLanes>, 5> s{};
    for (int i = 0; i < n; i += kLanes)
      for (int k = 0; k < kLanes; ++k) {
        const auto lane = static_cast<std::size_t>(k);
        const float wi = w[i + k], xi = x[i + k], qi = q[i + k], wq = wi * qi;
        s[0][lane] += wi, s[1][lane] += wi * xi, s[2][lane] += wq, s[3][lane] += wq * xi, s[4][lane] += wq * qi;
      }
    Moments m;
    const auto total = [](const std::array<float, kLanes>& lanes) {
      double sum = 0;
      for (const float v : lanes) sum += static_cast<double>(v);
      return sum;
    };
    m.w = total(s[0]), m.x = total(s[1]), m.q = total(s[2]), m.xq = total(s[3]), m.qq = total(s[4]);
    return m;
  }
  // The sum of w (factor q - shift - x)^2.
  float error(QuantizedGrid grid, const float* q) const {
    std::array<float, kLanes> s{};
    for (int i = 0; i < n; i += kLanes)
      for (int k = 0; k < kLanes; ++k) {
        const float r = grid.factor * q[i + k] - grid.shift - x[i + k];
        s[static_cast<std::size_t>(k)] += w[i + k] * r * r;
      }
    float sum = 0;
    for (const float v : s) sum += v;
    return sum;
  }
  // The error of the nearest quantized values.
  float error_on(QuantizedGrid grid) const {
    std::array<float, 256> q;
    codes(grid, q.data());
    return error(grid, q.data());
  }
};

enum class Shift { None, Positive, Any };  // none; y = factor q - shift with shift >= 0; shift of any sign

// The least-squares grid for given quantized values.
QuantizedGrid solve(const Moments& m, Shift shift) {
  if (m.qq <= 0) return {0, shift == Shift::Any && m.w > 0 ? static_cast<float>(-m.x / m.w) : 0};
  if (shift != Shift::None) {
    const double det = m.w * m.qq - m.q * m.q;
    if (det > 1e-12 * m.w * m.qq) {
      const double factor = (m.w * m.xq - m.x * m.q) / det, base = (m.qq * m.x - m.q * m.xq) / det;
      if (shift == Shift::Any || base <= 0) return {static_cast<float>(factor), static_cast<float>(-base)};
    }
  }
  return {static_cast<float>(m.xq / m.qq), 0};
}

// The best grid of a single group.
QuantizedGrid best_grid(const Group& g, Shift shift) {
  float least = g.x[0], most = g.x[0];
  for (int i = 1; i < g.n; ++i) least = std::min(least, g.x[i]), most = std::max(most, g.x[i]);
  if (shift == Shift::Positive) least = std::min(least, 0.0F);
  QuantizedGrid best{0, shift == Shift::None ? 0 : -least};
  float best_error = std::numeric_limits<float>::infinity();
  std::array<float, 256> q;
  // The grids that reduce the sum of squares most, by their first solution.
  std::array<std::pair<double, QuantizedGrid>, 3> leading{};
  const auto attempt = [&](QuantizedGrid grid) {
    g.codes(grid, q.data());
    const Moments m = g.moments(q.data());
    const QuantizedGrid solved = solve(m, shift);
    const double gain = static_cast<double>(solved.factor) * m.xq - static_cast<double>(solved.shift) * m.x;
    if (solved.factor == 0 || !std::isfinite(solved.factor) || !(gain > leading.back().first)) return;
    leading.back() = {gain, solved};
    for (std::size_t i = leading.size() - 1; i > 0 && leading[i].first > leading[i - 1].first; --i)
      std::swap(leading[i], leading[i - 1]);
  };
  const auto settle = [&] {
    for (const auto& lead : leading) {
      QuantizedGrid grid = lead.second;
      for (int turn = 0; turn < 2 && grid.factor != 0 && std::isfinite(grid.factor); ++turn) {
        g.codes(grid, q.data());
        const float e = g.error(grid, q.data());
        if (!(e < best_error)) break;
        best_error = e, best = grid;
        grid = solve(g.moments(q.data()), shift);
      }
    }
  };
  if (shift == Shift::None) {
    const float furthest = most >= -least ? most : least;
    if (furthest == 0) return {0, 0};
    const float steps = std::max(0.1F, -g.low / 320);
    for (int k = -12; k <= 12; ++k) {
      attempt({furthest / (g.low + static_cast<float>(k) * steps), 0});
      if (g.high < 16) attempt({furthest / (g.high + static_cast<float>(k) * steps), 0});
    }
    settle();
    if (!std::isfinite(best_error)) best = {furthest / g.low, 0};
  } else {
    const float range = most - least;
    if (!(range > 0)) return best;
    for (int k = -10; k <= 10; ++k) attempt({range / (g.high + static_cast<float>(k) * 0.1F), -least});
    settle();
    if (!std::isfinite(best_error)) best.factor = range / g.high;
  }
  return best;
}

// The search for one block: its elements and weights.
class BlockSearch {
 public:
  BlockSearch(const BlockLayout& l, const float* x, const float* w)
      : l_(l),
        shift_(l.adds_m       ? Shift::Any
               : l.has_mins() ? Shift::Positive
                              : Shift::None) {
    for (int g = 0; g < l.groups(); ++g)
      groups_[static_cast<std::size_t>(g)] = {x + g * l.group, w + g * l.group, l.group, static_cast<float>(-l.offset),
                                              static_cast<float>(largest_quantized(l) - l.offset)};
  }
  UnpackedBlock run() {
    if (l_.scales == GroupScales::None) {
      const QuantizedGrid grid = best_grid(groups_[0], shift_);
      UnpackedBlock b;
      b.scale.fill(1);
      b.d = nearest_f16(grid.factor), b.m = l_.adds_m ? nearest_f16(-grid.shift) : 0;
      consider(b);
      // Also tries the neighbouring F16 numbers.
      for (int k = -1; k <= 1 && shift_ == Shift::None; ++k) {
        UnpackedBlock beside = b;
        beside.d = nearest_f16(grid.factor * (1 + static_cast<float>(k) * 0x1p-10F));
        consider(beside);
      }
    } else {
      search_groups();
    }
    return best_;
  }

 private:
  std::size_t count() const { return static_cast<std::size_t>(l_.groups()); }
  void consider(const UnpackedBlock& b) {
    float sum = 0;
    for (std::size_t g = 0; g < count(); ++g) sum += groups_[g].error_on(quantized_grid(l_, b, static_cast<int>(g)));
    if (sum < best_error_) best_error_ = sum, best_ = b;
  }
  // The factor with which the furthest element of a group gets the largest quantized value.
  float reach(std::size_t group) const {
    const Group& g = groups_[group];
    float furthest = 0;
    for (int i = 0; i < g.n; ++i)
      if (std::fabs(g.x[i]) > std::fabs(furthest)) furthest = g.x[i];
    return furthest / g.low;
  }
  // Chooses the integers near the quotients of each group's own grid that have the least error.
  void choose_integers(UnpackedBlock& b, const std::array<QuantizedGrid, 16>& own) const {
    const int most = largest_scale(l_), least = l_.has_mins() ? 0 : -most - 1;
    const auto quotient = [&](float v, float unit, int low) {
      const float q = unit == 0 ? 0 : v / unit;
      return static_cast<int>(std::clamp(std::nearbyint(q), static_cast<float>(low), static_cast<float>(most)));
    };
    for (std::size_t g = 0; g < count(); ++g) {
      const int scale = quotient(own[g].factor, b.d, least), min = quotient(own[g].shift, b.m, 0);
      float best = std::numeric_limits<float>::infinity();
      int best_scale = scale, best_min = min;
      const auto attempt = [&](int seed) {
        for (int s = std::max(seed - 1, least); s <= std::min(seed + 1, most); ++s)
          for (int m = std::max(l_.has_mins() ? min - 1 : 0, 0); m <= (l_.has_mins() ? std::min(min + 1, most) : 0);
               ++m) {
            b.scale[g] = s, b.min[g] = m;
            const float e = groups_[g].error_on(quantized_grid(l_, b, static_cast<int>(g)));
            if (e < best) best = e, best_scale = s, best_min = m;
          }
      };
      attempt(scale);
      // When integers are coarse, the grid that reaches the furthest element may be closer to one of them.
      if (!l_.has_mins()) attempt(quotient(reach(g), b.d, least));
      b.scale[g] = best_scale, b.min[g] = best_min;
    }
  }
  // Solves least squares for d and m, with the block's integers and quantized values fixed.
  void solve_numbers(UnpackedBlock& b) const {
    double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;  // a = scale q, b = -min
    std::array<float, 256> q;
    for (std::size_t g = 0; g < count(); ++g) {
      groups_[g].codes(quantized_grid(l_, b, static_cast<int>(g)), q.data());
      const Moments m = groups_[g].moments(q.data());
      const double scale = b.scale[g], min = -b.min[g];
      aa += scale * scale * m.qq, ab += scale * min * m.q, bb += min * min * m.w, ax += scale * m.xq, bx += min * m.x;
    }
    const double det = aa * bb - ab * ab;
    if (l_.has_mins() && det > 1e-12 * aa * bb) {
      b.d = nearest_f16(static_cast<float>((bb * ax - ab * bx) / det));
      b.m = nearest_f16(std::max(0.0F, static_cast<float>((aa * bx - ab * ax) / det)));
    } else if (aa > 0) {
      b.d = nearest_f16(static_cast<float>((ax - ab * static_cast<double>(b.m)) / aa));
    }
  }
  void search_groups() {
    std::array<QuantizedGrid, 16> own{};
    QuantizedGrid largest{0, 0};
    for (std::size_t g = 0; g < count(); ++g) {
      own[g] = best_grid(groups_[g], shift_);
      if (std::fabs(own[g].factor) > std::fabs(largest.factor)) largest.factor = own[g].factor;
      largest.shift = std::max(largest.shift, own[g].shift);
    }
    const auto most = static_cast<float>(largest_scale(l_));
    // Signed integers reach one further below zero. So the largest factor takes that end first. Then the factor that
    // reaches the block's furthest element takes the other end.
    float furthest = 0;
    for (std::size_t g = 0; g < count(); ++g) furthest = std::max(furthest, std::fabs(reach(g)));
    for (const bool second : {false, true}) {
      UnpackedBlock b;
      if (l_.has_mins()) {
        const float top = second ? most * 0.96F : most;
        b.d = nearest_f16(largest.factor / top), b.m = nearest_f16(largest.shift / top);
      } else {
        b.d = nearest_f16(second ? furthest / most : largest.factor / (-most - 1));
      }
      for (int turn = 0; turn < 3; ++turn) {
        choose_integers(b, own);
        const float before = best_error_;
        consider(b);
        solve_numbers(b);
        consider(b);
        if (turn > 0 && !(best_error_ < before)) break;
      }
    }
  }

  const BlockLayout& l_;
  Shift shift_;
  std::array<Group, 16> groups_{};
  UnpackedBlock best_;
  float best_error_ = std::numeric_limits<float>::infinity();
};

}  // namespace

void search_blocks(QuantScheme scheme, std::span<const float> x, std::span<const float> weights,
                   std::span<std::byte> out) {
  const BlockLayout& l = block_layout(scheme);
  if (!makes_blocks(scheme)) {
    quantize_blocks(scheme, x, out);  // throws with the reason
    return;
  }
  const auto each = static_cast<std::size_t>(l.elements), per = static_cast<std::size_t>(l.bytes);
  if (out.size() % per != 0 || out.size() / per * each != x.size())
    throw Error(ErrorCode::InvalidArgument,
                concat_text(quant_scheme_name(scheme), ": ", out.size(), " bytes do not hold ", x.size(), " elements"),
                concat_text(l.elements, " elements take ", l.bytes, " bytes"));
  if (!weights.empty() && (x.size() % weights.size() != 0 || weights.size() % each != 0))
    throw Error(
        ErrorCode::InvalidArgument,
        concat_text(quant_scheme_name(scheme), ": ", weights.size(), " importance weights do not match ", x.size(),
                    " elements"),
        concat_text("give one weight for each element of a row; the row length must be a multiple of ", l.elements));
  for (const float w : weights)
    if (!(w >= 0) || !std::isfinite(w))
      throw Error(ErrorCode::InvalidArgument,
                  concat_text(quant_scheme_name(scheme), ": a weight is ", static_cast<double>(w),
                              ", expected a finite number of at least 0"));
  auto* p = reinterpret_cast<std::uint8_t*>(out.data());
  std::array<float, 256> values{}, w{};
  for (std::size_t at = 0; at < x.size(); at += each, p += l.bytes) {
    float largest = 0, heaviest = 0;
    for (std::size_t e = 0; e < each; ++e) {
      values[e] = finite_number(x[at + e]);
      largest = std::max(largest, std::fabs(values[e]));
      w[e] = weights.empty() ? 1 : weights[(at + e) % weights.size()];
      heaviest = std::max(heaviest, w[e]);
    }
    for (std::size_t g = 0; g < each; g += static_cast<std::size_t>(l.group)) {
      float sum = 0;
      for (std::size_t e = g; e < g + static_cast<std::size_t>(l.group); ++e) sum += w[e];
      for (std::size_t e = g; e < g + static_cast<std::size_t>(l.group); ++e) w[e] = sum > 0 ? w[e] / heaviest : 1;
    }
    if (largest > 1e15F || largest < 1e-15F) {  // far outside the range of a block's F16 numbers
      quantize_blocks(scheme, x.subspan(at, each), {reinterpret_cast<std::byte*>(p), per});
      continue;
    }
    UnpackedBlock b = BlockSearch(l, values.data(), w.data()).run();
    for (int e = 0; e < l.elements; ++e)
      b.q[static_cast<std::size_t>(e)] =
          nearest_quantized(l, quantized_grid(l, b, e / l.group), values[static_cast<std::size_t>(e)]);
    pack_block(l, b, p);
  }
}

}  // namespace rlx
