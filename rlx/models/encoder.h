// The graph of an encoder of texts: token ids in; vectors of tokens, one of each text, or scores of pairs out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/models/encoder_config.h"
#include "rlx/models/flow.h"

namespace rlx {

/// What a graph of build_encoder gives.
enum class EncoderOutput : std::uint8_t {
  Tokens,  // [B, S, H], the last layer's vectors; those of padding may be anything finite
  Text,    // [B, W], pooled, through `dense`, and normalised
  Scores,  // [B, labels], what the classifier says
};

/// What the graph of an encoder leaves open.
struct EncoderGraphOptions {
  std::optional<std::int64_t> batch, sequence;  // B and S; the symbols `batch` and `seq` when unset
  EncoderOutput output = EncoderOutput::Text;
  bool types = false;  // a third input: the type of each token
  Pooling pooling = Pooling::Mean;
  std::vector<DenseSpec> dense;
  std::int64_t dimensions = 0;  // elements kept of a vector, from its beginning; 0: all
  bool normalize = true;        // divide each vector by its L2 norm, after the cut
};

/// The weights of the model in `folder` (*.safetensors) under the names that build_encoder asks for with these options:
/// without the prefix of the base model, without heads that are not read, and with those of dense modules, which lie in
/// folders of their own. Errors: those of SafetensorsFolder::open.
ModelWeights open_encoder_weights(const std::string& folder, const EncoderConfig& config,
                                  const EncoderGraphOptions& options = {});

/// Builds the encoder. Inputs: `ids` I32 [B, S]; `mask` F32 [B, S], 1 for a token and 0 for padding, which is on the
/// right; with `types` also `types` I32 [B, S]. Computes in F32; params have the names of the checkpoint. Errors:
/// InvalidArgument for options out of range or a configuration that no family has, those of Flow::finish.
Graph build_encoder(const EncoderConfig& config, const ModelWeights& weights, const EncoderGraphOptions& options = {});

/// One vector per text from token vectors: tokens [B, S, H], mask [B, S] in the dtype of `tokens` (1 token, 0 padding)
/// -> [B, H]. A text without tokens gives zeros under Mean and MeanSqrtLength.
Expr pool_tokens(Expr tokens, Expr mask, Pooling pooling);

/// x / max(|x|, 1e-12) over the last axis.
Expr l2_normalize(Expr x);

}  // namespace rlx
