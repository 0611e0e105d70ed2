// The chain of filters on a list of candidates, and the keyed draw.
#include "rlx/generation/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "rlx/error.h"
#include "rlx/ir/math/gumbel.h"
#include "rlx/ir/math/threefry.h"

namespace rlx {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::uint64_t kXtcCounter = std::uint64_t{1} << 40;  // greater than any token id, which counts the noise

// Likelier tokens first, of equals the first. A function object, so that library loops inline it.
struct RanksBefore {
  template <class C>
  bool operator()(const C& a, const C& b) const {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }
};

[[noreturn]] void refuse_sampling(std::string message, std::string hint = {}) {
  throw Error(Diagnostic{ErrorCode::InvalidArgument, std::move(message), "sampling", std::move(hint)});
}
void check_option(bool good, std::string_view name, double value, std::string_view wanted) {
  if (!good) refuse_sampling(concat_text(name, " is ", value, ", but must be ", wanted));
}

}  // namespace

std::string_view sampling_step_name(SamplingStep step) {
  constexpr std::string_view kNames[] = {"penalties", "dry",       "temperature", "top_k", "top_p",
                                         "min_p",     "typical_p", "top_n_sigma", "xtc"};
  const auto at = static_cast<std::size_t>(step);
  if (at >= std::size(kNames)) detail::throw_no_enumerator("SamplingStep", static_cast<std::int64_t>(at));
  return kNames[at];
}

std::vector<SamplingStep> parse_sampling_order(std::string_view text) {
  std::vector<std::string> names;
  for (int s = 0; s <= static_cast<int>(SamplingStep::Xtc); ++s)
    names.emplace_back(sampling_step_name(static_cast<SamplingStep>(s)));
  std::vector<SamplingStep> steps;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(";,"));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end())
      refuse_sampling(concat_text("'", word, "' is not a sampling step"),
                      did_you_mean(word, names, quoted_names(names)));
    const auto step = static_cast<SamplingStep>(found - names.begin());
    if (std::find(steps.begin(), steps.end(), step) != steps.end())
      refuse_sampling(concat_text("'", word, "' is listed twice in the sampling order"));
    steps.push_back(step);
  }
  return steps;
}

double log_probability(std::span<const float> logits, TokenId id) {
  const std::size_t at = detail::checked_index("token", id, logits.size());
  const float top = *std::max_element(logits.begin(), logits.end());
  // An infinite logit takes all the probability, however many tokens have one.
  const auto below = [&](float l) { return l == top ? 0.0 : static_cast<double>(l) - top; };
  double total = 0;
  for (const float l : logits) total += std::exp(below(l));
  return below(logits[at]) - std::log(total);
}

