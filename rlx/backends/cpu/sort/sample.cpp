// Samples tokens from rows of logits, without sorting the tokens that top_k, top_p and min_p drop. Tokens are the same
// as those of the decomposition in the evaluator. Every number that a comparison reads is rounded as in the evaluator.
// Sums in another order are kept as intervals. Where an interval leaves open whether a filter drops a token, the row is
// computed again in the order of the decomposition.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/generic/generic_blocks.h"
#include "rlx/ir/math/gumbel.h"
#include "rlx/ir/math/threefry.h"
#include "rlx/ir/ops/random.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t kBlock = 512;     // tokens whose random bits are made together
constexpr int kMinP = 5, kMaskBits = 6;  // positions of the optional operands in the record

/// A setting for all rows or for each row.
struct Setting {
  bool given = false, each_row = false;
  DType dtype = DType::F32;
  const std::byte* data = nullptr;

  void set(LowerContext& c, int operand) {
    const View v = c.in(operand);
    given = true;
    each_row = v.rank() == 1;
    dtype = v.dtype;
    c.point(data, v);
  }
  template <class T>
  T at(std::int64_t row) const {
    return convert_element<T>(load_element<double>(data, dtype, each_row ? row : 0));
  }
};

template <class T>
struct Candidate {
  T logit;
  std::int32_t token;
};
/// The order of tokens: larger logits first, NaN before all, then by index. A function object, so that standard
/// algorithms inline it.
template <class T>
struct RanksBefore {
  bool operator()(const Candidate<T>& a, const Candidate<T>& b) const {
    if (a.logit > b.logit) return true;
    if (a.logit < b.logit) return false;
    const bool a_nan = std::isnan(a.logit), b_nan = std::isnan(b.logit);
    return a_nan != b_nan ? a_nan : a.token < b.token;
  }
};

/// Bytes of `n` elements in scratch.
template <class E>
std::size_t aligned(std::int64_t n) {
  return (static_cast<std::size_t>(n) * sizeof(E) + 63) / 64 * 64;
}

template <class T>
struct SampleStep {
  const KernelTable* kernels = nullptr;
  const Scratch* scratch = nullptr;
  std::int64_t rows = 0, tokens = 0, per_chunk = 1;
  DType dtype = DType::F32;
  LoadBlock<double> load = nullptr;
  const std::byte* logits = nullptr;
  Setting temperature, top_k, top_p, min_p;
  const std::uint32_t* key = nullptr;
  bool masked = false, wants_logprob = false;
  const std::uint32_t* mask = nullptr;
  std::int32_t* token = nullptr;
  T* logprob = nullptr;

  static void run(const SampleStep& s, std::int64_t chunk);
};

/// The sampling of one row.
template <class T>
class RowDraw {
 public:
  RowDraw(const SampleStep<T>& s, std::int64_t row)
      : s_(s),
        row_(row),
        n_(s.tokens),
        x_(reinterpret_cast<T*>(s.scratch->mine())),
        candidates_(reinterpret_cast<Candidate<T>*>(s.scratch->mine() + aligned<T>(s.tokens))),
        exponentials_(
            reinterpret_cast<double*>(s.scratch->mine() + aligned<T>(s.tokens) + aligned<Candidate<T>>(s.tokens))),
        k0_(s.key[2 * row]),
        k1_(s.key[2 * row + 1]) {}

  void run() {
    load();
    const std::int32_t first = first_largest();
    const T top = x_[first];
    if (top == -kInf) return write(-1, -kInf);
    temperature_ = s_.temperature.template at<T>(row_);
    first_ = {top, first};
    const std::int32_t token = temperature_ <= 0 ? first : draw();
    write(token, s_.wants_logprob ? log_probability(token) : T());
  }

 private:
  static constexpr T kInf = std::numeric_limits<T>::infinity();

  void write(std::int32_t token, T logprob) {
    s_.token[row_] = token;
    if (s_.wants_logprob) s_.logprob[row_] = logprob;
  }

  void load() {
    const std::int64_t begin = row_ * n_;
    if (s_.dtype == (std::is_same_v<T, double> ? DType::F64 : DType::F32)) {
      std::memcpy(x_, s_.logits + static_cast<std::size_t>(begin) * sizeof(T),
                  static_cast<std::size_t>(n_) * sizeof(T));
    } else {
      double block[kGenericBlock];
      for (std::int64_t i = 0; i < n_; i += kGenericBlock) {
        const int count = static_cast<int>(std::min<std::int64_t>(kGenericBlock, n_ - i));
        s_.load(s_.logits, begin + i, 1, count, block);
        for (int j = 0; j < count; ++j) x_[i + j] = static_cast<T>(block[j]);
      }
    }
    if (!s_.masked) return;
    const std::uint32_t* words = s_.mask + row_ * ((n_ + 31) / 32);
    for (std::int64_t v = 0; v < n_; ++v)
      if ((words[v / 32] >> (v % 32) & 1U) == 0) x_[v] = -kInf;
  }

