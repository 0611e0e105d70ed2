// Speculative decoding: the sources of draft tokens, so that several tokens of an answer run at once.
#pragma once

#include <cstdint>
#include <memory>

#include "rlx/models/decoder_model.h"
#include "rlx/text/tokenizer.h"

namespace rlx {

/// Speculative decoding options. Drafts change the time of an answer and never its tokens. The engine runs the draft
/// after the last token of an answer and draws each token from the model's own logits with the request's own key. It
/// accepts the draft up to the first difference.
struct DraftOptions {
  /// Maximum tokens of a draft; 0: no drafts. Drafts get shorter after wrong ones.
  std::int64_t tokens = 8;
  /// Prompt lookup. Unless 0: the draft is the continuation of the latest earlier occurrence of the text's last tokens,
  /// where at least this many tokens match.
  std::int64_t lookup = 0;
};

/// A small model of the same vocabulary that drafts for a larger one. It draws with the keys of the request, so that
/// two similar models mostly draw the same token. Its cache needs as many sequences as the larger model's. Drafts stop
/// where its context or its pages end.
struct DraftModel {
  DecoderModel decoder;
  std::shared_ptr<const Tokenizer> tokenizer{};  // may be null: then only the vocabulary sizes are compared
};

}  // namespace rlx
