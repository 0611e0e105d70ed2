// Decoders in GGUF files by `general.architecture`. The metadata readers are in families/.
#include "rlx/models/decoder/gguf_decoder.h"

#include <algorithm>

#include "rlx/error.h"
#include "rlx/models/decoder/gguf_keys.h"
#include "rlx/models/model_family.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {

std::vector<std::string> gguf_architectures() {
  std::vector<std::string> out;
  for (const ModelFamily* f : model_families())
    if (f->decoder && f->decoder->read_gguf) out.emplace_back(f->decoder->gguf);
  std::sort(out.begin(), out.end());
  return out;
}

DecoderConfig read_decoder_config(const GgufFile& file) try {
  const GgufKeys keys(file);
  for (const ModelFamily* f : model_families()) {
    if (!f->decoder || !f->decoder->read_gguf || f->decoder->gguf != file.architecture()) continue;
    DecoderConfig c;
    c.family = f->decoder->gguf;
    f->decoder->read_gguf(keys, c);
    if (c.norm_eps > kMostNormEps)
      keys.bad(concat_text("the epsilon of norms is ", c.norm_eps, ", expected a small number such as 1e-6"));
    return c;
  }
  const std::vector<std::string> known = gguf_architectures();
  keys.unsupported(concat_text("\"general.architecture\" is \"", file.architecture(),
                               "\", which is not a decoder that rlx supports"),
                   concat_text("supported are ", quoted_names(known, known.size())));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("read_decoder_config");
}

ModelWeights gguf_weights(std::shared_ptr<const GgufFile> file) try {
  if (!file) throw Error(ErrorCode::InvalidArgument, "gguf_weights: no file was given (a null pointer)");
  const GgufFile* f = file.get();
  const std::string source = file->source();
  const auto scheme = [f](std::string_view name) -> std::optional<QuantScheme> {
    const GgufTensor* t = f->find_tensor(name);
    if (!t || t->info().dtype) return std::nullopt;
    if (t->info().scheme == QuantScheme::Affine)
      throw Error(
          ErrorCode::Unsupported,
          concat_text(f->source(), ": the tensor '", name, "' is ", t->info().name, ", which rlx does not support"),
          "convert the file to another type, for example Q4_K or Q8_0");
    return t->info().scheme;
  };
  return {std::move(file), source, scheme};
} catch (const std::bad_alloc&) {
  throw_out_of_memory("gguf_weights");
}

}  // namespace rlx
