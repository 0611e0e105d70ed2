// Decoder families by `model_type`. Each family is a file of families/.
#include <algorithm>

#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/models/config_keys.h"
#include "rlx/models/decoder_config.h"
#include "rlx/models/model_family.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {

std::vector<std::string> decoder_families() {
  std::vector<std::string> out;
  for (const ModelFamily* f : model_families())
    if (f->decoder) out.emplace_back(f->decoder->model_type);
  std::sort(out.begin(), out.end());
  return out;
}

DecoderConfig parse_decoder_config(const JsonDocument& document) try {
  DecoderConfig c = parse_decoder_of_texts(document);
  const ConfigKeys keys(document.root_object(), document.source());
  if (c.bidirectional)
    keys.unsupported(
        keys.flag("is_causal", true) ? "\"use_bidirectional_attention\" is true" : "\"is_causal\" is false",
        "such a model computes text embeddings; it does not generate text");
  return c;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("parse_decoder_config");
}

DecoderConfig parse_decoder_of_texts(const JsonDocument& document) try {
  const ConfigKeys keys(document.root_object(), document.source());
  const std::string type(document.root_object().get_string("model_type"));
  for (const ModelFamily* f : model_families()) {
    if (!f->decoder || f->decoder->model_type != type) continue;
    DecoderConfig c;
    c.family = type;
    f->decoder->read_config(keys, c);
    if (c.norm_eps > kMostNormEps)
      keys.bad(concat_text("the epsilon of norms is ", c.norm_eps, ", expected a small number such as 1e-6"));
    if (!keys.flag("is_causal", true) && !c.bidirectional) {
      c.bidirectional = true;
      for (DecoderLayer& layer : c.layers)  // a bidirectional window counts keys on each side without the token itself
        if (layer.window != 0) ++layer.window;
    }
    return c;
  }
  const std::vector<std::string> known = decoder_families();
  keys.unsupported(concat_text("\"model_type\" is \"", type, "\", which is not a decoder that rlx supports"),
                   concat_text("supported are ", quoted_names(known, known.size())));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("parse_decoder_of_texts");
}

DecoderConfig read_decoder_config(const std::string& folder) try {
  const std::string path = join_path(folder, "config.json");
  if (!has_file(path))
    throw Error(ErrorCode::NotFound, concat_text("\"", folder, "\" holds no config.json"),
                "give the folder of a Hugging Face model: config.json and *.safetensors");
  return parse_decoder_config(JsonDocument::read(path));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("read_decoder_config");
}

}  // namespace rlx
