// BERT's encoder from HIR blocks, pooling and normalisation. Layout of the network: Devlin et al. 2018
// (arXiv:1810.04805); pooling as in Reimers and Gurevych 2019 (arXiv:1908.10084).
#include "rlx/models/bert.h"

#include <vector>

#include "rlx/ir/ops/blocks.h"

namespace rlx {
namespace {

ActivationKind activation_kind(HiddenActivation activation) {
  switch (activation) {
    case HiddenActivation::GeluTanh: return ActivationKind::GeluApprox;
    case HiddenActivation::Relu: return ActivationKind::Relu;
    case HiddenActivation::Silu: return ActivationKind::Silu;
    case HiddenActivation::Gelu: break;
  }
  return ActivationKind::Gelu;
}

void check_config(const BertConfig& c, const BertGraphOptions& o) {
  const struct {
    const char* name;
    std::int64_t value;
  } sizes[] = {
      {"hidden_size", c.hidden_size}, {"num_heads", c.num_heads},         {"intermediate_size", c.intermediate_size},
      {"vocab_size", c.vocab_size},   {"max_positions", c.max_positions}, {"type_vocab_size", c.type_vocab_size}};
  for (const auto& s : sizes)
    if (s.value < 1)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("the encoder's ", s.name, " must be at least 1, got ", s.value));
  if (c.num_layers < 0)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the encoder's num_layers must not be negative, got ", c.num_layers));
  if (c.hidden_size % c.num_heads)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("num_heads ", c.num_heads, " must divide hidden_size ", c.hidden_size));
  if (o.batch && *o.batch < 0)
    throw Error(ErrorCode::InvalidArgument, concat_text("the batch must not be negative, got ", *o.batch));
  if (o.sequence && (*o.sequence < 1 || *o.sequence > c.max_positions))
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the sequence must be in [1, ", c.max_positions, "], got ", *o.sequence),
                "the position embedding ends there");
  if (!is_index(o.ids))
    throw Error(ErrorCode::InvalidArgument, concat_text("token ids are i32 or i64, not ", dtype_name(o.ids)));
  if (!is_float(o.dtype))
    throw Error(ErrorCode::InvalidArgument, concat_text("the encoder computes in floats, not ", dtype_name(o.dtype)));
}

// Parameters by checkpoint name.
class Params {
 public:
  Params(Graph& g, DType dtype) : g_(g), dtype_(dtype) {}
  Expr vector(const std::string& name, std::int64_t n) { return g_.param(name, Shape({n}, dtype_)); }
  Expr table(const std::string& name, std::int64_t rows, std::int64_t columns) {
    return g_.param(name, Shape({rows, columns}, dtype_));
  }
  // A linear layer's weight [out, in] as [in, out], and its bias.
  void linear(std::vector<Expr>& out, const std::string& name, std::int64_t in_width, std::int64_t out_width) {
    out.push_back(g_.t(table(name + ".weight", out_width, in_width)));
    out.push_back(vector(name + ".bias", out_width));
  }
  void norm(std::vector<Expr>& out, const std::string& name, std::int64_t width) {
    out.push_back(vector(name + ".weight", width));
    out.push_back(vector(name + ".bias", width));
  }

 private:
  Graph& g_;
  DType dtype_;
};

}  // namespace

Expr pool_tokens(Expr tokens, Expr mask, Pooling pooling) {
  if (pooling_name(pooling) == "unknown")
    throw Error(ErrorCode::InvalidArgument, concat_text(static_cast<int>(pooling), " is no Pooling"));
  Graph& g = tokens.graph();
  if (pooling == Pooling::Cls) return g.squeeze(g.narrow(tokens, 1, 0, 1), 1);
  Expr weight = g.unsqueeze(mask, 2);  // [B, S, 1]
  // -1e9 rather than -inf, as sentence-transformers has it: a text without tokens stays finite.
  if (pooling == Pooling::Max) return g.reduce_max(g.where(g.gt(weight, 0), tokens, -1e9), {1});
  Expr total = g.sum(tokens * weight, {1});          // [B, H]
  Expr count = g.max(g.sum(mask, {1}, true), 1e-9);  // [B, 1]
  return total / (pooling == Pooling::Mean ? count : g.sqrt(count));
}

Expr l2_normalize(Expr x) {
  Graph& g = x.graph();
  return x / g.max(g.sqrt(g.sum(g.square(x), {x.rank() - 1}, true)), 1e-12);
}

Graph build_sentence_encoder(const BertConfig& c, const BertGraphOptions& o) {
  check_config(c, o);
  Graph g("sentence_encoder");
  const Dim batch = o.batch ? Dim(*o.batch) : g.symbol("batch", SymbolInfo{.min = 1});
  const Dim seq = o.sequence ? Dim(*o.sequence) : g.symbol("seq", SymbolInfo{.min = 1, .max = c.max_positions});
  Expr ids = g.input("ids", Shape({batch, seq}, o.ids)), mask = g.input("mask", Shape({batch, seq}, o.mask));
  Expr weights = g.cast(mask, o.dtype);                                       // for pooling
  Expr visible = o.mask == DType::Bool || is_float(o.mask) ? mask : weights;  // for attention
  visible = g.reshape(visible, {batch, 1, 1, seq});
  Params p(g, o.dtype);

  Expr x;
  {
    auto scope = g.scope("embeddings");
    Expr words = g.gather(p.table("embeddings.word_embeddings.weight", c.vocab_size, c.hidden_size), ids);
    Expr positions =
        g.narrow(p.table("embeddings.position_embeddings.weight", c.max_positions, c.hidden_size), 0, 0, seq);
    // Sentence encoders see one segment: every token has type 0. The two tables depend on weights alone, so their sum
    // is folded.
    Expr type = g.narrow(p.table("embeddings.token_type_embeddings.weight", c.type_vocab_size, c.hidden_size), 0, 0, 1);
    std::vector<Expr> norm;
    p.norm(norm, "embeddings.LayerNorm", c.hidden_size);
    x = g.layer_norm(words + (positions + type), norm[0], norm[1], c.layer_norm_eps);
  }
  ops::EncoderBlock block;
  block.num_heads = c.num_heads;
  block.head_dim = c.head_dim();
  block.mask = MaskKind::Custom;
  block.eps = c.layer_norm_eps;
  block.activation = activation_kind(c.activation);
  for (std::int64_t layer = 0; layer < c.num_layers; ++layer) {
    const std::string at = "encoder.layer." + std::to_string(layer);
    auto scope = g.scope("layer" + std::to_string(layer));
    std::vector<Expr> operands{x};
    for (const char* name : {"query", "key", "value"})
      p.linear(operands, concat_text(at, ".attention.self.", name), c.hidden_size, c.hidden_size);
    p.linear(operands, at + ".attention.output.dense", c.hidden_size, c.hidden_size);
    p.norm(operands, at + ".attention.output.LayerNorm", c.hidden_size);
    p.linear(operands, at + ".intermediate.dense", c.hidden_size, c.intermediate_size);
    p.linear(operands, at + ".output.dense", c.intermediate_size, c.hidden_size);
    p.norm(operands, at + ".output.LayerNorm", c.hidden_size);
    operands.push_back(visible);
    x = g.encoder_block(block, operands);
  }
  auto scope = g.scope("pooling");
  Expr y = pool_tokens(x, weights, o.pooling);
  if (o.normalize) y = l2_normalize(y);
  g.set_outputs({y});
  return g;
}

}  // namespace rlx
