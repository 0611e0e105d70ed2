// Sampling: which token follows, given logits. A chain of cuts and one keyed draw for each token of a sequence.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/text/vocabulary.h"

namespace rlx {

/// A step of the chain. What each does is said beside its numbers in SamplingOptions; a step whose numbers leave it off
/// does nothing.
enum class SamplingStep : std::uint8_t {
  Penalties,
  Dry,
  Temperature,
  TopK,
  TopP,
  MinP,
  TypicalP,
  TopNSigma,
  Xtc,
};
/// "penalties", "dry", "temperature", "top_k", "top_p", "min_p", "typical_p", "top_n_sigma", "xtc".
std::string_view sampling_step_name(SamplingStep step);
/// Steps of a text such as "penalties;top_k;top_p;temperature". Errors: InvalidArgument naming a word that is no step,
/// or that stands there twice.
std::vector<SamplingStep> parse_sampling_order(std::string_view text);

/// How tokens are drawn. The defaults draw from the model's own distribution.
struct SamplingOptions {
  /// Logits are divided by it; 0 takes the first of the largest logits, after penalties.
  float temperature = 1;
  /// Unless 0: the temperature goes from `temperature - range` to `temperature + range` with the normalised entropy of
  /// the distribution, raised to `dynamic_exponent`.
  float dynamic_range = 0, dynamic_exponent = 1;
  std::int32_t top_k = 0;  // unless <= 0: this many of the largest logits stay, the first of equals
  float top_p = 1;         // unless >= 1: the fewest of the likeliest tokens whose probabilities reach it stay
  float min_p = 0;         // tokens stay that are at least min_p times as likely as the likeliest
  /// Unless >= 1: of the tokens ordered by how far -log p lies from the entropy, the fewest that reach this probability
  /// stay (Meister et al., "Locally typical sampling", TACL 2023).
  float typical_p = 1;
  float top_n_sigma = 0;  // unless <= 0: tokens stay whose logit is within n standard deviations of the largest
  /// With this probability, of all tokens that are at least `xtc_threshold` likely only the least likely stays.
  float xtc_probability = 0, xtc_threshold = 0.1F;

  /// For tokens among the last `penalty_window` of the sequence (< 0: all of it): a positive logit is divided by
  /// `repetition_penalty` and a negative one multiplied, then `frequency_penalty` times how often the token stands
  /// there and `presence_penalty` are taken away.
  std::int32_t penalty_window = 64;
  float repetition_penalty = 1, frequency_penalty = 0, presence_penalty = 0;
  /// Unless `dry_multiplier` is 0: a token that would go on with a repetition whose last L >= `dry_allowed_length`
  /// tokens stand at the end of the sequence loses dry_multiplier * dry_base^(L - dry_allowed_length). Only the last
  /// `dry_window` tokens count (< 0: all); no repetition reaches over one of `dry_breakers`.
  float dry_multiplier = 0, dry_base = 1.75F;
  std::int32_t dry_allowed_length = 2, dry_window = -1;
  std::vector<TokenId> dry_breakers{};

  /// 0: off. 1 and 2: Mirostat (Basu et al., ICLR 2021) in place of all cuts, after the temperature: the surprise of
  /// tokens is steered to `mirostat_tau` bits at rate `mirostat_eta`; version 1 estimates Zipf's exponent and takes a
  /// top-k, version 2 cuts by surprise itself.
  int mirostat = 0;
  float mirostat_tau = 5, mirostat_eta = 0.1F;