std::vector<TokenLogprob> likeliest_tokens(std::span<const float> logits, std::size_t count) {
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), TokenId{0});
  const auto logit = [&](TokenId id) {  // NaN is not ordered
    const float l = logits[static_cast<std::size_t>(id)];
    return std::isnan(l) ? -kInf : l;
  };
  const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(count, ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(),
                    [&](TokenId a, TokenId b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  std::vector<TokenLogprob> out;
  if (end == ids.begin()) return out;
  const double best = log_probability(logits, ids.front());
  for (auto id = ids.begin(); id != end; ++id)
    out.push_back({*id, logit(*id) == logit(ids.front())
                            ? best
                            : best + (static_cast<double>(logit(*id)) - static_cast<double>(logit(ids.front())))});
  return out;
}

Sampler::Sampler(SamplingOptions options) : options_(std::move(options)) {
  const SamplingOptions& o = options_;
  check_option(o.temperature >= 0 && o.temperature < kInf, "temperature", o.temperature, "0 or more");
  check_option(o.dynamic_range >= 0 && o.dynamic_range < kInf, "dynamic_range", o.dynamic_range, "0 or more");
  check_option(o.dynamic_exponent > 0 && o.dynamic_exponent < kInf, "dynamic_exponent", o.dynamic_exponent,
               "more than 0");
  check_option(o.top_k >= 0, "top_k", o.top_k, "0 (off) or more");
  check_option(o.top_p > 0 && o.top_p <= 1, "top_p", o.top_p, "more than 0 and at most 1 (1: off)");
  check_option(o.min_p >= 0 && o.min_p <= 1, "min_p", o.min_p, "from 0 to 1");
  check_option(o.typical_p > 0 && o.typical_p <= 1, "typical_p", o.typical_p, "more than 0 and at most 1 (1: off)");
  check_option(o.top_n_sigma >= 0 && o.top_n_sigma < kInf, "top_n_sigma", o.top_n_sigma, "0 (off) or more");
  check_option(o.xtc_probability >= 0 && o.xtc_probability <= 1, "xtc_probability", o.xtc_probability, "from 0 to 1");
  check_option(o.xtc_threshold > 0 && o.xtc_threshold <= 1, "xtc_threshold", o.xtc_threshold,
               "more than 0 and at most 1");
  check_option(o.penalty_window >= -1, "penalty_window", o.penalty_window, "-1 (all tokens) or more");
  check_option(o.repetition_penalty > 0 && o.repetition_penalty < kInf, "repetition_penalty", o.repetition_penalty,
               "more than 0 (1: off)");
  check_option(std::isfinite(o.frequency_penalty), "frequency_penalty", o.frequency_penalty, "a number");
  check_option(std::isfinite(o.presence_penalty), "presence_penalty", o.presence_penalty, "a number");
  check_option(o.dry_multiplier >= 0 && o.dry_multiplier < kInf, "dry_multiplier", o.dry_multiplier, "0 or more");
  check_option(o.dry_base >= 1 && o.dry_base < kInf, "dry_base", o.dry_base, "1 or more");
  check_option(o.dry_allowed_length >= 1, "dry_allowed_length", o.dry_allowed_length, "1 or more");
  check_option(o.dry_window >= -1, "dry_window", o.dry_window, "-1 (all tokens) or more");
  check_option(o.mirostat >= 0 && o.mirostat <= 2, "mirostat", o.mirostat, "0 (off), 1 or 2");
  check_option(o.mirostat_tau > 0 && o.mirostat_tau < kInf, "mirostat_tau", o.mirostat_tau, "more than 0");
  check_option(o.mirostat_eta > 0 && o.mirostat_eta < kInf, "mirostat_eta", o.mirostat_eta, "more than 0");
  for (const auto& [id, bias] : o.logit_bias) {
    if (id < 0) refuse_sampling(concat_text("logit_bias names token ", id, ", but ids are 0 or more"));
    check_option(bias < kInf, "a logit_bias", bias, "a number, or -infinity");
  }
  for (const SamplingStep step : o.order) (void)sampling_step_name(step);  // throws for one that is no enumerator
  for (std::size_t i = 0; i < o.order.size(); ++i)
    if (std::find(o.order.begin(), o.order.begin() + static_cast<std::ptrdiff_t>(i), o.order[i]) !=
        o.order.begin() + static_cast<std::ptrdiff_t>(i))
      refuse_sampling(concat_text("'", sampling_step_name(o.order[i]), "' is listed twice in the sampling order"));
  std::sort(options_.dry_breakers.begin(), options_.dry_breakers.end());
  surprise_limit_ = 2 * static_cast<double>(o.mirostat_tau);
}

void Sampler::accept(TokenId token) {
  sequence_.push_back(token);
  if (options_.mirostat != 0 && surprise_ && surprise_->first == token)
    surprise_limit_ -= static_cast<double>(options_.mirostat_eta) * (surprise_->second - options_.mirostat_tau);
  surprise_.reset();
}
void Sampler::accept(std::span<const TokenId> tokens) {
  sequence_.insert(sequence_.end(), tokens.begin(), tokens.end());
  if (!tokens.empty()) surprise_.reset();
}
void Sampler::rewind(std::size_t count) {
  if (count > sequence_.size())
    refuse_sampling(concat_text("a sequence of ", sequence_.size(), " tokens cannot be rewound by ", count));
  if (count > 0 && options_.mirostat != 0) refuse_sampling("Mirostat cannot be rewound", "start a new sequence");
  sequence_.resize(sequence_.size() - count);
  surprise_.reset();
}
void Sampler::return_to(const Mark& mark) {
  if (mark.size > sequence_.size())
    refuse_sampling(
        concat_text("a sequence of ", sequence_.size(), " tokens cannot go back to a mark at ", mark.size, " tokens"));
  sequence_.resize(mark.size);
  surprise_limit_ = mark.surprise_limit;
  surprise_.reset();
}

// -- candidates --

void Sampler::collect(std::span<const float> logits, std::span<const std::uint32_t> mask) {
  if (!mask.empty() && mask.size() != (logits.size() + 31) / 32)
    refuse_sampling(concat_text("a mask of ", mask.size(), " words does not fit ", logits.size(), " tokens"),
                    concat_text("the mask needs one bit for each token: ", (logits.size() + 31) / 32, " words"));
  candidates_.clear();
  candidates_.reserve(logits.size());
  for (std::size_t v = 0; v < logits.size(); ++v) candidates_.push_back({logits[v], static_cast<TokenId>(v)});
  for (const auto& [id, bias] : options_.logit_bias) {
    if (static_cast<std::size_t>(id) >= logits.size())
      refuse_sampling(concat_text("logit_bias names token ", id, " of ", logits.size()));
    candidates_[static_cast<std::size_t>(id)].logit += bias;
  }
  std::size_t kept = 0;
  for (const Candidate c : candidates_) {
    if (std::isnan(c.logit))
      refuse_sampling(concat_text("the logit of token ", c.id, " is NaN"),
                      "the weights of the model may be damaged; with RLX_NAN_CHECK=1 in the "
                      "environment the error names the op that made it");
    const auto v = static_cast<std::size_t>(c.id);
    const bool allowed = mask.empty() || (mask[v / 32] >> (v % 32) & 1U) != 0;
    if (allowed && c.logit > -kInf) candidates_[kept++] = c;
  }
  candidates_.resize(kept);
  if (kept == 0) refuse_sampling("no token can be sampled: each is masked or has a logit of -infinity");
  sorted_ = false;
}

const Sampler::Candidate& Sampler::best() const {
  return sorted_ ? candidates_.front() : *std::min_element(candidates_.begin(), candidates_.end(), RanksBefore());
}

void Sampler::sort() {
  if (!sorted_) std::sort(candidates_.begin(), candidates_.end(), RanksBefore());
  sorted_ = true;
}

// Sets probabilities_ to the softmax of the candidates, in order.
void Sampler::make_probabilities() {
  const float top = best().logit;
  probabilities_.resize(candidates_.size());
  double total = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    // An infinite logit takes all the probability, however many tokens have one.
    const float below = candidates_[i].logit == top ? 0 : candidates_[i].logit - top;
    total += probabilities_[i] = static_cast<double>(std::exp(below));
  }
  for (double& p : probabilities_) p /= total;
}

