// The blocks of a decoder's graph, built on a Flow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rlx/ir/ops/attention.h"
#include "rlx/models/decoder.h"
#include "rlx/tensor/tensor.h"

namespace rlx {

/// The shape of a cache state: a row for each token of the pool, [P * page, heads * elements], or quantized blocks, [P
/// * page, heads, row bytes]. Each layer has one state for keys and one for values, or one for latent vectors. For a
/// sliding-window layer with its own pool, P and page are those of that pool.
Shape shape_of_cache(const DecoderConfig& config, const DecoderGraphOptions& options, const DecoderLayer& layer);

/// Builds the blocks of build_decoder. The constructor declares the inputs.
class DecoderBuilder {
 public:
  DecoderBuilder(Flow& flow, const DecoderConfig& config, const DecoderGraphOptions& options,
                 AdapterSet* adapters = nullptr);

  /// The input of the first layer, [T, H].
  Expr embedded();
  /// One layer: x [T, H] -> [T, H].
  Expr layer(Expr x, std::size_t index);
  /// Logits [R, V] of the chosen rows of x [T, H].
  Expr logits(Expr x);

 private:
  struct Heads {
    Expr q, k, v;  // [T, heads * head_dim], [T, KV * head_dim] twice
  };
  struct Angles {
    Expr cos, sin;  // [T, rotated / 2]
  };
  std::string at(const std::string& name) const { return prefix_ + name; }
  Expr norm(Expr x, const std::string& name, std::optional<Expr> adapters = {});
  Expr norm(Expr x, const std::string& name, NormKind kind, double eps, bool bias, double offset, Expr adapters);
  Expr linear(Expr x, const std::string& name, std::int64_t out, bool bias);
  Expr adapted(Expr y, Expr x, const std::string& name, std::int64_t out, bool bias);
  Heads project(Expr x, const DecoderLayer& layer);
  Expr head_norm(Expr x, const std::string& name, std::int64_t heads);
  Expr rotate(Expr x, std::int64_t heads, std::int64_t head_dim, const DecoderLayer& layer);
  bool windowed(const DecoderLayer& layer) const { return layer.window != 0 && o_.window_page != 0; }
  Expr table(const DecoderLayer& layer) const { return windowed(layer) ? window_table_ : block_table_; }
  Expr cached(Expr x, const std::string& name, const DecoderLayer& layer);
  ops::PagedAttention paged_attention(const DecoderLayer& layer) const;
  Expr attention(Expr x, std::size_t index);
  Expr latent_attention(Expr x, std::size_t index);
  Expr gated(Expr x, const std::string& gate, const std::string& up, const std::string& down, std::int64_t width);
  Expr activated(Expr x);
  Expr xielu(Expr x);
  Expr feed_forward(Expr x);
  Expr experts(Expr x);
  Expr expert_outputs(Expr rows, Expr ids);
  Expr expert_matmul(Expr rows, Expr ids, const std::string& name, std::int64_t out);
  Expr branch(Expr y) { return c_.residual_scale == 1 ? y : y * c_.residual_scale; }

  Flow& flow_;
  Graph& g_;
  const DecoderConfig& c_;
  const DecoderGraphOptions& o_;
  AdapterSet* set_;        // may be null
  std::string prefix_;     // name prefix of the current layer's weights
  std::size_t layer_ = 0;  // number of the current layer
  Dim tokens_;             // T
  Expr ids_, positions_, slots_, block_table_, kv_len_, q_start_, rows_, window_slots_, window_table_, adapters_;
  std::vector<Angles> angles_;
};

/// `text` with its first "{}" replaced by a number.
std::string with_number(const std::string& text, std::int64_t number);

}  // namespace rlx