  /// Added to the logits of these tokens before everything else; -infinity forbids one.
  std::vector<std::pair<TokenId, float>> logit_bias{};
  /// The order of the steps; those that are not named do not run.
  std::vector<SamplingStep> order{SamplingStep::Penalties, SamplingStep::Dry,       SamplingStep::Temperature,
                                  SamplingStep::TopK,      SamplingStep::TopP,      SamplingStep::MinP,
                                  SamplingStep::TypicalP,  SamplingStep::TopNSigma, SamplingStep::Xtc};
  /// The key of all draws. Token i of a sequence is drawn with key fold_in({seed >> 32, seed}, i), so it depends on the
  /// seed, its place and its logits alone.
  std::uint64_t seed = 0;
};

/// A token that the cuts have left.
struct TokenChance {
  TokenId id = -1;
  float probability = 0;
};

/// The natural logarithm of the probability of a token: that of the softmax of `logits` [V], in F64. NaN where logits
/// have NaN. Errors: InvalidArgument for an id outside [0, V).
double log_probability(std::span<const float> logits, TokenId id);

/// A token and the natural logarithm of its probability.
struct TokenLogprob {
  TokenId id = -1;
  double logprob = 0;
};
/// The `count` likeliest tokens by `logits` [V] (all where V is less), likeliest first, the first of equals. NaN comes
/// last, and makes all logarithms NaN.
std::vector<TokenLogprob> likeliest_tokens(std::span<const float> logits, std::size_t count);

/// Draws the tokens of one sequence: options, the tokens so far, and what Mirostat has learnt. A copy goes on from
/// there by itself. Not for concurrent calls.
///
/// The draw is that of ops::Sample: the largest of (logit + Gumbel noise), the noise of a token being a function of
/// key, place in the sequence and token id. So the same key gives the same tokens at any batch size, and two samplers
/// with one key that see nearly the same logits mostly draw the same token, which speculative decoding lives on.
class Sampler {
 public:
  /// Errors: InvalidArgument naming an option that is out of range.
  explicit Sampler(SamplingOptions options = {});

  /// Draws the token that follows the sequence, without taking it into the sequence. `logits` is [V]; bit v % 32 of
  /// word v / 32 of `mask`, if given, says whether token v may be drawn. Errors: InvalidArgument for a mask or option
  /// that does not fit V, for logits with NaN, and where no token has a logit above -infinity.
  TokenId draw(std::span<const float> logits, std::span<const std::uint32_t> mask = {});
  /// What the cuts leave for the next token, likeliest first, with probabilities that add up to 1. Errors as `draw`.
  std::vector<TokenChance> chances(std::span<const float> logits, std::span<const std::uint32_t> mask = {});

  /// Takes tokens into the sequence: one that was drawn, or those of a prompt. Penalties and keys follow it.
  void accept(TokenId token);
  void accept(std::span<const TokenId> tokens);
  /// Forgets the last `count` tokens. Errors: InvalidArgument for more than there are, and with Mirostat, which cannot
  /// unlearn them.
  void rewind(std::size_t count);
  /// Where a sampler stands, with what Mirostat has learnt.
  struct Mark {
    std::size_t size = 0;
    double surprise_limit = 0;
  };
  Mark mark() const { return {sequence_.size(), surprise_limit_}; }
  /// Forgets what came after a mark of this sampler. Errors: InvalidArgument for a mark of more tokens than there are.
  void return_to(const Mark& mark);

  /// The tokens so far, those of the prompt included.
  std::span<const TokenId> sequence() const { return sequence_; }
  const SamplingOptions& options() const { return options_; }

 private:
  struct Candidate {
    float logit;
    TokenId id;
  };
  void collect(std::span<const float> logits, std::span<const std::uint32_t> mask);
  void run_steps();
  void penalize();
  void penalize_repetitions();
  void apply_temperature();
  void keep_top_k(std::size_t k);
  void keep_top_p();
  void keep_min_p();
  void keep_typical();
  void keep_near_best();
  void exclude_top_choices();
  void keep_unsurprising();
  void sort();
  void make_probabilities();
  const Candidate& best() const;
  std::pair<std::uint32_t, std::uint32_t> key() const;

  SamplingOptions options_;
  std::vector<TokenId> sequence_;
  double surprise_limit_ = 0;                             // Mirostat's mu, in bits
  std::optional<std::pair<TokenId, double>> surprise_{};  // of the token drawn last, until it is accepted
  // Of the draw in progress.
  std::vector<Candidate> candidates_;
  std::vector<double> probabilities_;  // of the candidates, in their order
  std::vector<std::int32_t> counts_, lengths_;
  bool sorted_ = false;  // candidates are in order, likeliest first
};

}  // namespace rlx