void Sampler::run_steps() {
  const SamplingOptions& o = options_;
  for (const SamplingStep step : o.order) {
    const bool cuts = step != SamplingStep::Penalties && step != SamplingStep::Dry && step != SamplingStep::Temperature;
    if (cuts && (o.mirostat != 0 || candidates_.size() == 1)) continue;
    switch (step) {
      case SamplingStep::Penalties: penalize(); break;
      case SamplingStep::Dry: penalize_repetitions(); break;
      case SamplingStep::Temperature: apply_temperature(); break;
      case SamplingStep::TopK:
        if (o.top_k > 0) keep_top_k(static_cast<std::size_t>(o.top_k));
        break;
      case SamplingStep::TopP: keep_top_p(); break;
      case SamplingStep::MinP: keep_min_p(); break;
      case SamplingStep::TypicalP: keep_typical(); break;
      case SamplingStep::TopNSigma: keep_near_best(); break;
      case SamplingStep::Xtc: exclude_top_choices(); break;
    }
  }
  if (o.mirostat != 0) keep_unsurprising();
}

// -- penalties --

void Sampler::penalize() {
  const SamplingOptions& o = options_;
  if (o.repetition_penalty == 1 && o.frequency_penalty == 0 && o.presence_penalty == 0) return;
  const std::size_t n = sequence_.size();
  const std::size_t window = o.penalty_window < 0 ? n : std::min(n, static_cast<std::size_t>(o.penalty_window));
  std::vector<TokenId> seen(sequence_.end() - static_cast<std::ptrdiff_t>(window), sequence_.end());
  std::sort(seen.begin(), seen.end());
  for (Candidate& c : candidates_) {
    const auto [first, last] = std::equal_range(seen.begin(), seen.end(), c.id);
    if (first == last) continue;
    c.logit = c.logit > 0 ? c.logit / o.repetition_penalty : c.logit * o.repetition_penalty;
    c.logit -= static_cast<float>(last - first) * o.frequency_penalty + o.presence_penalty;
  }
  sorted_ = false;
}

