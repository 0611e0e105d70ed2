// Speculative decoding: what an engine may draft tokens from, to run several of an answer at once.
#pragma once

#include <cstdint>
#include <memory>

#include "rlx/models/decoder_model.h"
#include "rlx/text/tokenizer.h"

namespace rlx {

/// How tokens that probably come next are found. They cost or save time and change nothing else: the engine runs them
/// behind the last token of an answer, draws the token of each place from the model's own logits with the request's own
/// key, and goes on for as long as it draws what was drafted.
struct DraftOptions {
  /// Tokens of a draft at most; 0: there are none. A draft is shorter where the last ones were wrong.
  std::int64_t tokens = 8;
  /// Unless 0: what followed the latest earlier place of the text that ends as the text does, in this many tokens or
  /// more, is a draft.
  std::int64_t lookup = 0;
};

/// A small model of the same vocabulary that drafts for a larger one. It draws with the keys of the request that it
/// drafts for, so that two models of nearly one mind mostly draw the same token. Its cache needs as many sequences as
/// the other's; where its context or its pages end, so do its drafts.
struct DraftModel {
  DecoderModel decoder;
  std::shared_ptr<const Tokenizer> tokenizer{};  // may be null: the vocabularies are then compared by their sizes
};

}  // namespace rlx
