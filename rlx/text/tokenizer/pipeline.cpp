// Encoding with the parts of a tokeniser.
#include "rlx/text/tokenizer/pipeline.h"

#include "rlx/error.h"
#include "rlx/tensor/out_of_memory.h"
#include "rlx/text/unicode.h"

namespace rlx {

PipelineTokenizer::PipelineTokenizer(TokenizerParts parts) : parts_(std::move(parts)) {
  special_.resize(parts_.vocabulary->size());
  Normalizer::Buffers buffers;
  for (const AddedToken& token : parts_.added) {
    added_ids_.insert_or_assign(token.content, token.id);
    bool special = token.special;
    if (token.normalized) {
      const std::string_view normal = parts_.normalizer.run(token.content, buffers);
      normalized_.add(normal, token);
      if (normal != token.content) {
        normalized_pieces_.insert_or_assign(token.id, std::string(normal));
        special = false;  // as in the reference library, which looks the piece up by content
      }
    } else {
      raw_.add(token.content, token);
    }
    special_[static_cast<std::size_t>(token.id)] = special;
  }
}

/// One encode call with its scratch buffers.
class PipelineTokenizer::Encoding {
 public:
  Encoding(const PipelineTokenizer& t, std::size_t text_bytes, std::vector<TokenId>& ids)
      : t_(t), ids_(ids), words_(t.parts_.pre_tokenizer), encoder_(t.parts_.model->encoder(text_bytes)) {}

  void run(std::string_view text) {
    const auto token = [&](TokenId id) { ids_.push_back(id); };
    const auto cut = [&](std::string_view piece, bool first) {
      words_.split(piece, first, [&](std::string_view word) { encoder_->encode(word, ids_); });
    };
    const auto raw = [&](std::string_view rest) {
      const bool first = rest.data() == text.data();
      const std::string_view normal = t_.parts_.normalizer.run(rest, buffers_);
      if (t_.normalized_.empty()) return cut(normal, first);
      t_.normalized_.split(
          normal, [&](std::string_view piece) { cut(piece, first && piece.data() == normal.data()); }, token);
    };
    if (t_.raw_.empty()) {
      raw(text);
    } else {
      t_.raw_.split(text, raw, token);
    }
  }

 private:
  const PipelineTokenizer& t_;
  std::vector<TokenId>& ids_;
  Normalizer::Buffers buffers_;
  PreTokenizer::Run words_;
  std::unique_ptr<WordEncoder> encoder_;
};

std::vector<TokenId> PipelineTokenizer::encode(std::string_view text, bool add_special_tokens) const try {
  require_utf8(text);
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + 8);
  if (add_special_tokens) ids.insert(ids.end(), parts_.prefix.begin(), parts_.prefix.end());
  if (!text.empty()) Encoding(*this, text.size(), ids).run(text);
  if (add_special_tokens) ids.insert(ids.end(), parts_.suffix.begin(), parts_.suffix.end());
  return ids;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Tokenizer::encode");
}

std::vector<PairPiece> PipelineTokenizer::pair_pieces() const {
  if (!parts_.no_pairs.empty()) throw Error(ErrorCode::Unsupported, parts_.no_pairs);
  return parts_.pair.empty() ? Tokenizer::pair_pieces() : parts_.pair;
}

std::string PipelineTokenizer::normalize(std::string_view text) const try {
  require_utf8(text);
  Normalizer::Buffers buffers;
  return std::string(parts_.normalizer.run(text, buffers));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Tokenizer::normalize");
}

std::optional<TokenId> PipelineTokenizer::token_to_id(std::string_view token) const {
  const auto added = added_ids_.find(token);
  return added != added_ids_.end() ? std::optional(added->second) : parts_.vocabulary->find(token);
}

std::optional<std::string_view> PipelineTokenizer::id_to_token(TokenId id) const {
  if (!parts_.vocabulary->has(id)) return std::nullopt;
  return parts_.vocabulary->token(id);
}

std::optional<std::string_view> PipelineTokenizer::decoded_piece(TokenId id, bool skip_special_tokens) const {
  const std::optional<std::string_view> token = id_to_token(id);
  if (!token) {
    throw Error(ErrorCode::InvalidArgument, concat_text("no token has the id ", id),
                concat_text("the ids of this tokeniser are 0 to ", vocab_size() - 1));
  }
  if (skip_special_tokens && special_[static_cast<std::size_t>(id)]) return std::nullopt;
  if (!normalized_pieces_.empty()) {
    const auto normal = normalized_pieces_.find(id);
    if (normal != normalized_pieces_.end()) return normal->second;
  }
  return token;
}

}  // namespace rlx