// Finds every earlier position whose last tokens match the last tokens of the sequence, and the match lengths, by the Z
// function of the reversed sequence, in linear time.
void Sampler::penalize_repetitions() {
  const SamplingOptions& o = options_;
  if (o.dry_multiplier == 0) return;
  const auto breaks = [&](TokenId t) { return std::binary_search(o.dry_breakers.begin(), o.dry_breakers.end(), t); };
  const std::size_t all = sequence_.size();
  const std::size_t n = o.dry_window < 0 ? all : std::min(all, static_cast<std::size_t>(o.dry_window));
  const auto back = [&](std::size_t i) { return sequence_[all - 1 - i]; };
  std::size_t reach = 0;  // maximum length of a repetition
  while (reach < n && !breaks(back(reach))) ++reach;
  if (n < 2 || reach < static_cast<std::size_t>(o.dry_allowed_length)) return;
  std::vector<std::size_t> same(n, 0);
  std::vector<std::pair<TokenId, std::size_t>> follows;  // tokens after earlier matches, and the match lengths
  for (std::size_t i = 1, left = 0, right = 0; i < n; ++i) {
    if (i < right) same[i] = std::min(right - i, same[i - left]);
    while (i + same[i] < n && back(same[i]) == back(i + same[i])) ++same[i];
    if (i + same[i] > right) left = i, right = i + same[i];
    const std::size_t length = std::min(same[i], reach);
    if (length >= static_cast<std::size_t>(o.dry_allowed_length) && !breaks(back(i - 1)))
      follows.emplace_back(back(i - 1), length);
  }
  // Each token's longest match comes last.
  std::sort(follows.begin(), follows.end());
  for (Candidate& c : candidates_) {
    const auto behind =
        std::upper_bound(follows.begin(), follows.end(), c.id, [](TokenId id, const auto& f) { return id < f.first; });
    if (behind == follows.begin() || std::prev(behind)->first != c.id) continue;
    const auto beyond = static_cast<double>(std::prev(behind)->second) - o.dry_allowed_length;
    c.logit -= static_cast<float>(std::min(1e30, o.dry_multiplier * std::pow(double{o.dry_base}, beyond)));
  }
  sorted_ = false;
}

// -- temperature --

void Sampler::apply_temperature() {
  const SamplingOptions& o = options_;
  double temperature = o.temperature;
  if (o.dynamic_range > 0 && candidates_.size() > 1) {
    make_probabilities();
    double entropy = 0;
    for (const double p : probabilities_) entropy -= p > 0 ? p * std::log(p) : 0;
    const double least = std::max(0.0F, o.temperature - o.dynamic_range), most = o.temperature + o.dynamic_range;
    const double share = std::clamp(entropy / std::log(static_cast<double>(candidates_.size())), 0.0, 1.0);
    temperature = least + (most - least) * std::pow(share, double{o.dynamic_exponent});
  }
  const Candidate top = best();
  const auto t = static_cast<float>(temperature);
  if (t <= 0) {
    candidates_.assign(1, top);
    return;
  }
  for (Candidate& c : candidates_) c.logit = c.logit == top.logit ? 0 : (c.logit - top.logit) / t;
}

