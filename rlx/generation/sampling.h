// Sampling of the next token from logits: a chain of filters and one keyed draw for each token of a sequence.
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

/// A step of the sampling chain. SamplingOptions documents each step. A step with its default options does nothing.
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
/// Parses step names such as "penalties;top_k;top_p;temperature". Errors: InvalidArgument naming an unknown or repeated
/// step.
std::vector<SamplingStep> parse_sampling_order(std::string_view text);

/// Sampling options. The defaults draw from the model's own distribution.
struct SamplingOptions {
  /// Logits are divided by the temperature. 0 takes the first of the largest logits, after penalties.
  float temperature = 1;
  /// Unless 0: the temperature lies between `temperature - range` and `temperature + range`, by the normalised entropy
  /// of the distribution raised to `dynamic_exponent`.
  float dynamic_range = 0, dynamic_exponent = 1;
  std::int32_t top_k = 0;  // unless 0: this many of the largest logits stay, of equals the first
  float top_p = 1;         // unless 1: the fewest of the likeliest tokens whose total probability reaches it stay
  float min_p = 0;         // tokens stay that are at least min_p times as likely as the likeliest token
  /// Unless 1: tokens are ordered by the distance of -log p from the entropy, and the fewest that reach this total
  /// probability stay (Meister et al., "Locally typical sampling", TACL 2023).
  float typical_p = 1;
  float top_n_sigma = 0;  // unless 0: tokens stay whose logit is within n standard deviations of the largest
  /// With this probability, only the least likely of all tokens with probability at least `xtc_threshold` stays; less
  /// likely tokens stay too.
  float xtc_probability = 0, xtc_threshold = 0.1F;

  /// Penalties for tokens among the last `penalty_window` of the sequence (-1: all of it). A positive logit is divided
  /// by `repetition_penalty` and a negative one multiplied. Then `frequency_penalty` times the number of occurrences
  /// and `presence_penalty` are subtracted.
  std::int32_t penalty_window = 64;
  float repetition_penalty = 1, frequency_penalty = 0, presence_penalty = 0;
  /// Unless `dry_multiplier` is 0: a token that would extend a repetition whose last L >= `dry_allowed_length` tokens
  /// stand at the end of the sequence loses dry_multiplier * dry_base^(L - dry_allowed_length). Only the last
  /// `dry_window` tokens count (-1: all). A repetition never crosses one of `dry_breakers`.
  float dry_multiplier = 0, dry_base = 1.75F;
  std::int32_t dry_allowed_length = 2, dry_window = -1;
  std::vector<TokenId> dry_breakers{};

  /// 0: off. 1 and 2: Mirostat (Basu et al., ICLR 2021) replaces all filters, after the temperature. It steers the
  /// surprise of tokens to `mirostat_tau` bits at rate `mirostat_eta`. Version 1 estimates Zipf's exponent and applies
  /// a top-k; version 2 limits the surprise itself.
  int mirostat = 0;
  float mirostat_tau = 5, mirostat_eta = 0.1F;

  /// Added to the logits of these tokens before all steps; -infinity forbids a token.
  std::vector<std::pair<TokenId, float>> logit_bias{};
  /// The order of the steps. Steps that are not listed do not run.
  std::vector<SamplingStep> order{SamplingStep::Penalties, SamplingStep::Dry,       SamplingStep::Temperature,
                                  SamplingStep::TopK,      SamplingStep::TopP,      SamplingStep::MinP,
                                  SamplingStep::TypicalP,  SamplingStep::TopNSigma, SamplingStep::Xtc};
  /// The key of all draws. Token i of a sequence is drawn with key fold_in({seed >> 32, seed}, i), so it depends only
  /// on the seed, its position and its logits.
  std::uint64_t seed = 0;
};

/// A candidate token after the filters.
struct TokenChance {
  TokenId id = -1;
  float probability = 0;
};

/// The log probability of a token: natural logarithm of the softmax of `logits` [V], in F64. NaN where logits have NaN.
/// Errors: InvalidArgument for an id outside [0, V).
double log_probability(std::span<const float> logits, TokenId id);

/// A token and the natural logarithm of its probability.
struct TokenLogprob {
  TokenId id = -1;
  double logprob = 0;
};
/// The `count` likeliest tokens by `logits` [V] (at most V), likeliest first, of equals the first. NaN logits come
/// last, and make all logarithms NaN.
std::vector<TokenLogprob> likeliest_tokens(std::span<const float> logits, std::size_t count);

/// Draws the tokens of one sequence. It holds options, the tokens so far and Mirostat's state. A copy continues
/// independently. Not for concurrent calls.
///
/// The draw is that of ops::Sample: the largest of (logit + Gumbel noise), where the noise of a token is a function of
/// key, position in the sequence and token id. So the same key gives the same tokens at any batch size. Two samplers
/// with one key and nearly the same logits mostly draw the same token, which speculative decoding relies on.
class Sampler {
 public:
  /// Errors: InvalidArgument naming an option that is out of range.
  explicit Sampler(SamplingOptions options = {});

  /// Draws the next token without appending it to the sequence. `logits` is [V]. Bit v % 32 of word v / 32 of `mask`,
  /// if given, says whether token v is allowed. Errors: InvalidArgument for a mask or option that does not fit V, for
  /// logits with NaN, and where no token has a logit above -infinity.
  TokenId draw(std::span<const float> logits, std::span<const std::uint32_t> mask = {});
  /// The candidates for the next token after all filters, likeliest first, with probabilities that sum to 1. Errors:
  /// those of `draw`.
  std::vector<TokenChance> chances(std::span<const float> logits, std::span<const std::uint32_t> mask = {});

  /// Appends a token to the sequence: a drawn token or a prompt token. Penalties and keys follow the sequence.
  void accept(TokenId token);
  void accept(std::span<const TokenId> tokens);
  /// Removes the last `count` tokens. Errors: InvalidArgument for more than there are, and with Mirostat, whose state
  /// cannot be rewound.
  void rewind(std::size_t count);
  /// A position of a sampler, with Mirostat's state.
  struct Mark {
    std::size_t size = 0;
    double surprise_limit = 0;
  };
  Mark mark() const { return {sequence_.size(), surprise_limit_}; }
  /// Returns to a mark of this sampler. Errors: InvalidArgument for a mark of more tokens than there are.
  void return_to(const Mark& mark);

  /// The tokens so far, including the prompt.
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
  std::optional<std::pair<TokenId, double>> surprise_{};  // surprise of the last drawn token, until it is accepted
  // Scratch memory of one draw.
  std::vector<Candidate> candidates_;
  std::vector<double> probabilities_;  // probabilities of the candidates, in order
  std::vector<std::int32_t> counts_, lengths_;
  bool sorted_ = false;  // candidates are sorted, likeliest first
};

}  // namespace rlx
