// The graph of a text encoder: token ids in; token vectors, text vectors, or scores of text pairs out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/models/encoder_config.h"
#include "rlx/models/flow.h"

namespace rlx {

/// The output of a graph of build_encoder.
enum class EncoderOutput : std::uint8_t {
  Tokens,  // [B, S, H], the last layer's vectors; padding has arbitrary finite vectors
  Text,    // [B, W], pooled, after `dense`, and normalised
  Scores,  // [B, labels], of the classifier
};

/// Options of an encoder's graph.
struct EncoderGraphOptions {
  std::optional<std::int64_t> batch, sequence;  // B and S; the symbols `batch` and `seq` when unset
  EncoderOutput output = EncoderOutput::Text;
  bool types = false;  // a third input: the type of each token
  Pooling pooling = Pooling::Mean;
  std::vector<DenseSpec> dense;
  std::int64_t dimensions = 0;  // elements kept from the beginning of a vector; 0: all
  bool normalize = true;        // divide each vector by its L2 norm, after truncation
};

/// The weights of the model in `folder` (*.safetensors) under the names that build_encoder uses with these options:
/// without the prefix of the base model, without unused heads, and with those of dense modules, which are in folders of
/// their own. Errors: those of SafetensorsFolder::open.
ModelWeights open_encoder_weights(const std::string& folder, const EncoderConfig& config,
                                  const EncoderGraphOptions& options = {});

/// Builds the encoder. Inputs: `ids` I32 [B, S]; `mask` F32 [B, S], 1 for a token and 0 for padding, which is on the
/// right; with `types` also `types` I32 [B, S]. Computes in F32. Params have the names of the checkpoint. Errors:
/// InvalidArgument for options out of range or an invalid configuration, those of Flow::finish.
Graph build_encoder(const EncoderConfig& config, const ModelWeights& weights, const EncoderGraphOptions& options = {});

/// Pools token vectors to one vector per text: tokens [B, S, H], mask [B, S] in the dtype of `tokens` (1 token, 0
/// padding) -> [B, H]. A text without tokens gives zeros under Mean and MeanSqrtLength.
Expr pool_tokens(Expr tokens, Expr mask, Pooling pooling);

/// x / max(|x|, 1e-12) over the last axis.
Expr l2_normalize(Expr x);

}  // namespace rlx
