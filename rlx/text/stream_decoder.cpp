// Streaming decode with a tokeniser's decoder.
#include "rlx/text/stream_decoder.h"

#include "rlx/error.h"
#include "rlx/tensor/out_of_memory.h"
#include "rlx/text/tokenizer.h"
#include "rlx/text/tokenizer/decoder.h"

namespace rlx {

struct StreamDecoder::Impl {
  const Tokenizer& tokenizer;
  bool skip_special_tokens;
  TokenDecoder::Run run;
};

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens) try
    : impl_(new Impl{tokenizer, skip_special_tokens, TokenDecoder::Run(tokenizer.decoder())}) {
} catch (const std::bad_alloc&) {
  throw_out_of_memory("StreamDecoder");
}

StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;

namespace {
[[noreturn]] void moved_from() {
  throw Error(ErrorCode::InvalidArgument, "a StreamDecoder was used after it was moved from");
}
}  // namespace

std::string StreamDecoder::push(TokenId id) try {
  if (!impl_) moved_from();
  std::string out;
  const std::optional<std::string_view> piece = impl_->tokenizer.decoded_piece(id, impl_->skip_special_tokens);
  if (piece) impl_->run.push(*piece, out);
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("StreamDecoder::push");
}

std::string StreamDecoder::flush() try {
  if (!impl_) moved_from();
  std::string out;
  impl_->run.finish(out);
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("StreamDecoder::flush");
}

}  // namespace rlx
