// The blocks of a text encoder's graph, built on a Flow.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rlx/models/encoder.h"

namespace rlx {

/// Builds the blocks of build_encoder from its inputs.
class EncoderBuilder {
 public:
  /// ids [B, S], an integer type; mask [B, S], any type; types [B, S] or none.
  EncoderBuilder(Flow& flow, const EncoderConfig& config, Expr ids, Expr mask, std::optional<Expr> types);

  /// Vectors of the last layer, [B, S, H].
  Expr tokens();
  /// The classifier's output for tokens [B, S, H]: [B, labels].
  Expr scores(Expr tokens);
  /// Pools tokens [B, S, H], then applies `dense`, truncation and normalisation: [B, W].
  Expr text(Expr tokens, const EncoderGraphOptions& options);

 private:
  std::string at(const std::string& name) const { return prefix_ + name; }
  Expr embedded();
  Expr layer(Expr x, const EncoderLayer& layer);
  Expr whole_block(Expr x);
  Expr attention(Expr x, const EncoderLayer& layer);
  Expr feed_forward(Expr x);
  Expr norm(Expr x, const std::string& name);
  Expr head_norm(Expr x, const std::string& name, std::int64_t heads);
  Expr rotate(Expr x, const EncoderLayer& layer);
  Expr lengths();
  Expr near(std::int64_t reach);
  Expr distance_bias();
  Expr branch(Expr y) { return c_.residual_scale == 1 ? y : y * c_.residual_scale; }

  struct Angles {
    Expr cos, sin;  // [S, rotated / 2]
  };
  Flow& flow_;
  Graph& g_;
  const EncoderConfig& c_;
  std::string prefix_;  // name prefix of the current layer's weights
  Dim batch_, seq_;     // B, S
  Expr ids_, mask_, weights_;
  std::optional<Expr> types_;
  bool blocks_;   // each layer is one HIR block
  Expr visible_;  // for those: the mask [B, 1, 1, S]
  std::optional<Expr> lengths_, bias_;
  std::map<std::int64_t, Expr> near_;
  std::vector<Angles> angles_;
};

/// BERT's weight names, without its heads.
EncoderNames bert_names();

}  // namespace rlx