  std::int32_t first_largest() const {
    std::int64_t at = 0;
    for (std::int64_t v = 0; v < n_ && !std::isnan(x_[at]); ++v)
      if (!(x_[v] <= x_[at])) at = v;  // larger, or NaN
    return static_cast<std::int32_t>(at);
  }

  T scaled(T logit) const { return (logit - first_.logit) / temperature_; }

  std::int32_t draw() {
    if (std::isnan(scaled(first_.logit))) return first_.token;  // NaN is the largest; the first NaN wins
    std::int64_t k = s_.top_k.template at<std::int64_t>(row_);
    if (k <= 0 || k > n_) k = n_;
    top_p_ = s_.top_p.template at<T>(row_);
    by_p_ = !(top_p_ >= 1);
    if (s_.min_p.given) min_p_ = s_.min_p.template at<T>(row_);
    // At an infinite temperature, -infinity gives NaN, and so does every probability.
    by_min_ = s_.min_p.given && !(min_p_ <= 0 && temperature_ < kInf);
    if (k == 1 || (by_p_ && !(top_p_ > 0))) return first_.token;
    start_drawing();
    if (by_p_ || by_min_) {
      draw_of(k == n_ ? filter_all() : filter_in_order(k));
    } else if (k < n_) {
      draw_of(select(k));
    } else {
      draw_of_all();
    }
    return drawn_.token;
  }

  // -- top_k, top_p, min_p --

  // Moves the first k tokens of the order to the front of the candidates, unordered, in time linear in the row.
  std::int64_t select(std::int64_t k) {
    const std::int64_t room = std::min(n_, 2 * k + 1024);
    std::int64_t count = 0;
    T least = 0;
    bool full = false;
    for (std::int64_t v = 0; v < n_; ++v) {
      if (full && x_[v] <= least) continue;  // equal tokens rank after those that are there
      candidates_[count++] = {x_[v], static_cast<std::int32_t>(v)};
      if (count < room || k == n_) continue;
      count = keep(k, count);
      least = candidates_[k - 1].logit;
      full = true;
      if (std::isnan(least)) break;
    }
    return count > k ? keep(k, count) : count;
  }
  std::int64_t keep(std::int64_t k, std::int64_t count) {
    std::nth_element(candidates_, candidates_ + (k - 1), candidates_ + count, RanksBefore<T>());
    return k;
  }
  std::int64_t select_in_order(std::int64_t k) {
    const std::int64_t count = select(k);
    std::sort(candidates_, candidates_ + count, RanksBefore<T>());
    return count;
  }

  double exponential(T logit) const { return std::exp(static_cast<double>(scaled(logit))); }

  // What top_p and min_p keep of the first k tokens, at the front of the candidates. Every sum has the order of the
  // reference.
  std::int64_t filter_in_order(std::int64_t k) {
    const std::int64_t count = select_in_order(k);
    double total = 0, before = 0;
    for (std::int64_t r = 0; r < count; ++r) total += exponential(candidates_[r].logit);
    const T enough = min_p_ * static_cast<T>(exponential(first_.logit) / total);
    std::int64_t kept = 0;
    for (std::int64_t r = 0; r < count; ++r) {
      const Candidate<T> c = candidates_[r];
      const T p = static_cast<T>(exponential(c.logit) / total);
      if (r > 0 && by_p_ && !(static_cast<T>(before) < top_p_)) break;  // no later token stays either
      before += static_cast<double>(p);
      if (r == 0 || !by_min_ || p >= enough) candidates_[kept++] = c;
    }
    return kept;
  }

  // The same for all tokens, in linear time. Sums have any order and are intervals that contain the reference sums.
  // Returns kOpen when a comparison falls inside an interval.
  std::int64_t filter_all() {
    total_ = 0;
    for (std::int64_t v = 0; v < n_; ++v) total_ += exponentials_[v] = exponential(x_[v]);
    error_ = static_cast<double>(n_ + 8) * 0x1p-52;  // of both sums, and of the following steps
    std::int64_t count = by_p_ ? nucleus() : select(n_);
    if (count != kOpen && by_min_) count = likely_enough(count);
    return count == kOpen ? filter_in_order(n_) : count;
  }

