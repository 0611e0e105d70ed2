// The graph of a BERT sentence encoder: token ids in, one vector per text out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rlx/ir/graph.h"
#include "rlx/models/config.h"
#include "rlx/models/encoder.h"

namespace rlx {

/// Options of a sentence encoder's graph.
struct BertGraphOptions {
  std::optional<std::int64_t> batch, sequence;  // B and S; the symbols `batch` and `seq` when unset
  DType dtype = DType::F32;                     // dtype of params and computation
  DType ids = DType::I32;                       // I32 or I64
  DType mask = DType::F32;                      // Bool, a float or an integer type
  Pooling pooling = Pooling::Mean;
  bool normalize = true;  // divide each vector by its L2 norm
};

/// Builds the encoder. Inputs: `ids` [B, S]; `mask` [B, S], 1 for a token and 0 for padding. Output: [B, H], the pooled
/// and (by option) normalised sentence vectors. Params have the names and shapes of the Hugging Face checkpoint
/// ("encoder.layer.0.attention.self.query.weight" [out, in]). Matrices are transposed in the graph; prepacking folds
/// the transpose. Errors: InvalidArgument for sizes that are not positive, a head count that does not divide the width,
/// or a sequence beyond the position embedding.
Graph build_sentence_encoder(const BertConfig& config, const BertGraphOptions& options = {});

}  // namespace rlx