// -- filters --

void Sampler::keep_top_k(std::size_t k) {
  if (k >= candidates_.size()) return;
  if (!sorted_) {
    // Candidates above the current k-th move to the front, so that most of a long list is only compared.
    const auto begin = candidates_.begin();
    const std::size_t room = std::min(candidates_.size(), 2 * k + 1024);
    std::size_t count = 0;
    float least = -kInf;
    const auto keep = [&] {
      std::nth_element(begin, begin + static_cast<std::ptrdiff_t>(k - 1), begin + static_cast<std::ptrdiff_t>(count),
                       RanksBefore());
      count = k;
      least = candidates_[k - 1].logit;
    };
    for (const Candidate c : candidates_) {
      if (c.logit < least) continue;
      candidates_[count++] = c;
      if (count == room) keep();
    }
    if (count > k) keep();
  }
  candidates_.resize(k);
}

void Sampler::keep_top_p() {
  if (options_.top_p >= 1) return;
  const float top = best().logit;
  double total = 0;
  for (const Candidate& c : candidates_) total += static_cast<double>(std::exp(c.logit == top ? 0 : c.logit - top));
  // Few tokens hold most of the probability: sort those, and more only when they do not reach it.
  double before = 0;
  std::size_t kept = 0;
  for (std::size_t count = 256; kept < candidates_.size(); count *= 8) {
    const std::size_t end = std::min(count, candidates_.size());
    const auto from = candidates_.begin() + static_cast<std::ptrdiff_t>(kept),
               to = candidates_.begin() + static_cast<std::ptrdiff_t>(end);
    if (!sorted_) {
      if (end < candidates_.size()) std::nth_element(from, to, candidates_.end(), RanksBefore());
      std::sort(from, to, RanksBefore());
    }
    for (; kept < end; ++kept) {
      if (kept > 0 && !(before < static_cast<double>(options_.top_p))) break;
      const float below = candidates_[kept].logit == top ? 0 : candidates_[kept].logit - top;
      before += static_cast<double>(std::exp(below)) / total;
    }
    if (kept < end) break;
  }
  candidates_.resize(kept);
  sorted_ = true;
}

void Sampler::keep_min_p() {
  if (options_.min_p <= 0) return;
  const float top = best().logit;
  std::erase_if(candidates_,
                [&](const Candidate& c) { return c.logit != top && !(std::exp(c.logit - top) >= options_.min_p); });
}