  static constexpr std::int64_t kOpen = -1;
  struct Interval {
    double low = 0, high = 0;
  };
  Interval probability(const Candidate<T>& c) const {
    const double p = exponentials_[c.token] / total_;
    return {static_cast<double>(static_cast<T>(p * (1 - error_))),
            static_cast<double>(static_cast<T>(p * (1 + error_)))};
  }
  void add(Interval& sum, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t r = begin; r < end; ++r) {
      const Interval p = probability(candidates_[r]);
      sum.low += p.low;
      sum.high += p.high;
    }
  }
  enum class Side : std::uint8_t { Below, Above, Open };
  // Whether the probabilities before a token leave it in the nucleus (below top_p).
  Side side(const Interval& before) const {
    const bool surely = static_cast<T>(before.high * (1 + error_)) < top_p_;
    const bool perhaps = static_cast<T>(before.low * (1 - error_)) < top_p_;
    return surely != perhaps ? Side::Open : surely ? Side::Below : Side::Above;
  }

  // Moves the fewest likeliest tokens that reach top_p to the front of the candidates. It tries few tokens first, then
  // bisects the border.
  std::int64_t nucleus() {
    std::int64_t border = 0;
    for (std::int64_t count = std::min<std::int64_t>(n_, 512);; count = count < 4096 ? std::min(n_, 8 * count) : n_) {
      select(count);
      Interval all;
      add(all, 0, count);
      const Side s = side(all);
      if (s == Side::Open) return kOpen;
      if (s == Side::Below && count < n_) continue;
      if (s == Side::Below) return n_;
      border = count;
      break;
    }
    // All tokens before `inside` stay; none from `border` on do.
    constexpr std::int64_t kFew = 32;
    std::int64_t inside = 0;
    Interval before;
    while (border - inside > kFew) {
      const std::int64_t middle = inside + (border - inside) / 2;
      std::nth_element(candidates_ + inside, candidates_ + middle, candidates_ + border, RanksBefore<T>());
      Interval half = before;
      add(half, inside, middle);
      const Side s = side(half);
      if (s == Side::Open) return kOpen;
      if (s == Side::Below) {
        inside = middle;
        before = half;
      } else {
        border = middle;
      }
    }
    std::sort(candidates_ + inside, candidates_ + border, RanksBefore<T>());
    while (inside < border) {
      add(before, inside, inside + 1);
      ++inside;
      const Side s = side(before);
      if (s == Side::Open) return kOpen;
      if (s == Side::Above) break;
    }
    return inside;
  }

  // The number of the first `count` candidates that min_p keeps.
  std::int64_t likely_enough(std::int64_t count) {
    const Interval top = probability(first_);
    const T a = min_p_ * static_cast<T>(top.low), b = min_p_ * static_cast<T>(top.high);
    std::int64_t kept = 0;
    for (std::int64_t r = 0; r < count; ++r) {
      const Candidate<T> c = candidates_[r];
      const Interval p = probability(c);
      const bool surely = static_cast<T>(p.low) >= std::max(a, b), perhaps = static_cast<T>(p.high) >= std::min(a, b);
      if (c.token == first_.token || surely)
        candidates_[kept++] = c;
      else if (perhaps)
        return kOpen;
    }
    return kept;
  }

  // -- sampling --

  std::uint64_t bits_of(std::int64_t token) const {
    return threefry_bits(k0_, k1_, static_cast<std::uint64_t>(token), Gumbel<T>::kBits);
  }
  void start_drawing() {
    drawn_ = first_;
    // Below this temperature, products with it are too inexact to tell which tokens noise cannot help.
    skips_ = temperature_ > T(1e-30);
    inverse_ = skips_ ? 1 / temperature_ : 0;
    best_ = scaled(first_.logit) + Gumbel<T>::noise(bits_of(first_.token));
    aim();
  }
  // The distance below the largest logit from which even the largest noise does not reach the best token.
  void aim() { reach_ = skips_ ? temperature_ * (best_ - Gumbel<T>::kMost - T(0.01)) : -kInf; }
  bool out_of_reach(T logit) const { return logit - first_.logit < reach_ || logit == -kInf; }

  void offer(const Candidate<T>& c, std::uint64_t bits) {
    if ((c.logit - first_.logit) * inverse_ + Gumbel<T>::most(bits) < best_) return;
    const T value = scaled(c.logit) + Gumbel<T>::noise(bits);
    const bool equal = value == best_ || (std::isnan(value) && std::isnan(best_));
    const bool beats = equal ? RanksBefore<T>()(c, drawn_) : !(value <= best_) && !std::isnan(best_);
    if (!beats) return;
    best_ = value;
    drawn_ = c;
    aim();
  }
  void draw_of(std::int64_t count) {
    for (std::int64_t r = 0; r < count; ++r)
      if (const Candidate<T> c = candidates_[r]; !out_of_reach(c.logit)) offer(c, bits_of(c.token));
  }
  void draw_of_all() {
    using Word = std::conditional_t<Gumbel<T>::kWide, std::uint64_t, std::uint32_t>;
    Word bits[kBlock];
    for (std::int64_t begin = 0; begin < n_; begin += kBlock) {
      const std::int64_t end = std::min(n_, begin + kBlock);
      if (std::all_of(x_ + begin, x_ + end, [&](T logit) { return out_of_reach(logit); })) continue;
      if constexpr (Gumbel<T>::kWide) {
        for (std::int64_t v = begin; v < end; ++v) bits[v - begin] = bits_of(v);
      } else {
        s_.kernels->threefry_u32(k0_, k1_, static_cast<std::uint64_t>(begin), end - begin, bits);
      }
      for (std::int64_t v = begin; v < end; ++v)
        if (!out_of_reach(x_[v])) offer({x_[v], static_cast<std::int32_t>(v)}, bits[v - begin]);
    }
  }

  // Log-softmax of the masked logits at a token. Overwrites the logits.
  T log_probability(std::int32_t token) {
    if constexpr (std::is_same_v<T, float>) {
      s_.kernels->log_softmax_f32(x_, n_, x_, n_, n_, 0, 1);
      return x_[token];
    } else {
      T sum = 0;
      for (std::int64_t v = 0; v < n_; ++v) sum += std::exp(x_[v] - first_.logit);
      return x_[token] - first_.logit - std::log(sum);
    }
  }

  const SampleStep<T>& s_;
  std::int64_t row_, n_;
  T* x_;
  Candidate<T>* candidates_;
  double* exponentials_;  // of every token
  double total_ = 0, error_ = 0;
  std::uint32_t k0_, k1_;
  T temperature_ = 0, inverse_ = 0, top_p_ = 1, min_p_ = 0;
  bool by_p_ = false, by_min_ = false, skips_ = false;
  Candidate<T> first_{}, drawn_{};
  T best_ = 0, reach_ = 0;
};

