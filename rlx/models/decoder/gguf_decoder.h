// Decoders in GGUF files: configuration from metadata, and weights.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rlx/formats/gguf.h"
#include "rlx/models/decoder_config.h"
#include "rlx/models/flow.h"

namespace rlx {

/// Reads a decoder's configuration from a file's metadata. Names are those of the file's tensors. GGUF converters
/// change some weights (interleaved rows of q and k, norms with their offset added); the configuration reflects this.
/// Errors: BadFile for missing or inconsistent keys, Unsupported for an architecture that is not in
/// gguf_architectures(), naming those.
DecoderConfig read_decoder_config(const GgufFile& file);
/// The supported values of `general.architecture`, sorted.
std::vector<std::string> gguf_architectures();
/// The weights of a file, without dequantization. InvalidArgument for null.
ModelWeights gguf_weights(std::shared_ptr<const GgufFile> file);

}  // namespace rlx
