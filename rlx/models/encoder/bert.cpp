// A BERT sentence encoder without a checkpoint.
#include "rlx/models/encoder/bert.h"

#include "rlx/models/encoder/encoder_blocks.h"

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
                "the position embedding has no more rows");
  if (!is_index(o.ids))
    throw Error(ErrorCode::InvalidArgument, concat_text("token ids must be i32 or i64, got ", dtype_name(o.ids)));
  if (!is_float(o.dtype))
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the dtype of the encoder must be a float dtype, got ", dtype_name(o.dtype)));
}

EncoderConfig encoder_of_bert(const BertConfig& b) {
  EncoderConfig c;
  c.family = "bert";
  c.vocab_size = b.vocab_size, c.hidden_size = b.hidden_size, c.ff_size = b.intermediate_size;
  c.num_heads = c.kv_heads = b.num_heads, c.head_dim = b.head_dim();
  c.positions = EncoderPositions::Learned, c.position_rows = c.max_tokens = b.max_positions;
  c.type_vocab_size = b.type_vocab_size;
  c.norm_eps = b.layer_norm_eps;
  c.activation = activation_kind(b.activation);
  c.layers.resize(static_cast<std::size_t>(b.num_layers));
  c.names = bert_names();
  c.names.types = "embeddings.token_type_embeddings";
  return c;
}

}  // namespace

Graph build_sentence_encoder(const BertConfig& config, const BertGraphOptions& o) {
  check_config(config, o);
  const EncoderConfig c = encoder_of_bert(config);
  Graph g("sentence_encoder");
  const Dim batch = o.batch ? Dim(*o.batch) : g.symbol("batch", SymbolInfo{.min = 1});
  const Dim seq = o.sequence ? Dim(*o.sequence) : g.symbol("seq", SymbolInfo{.min = 1, .max = c.max_tokens});
  const Expr ids = g.input("ids", Shape({batch, seq}, o.ids)), mask = g.input("mask", Shape({batch, seq}, o.mask));
  Flow flow(g, o.dtype);
  EncoderBuilder b(flow, c, ids, mask, std::nullopt);
  EncoderGraphOptions options;
  options.pooling = o.pooling, options.normalize = o.normalize;
  g.set_outputs({b.text(b.tokens(), options)});
  return g;
}

}  // namespace rlx