template <class T>
void SampleStep<T>::run(const SampleStep& s, std::int64_t chunk) {
  const std::int64_t end = std::min(s.rows, (chunk + 1) * s.per_chunk);
  for (std::int64_t row = chunk * s.per_chunk; row < end; ++row) RowDraw<T>(s, row).run();
}

template <class T>
void lower_sample_as(LowerContext& c) {
  const View logits = c.in(0);
  auto& s = c.keep<SampleStep<T>>();
  s.kernels = &c.kernels();
  s.rows = logits.dim(0);
  s.tokens = logits.dim(1);
  s.dtype = logits.dtype;
  s.load = load_block<double>(logits.dtype);
  c.point(s.logits, logits);
  s.temperature.set(c, 1);
  s.top_k.set(c, 2);
  s.top_p.set(c, 3);
  c.point(s.key, c.in(4));
  const OperandMask present = c.op<ops::Sample>().present;
  if (present.has(kMinP)) s.min_p.set(c, kMinP);
  s.masked = present.has(kMaskBits);
  if (s.masked) c.point(s.mask, c.in(present.has(kMinP) ? kMaskBits : kMinP));
  c.point(s.token, c.out(0));
  s.wants_logprob = c.is_read(1);
  if (s.wants_logprob) c.point(s.logprob, c.out(1));
  s.scratch = c.scratch(aligned<T>(s.tokens) + aligned<Candidate<T>>(s.tokens) + aligned<double>(s.tokens));
  const double row_ns = 100 + 4 * static_cast<double>(s.tokens);
  s.per_chunk = c.grain(std::max<std::int64_t>(1, static_cast<std::int64_t>(20000 / row_ns)));
  c.step<SampleStep<T>::run>(s, (s.rows + s.per_chunk - 1) / s.per_chunk, row_ns * static_cast<double>(s.rows));
}
void lower_sample(LowerContext& c) {
  if (c.in(0).dim(0) == 0) return;
  if (c.in(0).dtype == DType::F64)
    lower_sample_as<double>(c);
  else
    lower_sample_as<float>(c);
}

constexpr KernelEntry kSampleEntries[] = {{.kind = OpKind::Sample,
                                           .kernel = "sample_rows",
                                           .refuses = never_refuses,
                                           .lower = lower_sample,
                                           .skips_unread = 0b10}};

}  // namespace

std::span<const KernelEntry> sample_entries() { return kSampleEntries; }

}  // namespace rlx::cpu
