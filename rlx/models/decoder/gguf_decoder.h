// Decoders in GGUF files: what their metadata says, and their weights.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rlx/formats/gguf.h"
#include "rlx/models/decoder_config.h"
#include "rlx/models/flow.h"

namespace rlx {

/// Reads the description of a decoder from a file's metadata; names are those of its tensors. Where GGUF's converters
/// change weights (rows of q and k in another order for interleaved pairs, norms with their offset added), the
/// description says so. Errors: BadFile for keys that are missing or do not fit together, Unsupported for an
/// architecture that is none of gguf_architectures(), naming those.
DecoderConfig read_decoder_config(const GgufFile& file);
/// The values of `general.architecture` that are known, sorted.
std::vector<std::string> gguf_architectures();
/// The weights of a file, blocks as they are. InvalidArgument for none.
ModelWeights gguf_weights(std::shared_ptr<const GgufFile> file);

}  // namespace rlx