void Sampler::keep_typical() {
  if (options_.typical_p >= 1) return;
  sort();
  make_probabilities();
  double entropy = 0;
  for (const double p : probabilities_) entropy -= p > 0 ? p * std::log(p) : 0;
  std::vector<std::pair<double, std::size_t>> order(candidates_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = {std::abs(-std::log(probabilities_[i]) - entropy), i};
  std::sort(order.begin(), order.end());
  double sum = 0;
  std::size_t kept = 0;
  while (kept < order.size() && (kept == 0 || sum < static_cast<double>(options_.typical_p)))
    sum += probabilities_[order[kept++].second];
  order.resize(kept);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  for (std::size_t i = 0; i < kept; ++i) candidates_[i] = candidates_[order[i].second];
  candidates_.resize(kept);
}

void Sampler::keep_near_best() {
  if (options_.top_n_sigma <= 0) return;
  const auto n = static_cast<double>(candidates_.size());
  double mean = 0, variance = 0;
  for (const Candidate& c : candidates_) mean += c.logit / n;
  for (const Candidate& c : candidates_) variance += (c.logit - mean) * (c.logit - mean) / n;
  const double least = best().logit - options_.top_n_sigma * std::sqrt(variance);
  if (std::isnan(least)) return;  // infinite logits have no standard deviation
  std::erase_if(candidates_, [&](const Candidate& c) { return c.logit < least; });
}

void Sampler::exclude_top_choices() {
  if (options_.xtc_probability <= 0) return;
  const auto [k0, k1] = key();
  const double u = static_cast<double>(threefry_bits(k0, k1, kXtcCounter, 32)) * 0x1p-32;
  if (u >= static_cast<double>(options_.xtc_probability)) return;
  sort();
  make_probabilities();
  std::size_t likely = 0;
  while (likely < candidates_.size() && probabilities_[likely] >= static_cast<double>(options_.xtc_threshold)) ++likely;
  if (likely > 1) candidates_.erase(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(likely - 1));
}

void Sampler::keep_unsurprising() {
  sort();
  make_probabilities();
  const auto n = static_cast<double>(candidates_.size());
  if (options_.mirostat == 1) {
    // Zipf's exponent by least squares over the first hundred candidates, and the rank that has the target surprise.
    const std::size_t m = std::min<std::size_t>(100, candidates_.size());
    double products = 0, squares = 0;
    for (std::size_t i = 0; i + 1 < m && probabilities_[i + 1] > 0; ++i) {
      const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
      products += t * std::log(probabilities_[i] / probabilities_[i + 1]);
      squares += t * t;
    }
    const double s = squares > 0 ? products / squares : 1, epsilon = s - 1;
    const double share = std::abs(epsilon) < 1e-9 ? 1 / std::log(n) : epsilon / (1 - std::pow(n, -epsilon));
    const double k = std::pow(share * std::exp2(surprise_limit_), 1 / s);
    if (k < n) candidates_.resize(std::max<std::size_t>(1, static_cast<std::size_t>(std::max(0.0, k))));
  } else {
    std::size_t kept = 1;
    while (kept < candidates_.size() && -std::log2(probabilities_[kept]) <= surprise_limit_) ++kept;
    candidates_.resize(kept);
  }
}

// -- the draw --

std::pair<std::uint32_t, std::uint32_t> Sampler::key() const {
  const ThreefryWords w =
      threefry2x32(static_cast<std::uint32_t>(options_.seed >> 32), static_cast<std::uint32_t>(options_.seed), 0,
                   static_cast<std::uint32_t>(sequence_.size()));
  return {w.high, w.low};
}

TokenId Sampler::draw(std::span<const float> logits, std::span<const std::uint32_t> mask) {
  collect(logits, mask);
  run_steps();
  const std::pair<std::uint32_t, std::uint32_t> of_place = key();
  const Candidate first = best();
  Candidate drawn = first;
  float most = -kInf;
  const auto offer = [&](const Candidate& c) {
    const float below = c.logit == first.logit ? 0 : c.logit - first.logit;
    if (below + Gumbel<float>::kMost < most) return;  // no noise can make it the maximum
    const std::uint64_t bits =
        threefry_bits(of_place.first, of_place.second, static_cast<std::uint64_t>(c.id), Gumbel<float>::kBits);
    if (below + Gumbel<float>::most(bits) < most) return;
    const float value = below + Gumbel<float>::noise(bits);
    if (value < most || (value == most && !RanksBefore()(c, drawn))) return;
    most = value;
    drawn = c;
  };
  if (candidates_.size() > 1) {
    offer(first);
    for (const Candidate& c : candidates_)
      if (c.id != first.id) offer(c);
  }
  if (options_.mirostat != 0) {
    make_probabilities();
    const auto at = std::find_if(candidates_.begin(), candidates_.end(), [&](auto& c) { return c.id == drawn.id; });
    surprise_ = {drawn.id, -std::log2(probabilities_[static_cast<std::size_t>(at - candidates_.begin())])};
  }
  return drawn.id;
}

std::vector<TokenChance> Sampler::chances(std::span<const float> logits, std::span<const std::uint32_t> mask) {
  collect(logits, mask);
  run_steps();
  sort();
  make_probabilities();
  std::vector<TokenChance> left;
  left.reserve(candidates_.size());
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    left.push_back({candidates_[i].id, static_cast<float>(probabilities_[i])});
  return left;
}

}  // namespace rlx
