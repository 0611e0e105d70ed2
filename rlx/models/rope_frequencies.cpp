// Computes frequencies of rotary positions, with the scaling of a model.
#include "rlx/models/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "rlx/error.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

constexpr std::int64_t kMostContext = std::int64_t{1} << 24;  // F32 cannot represent larger positions exactly

void check(const RopeSpec& s, std::int64_t context) {
  const auto fail = [](const std::string& what) { throw Error(ErrorCode::InvalidArgument, "rope: " + what); };
  if (s.rotated < 2 || s.rotated % 2 || s.rotated > 1 << 20)
    fail(concat_text("the number of rotated elements must be even and in [2, 2^20], got ", s.rotated));
  if (!(s.theta > 0) || !std::isfinite(s.theta)) fail(concat_text("theta must be positive, got ", s.theta));
  if (context < 1 || context > kMostContext) fail(concat_text("the context must be in [1, 2^24], got ", context));
  if (!(s.factor > 0) || !std::isfinite(s.factor)) fail(concat_text("the factor must be positive, got ", s.factor));
  const bool needs_original = s.scaling == RopeScaling::Dynamic || s.scaling == RopeScaling::Yarn ||
                              s.scaling == RopeScaling::Llama3 || s.scaling == RopeScaling::Long;
  if (needs_original && s.original_context < 1)
    fail(concat_text("scaling ", rope_scaling_name(s.scaling), " needs the context that the model was trained for"));
  if (s.scaling == RopeScaling::Dynamic && s.rotated < 4) fail("scaling dynamic needs at least 4 rotated elements");
  if (s.scaling == RopeScaling::Long)
    for (const std::vector<double>* factors : {&s.short_factors, &s.long_factors})
      if (factors->size() != static_cast<std::size_t>(s.rotated / 2))
        fail(concat_text("scaling longrope has ", factors->size(), " factors for ", s.rotated / 2, " pairs"));
}

// theta^(2i / n), where the exponent and the power are rounded to F32.
float power(float theta, std::int64_t i, std::int64_t rotated) {
  const float exponent = static_cast<float>(2 * i) / static_cast<float>(rotated);
  return static_cast<float>(std::pow(static_cast<double>(theta), static_cast<double>(exponent)));
}

// The pair with `rotations` rotations within the original context, as a fraction of the pairs.
double yarn_pair(const RopeSpec& s, double rotations) {
  const auto n = static_cast<double>(s.rotated), context = static_cast<double>(s.original_context);
  return n * std::log(context / (rotations * 2 * std::numbers::pi)) / (2 * std::log(s.theta));
}

void stretch_yarn(const RopeSpec& s, std::vector<float>& f) {
  double low = yarn_pair(s, s.beta_fast), high = yarn_pair(s, s.beta_slow);
  if (s.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, static_cast<double>(s.rotated - 1));
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < f.size(); ++i) {
    const float turns = power(static_cast<float>(s.theta), static_cast<std::int64_t>(i), s.rotated);
    const float slow = 1.0F / (static_cast<float>(s.factor) * turns), fast = 1.0F / turns;
    const float at = (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
    const float keep = 1.0F - std::clamp(at, 0.0F, 1.0F);
    f[i] = slow * (1.0F - keep) + fast * keep;
  }
}

void stretch_llama3(const RopeSpec& s, std::vector<float>& f) {
  const auto original = static_cast<float>(s.original_context), factor = static_cast<float>(s.factor);
  const float longest = original / static_cast<float>(s.low_freq_factor);
  const float shortest = original / static_cast<float>(s.high_freq_factor);
  for (float& x : f) {
    const float wave = 2.0F * std::numbers::pi_v<float> / x;
    if (wave > longest) {
      x /= factor;
    } else if (!(wave < shortest)) {
      const float smooth = (original / wave - static_cast<float>(s.low_freq_factor)) /
                           static_cast<float>(s.high_freq_factor - s.low_freq_factor);
      x = (1.0F - smooth) * x / factor + smooth * x;
    }
  }
}

}  // namespace

std::vector<float> rope_frequencies(const RopeSpec& s, std::int64_t context) try {
  check(s, context);
  double theta = s.theta;
  if (s.scaling == RopeScaling::Dynamic) {
    const auto length = static_cast<double>(std::max(context, s.original_context)), n = static_cast<double>(s.rotated);
    theta *= std::pow(s.factor * length / static_cast<double>(s.original_context) - (s.factor - 1), n / (n - 2));
  }
  std::vector<float> f(static_cast<std::size_t>(s.rotated / 2));
  for (std::size_t i = 0; i < f.size(); ++i)
    f[i] = 1.0F / power(static_cast<float>(theta), static_cast<std::int64_t>(i), s.rotated);
  switch (s.scaling) {
    case RopeScaling::None:
    case RopeScaling::Dynamic: break;
    case RopeScaling::Linear:
      for (float& x : f) x /= static_cast<float>(s.factor);
      break;
    case RopeScaling::Yarn: stretch_yarn(s, f); break;
    case RopeScaling::Llama3: stretch_llama3(s, f); break;
    case RopeScaling::Long: {
      const std::vector<double>& factors = context > s.original_context ? s.long_factors : s.short_factors;
      for (std::size_t i = 0; i < f.size(); ++i)
        f[i] = 1.0F / (static_cast<float>(factors[i]) *
                       power(static_cast<float>(theta), static_cast<std::int64_t>(i), s.rotated));
      break;
    }
  }
  return f;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("rope_frequencies");
}

}  // namespace rlx
