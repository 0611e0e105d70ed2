// The graph of an encoder of any family, from its EncoderConfig. Devlin et al. 2018 (arXiv:1810.04805) with later
// variants: rotary positions (2104.09864), relative position biases (Song et al. 2020, 2004.09297), gated feed-forward
// layers (2002.05202). Pooling as in Reimers and Gurevych 2019 (1908.10084).
#include "rlx/models/encoder.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "rlx/error.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/rope.h"
#include "rlx/models/config.h"
#include "rlx/models/decoder/decoder_blocks.h"
#include "rlx/models/encoder/encoder_blocks.h"
#include "rlx/models/rope_frequencies.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

// The row of MPNet's table (from T5, arXiv:1910.10683) for a key at distance `delta` after the query: one row for each
// small distance, then wider and wider buckets. In F32, as in training.
std::int32_t distance_bucket(std::int64_t delta, std::int64_t buckets, std::int64_t farthest) {
  const std::int64_t half = buckets / 2, exact = half / 2, n = delta < 0 ? -delta : delta;
  std::int64_t row = n;
  if (n >= exact) {
    const float ratio = std::log(static_cast<float>(n) / static_cast<float>(exact)) /
                        static_cast<float>(std::log(static_cast<double>(farthest) / static_cast<double>(exact)));
    row = std::min(exact + static_cast<std::int64_t>(ratio * static_cast<float>(half - exact)), half - 1);
  }
  return static_cast<std::int32_t>(row + (delta > 0 ? half : 0));
}

// Checks a hand-made configuration. Configurations of parse_encoder_config always pass.
void check_encoder(const EncoderConfig& c) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::InvalidArgument, concat_text("the configuration of a ", c.family, " encoder: ", what));
  };
  const struct {
    const char* name;
    std::int64_t value, least;
  } sizes[] = {{"vocab_size", c.vocab_size, 1},
               {"hidden_size", c.hidden_size, 1},
               {"ff_size", c.ff_size, 1},
               {"num_heads", c.num_heads, 1},
               {"kv_heads", c.kv_heads, 1},
               {"head_dim", c.head_dim, 1},
               {"max_tokens", c.max_tokens, 1},
               {"type_vocab_size", c.type_vocab_size, c.names.types.empty() ? 0 : 1},
               {"padding_id", c.padding_id, 0},
               {"relative_buckets", c.relative_buckets, 0},
               {"position_rows", c.position_rows, c.positions == EncoderPositions::None ? 0 : c.max_tokens}};
  for (const auto& s : sizes)
    if (s.value < s.least || s.value > std::int64_t{1} << 30)
      fail(concat_text(s.name, " must be in [", s.least, ", 2^30], got ", s.value));
  if (c.num_heads % c.kv_heads) fail(concat_text("kv_heads ", c.kv_heads, " must divide num_heads ", c.num_heads));
  if (c.positions == EncoderPositions::AfterPadding && c.position_rows < c.max_tokens + c.padding_id + 1)
    fail(concat_text(c.position_rows, " positions are too few for ", c.max_tokens,
                     " tokens after the position of padding"));
  if (c.relative_buckets &&
      (c.relative_buckets < 4 || c.relative_distance <= c.relative_buckets / 4 || c.relative_distance > 1 << 16))
    fail(concat_text(c.relative_buckets, " relative position buckets do not fit a distance of ", c.relative_distance));
  if (c.layers.empty()) fail("the model has no layers");
  for (const EncoderLayer& l : c.layers) {
    if (l.reach < 0) fail(concat_text("an attention window must not be negative, got ", l.reach));
    if (l.rope >= static_cast<int>(c.ropes.size()))
      fail(concat_text("a layer uses rope ", l.rope, ", but the model has ", c.ropes.size(), " ropes"));
  }
  for (const RopeSpec& r : c.ropes)
    if (r.rotated > c.head_dim)
      fail(concat_text("rope rotates ", r.rotated, " elements, but a head has only ", c.head_dim));
}

void check_options(const EncoderConfig& c, const EncoderGraphOptions& o) {
  const auto fail = [](const std::string& what, std::string hint = {}) {
    throw Error(ErrorCode::InvalidArgument, what, std::move(hint));
  };
  if (o.batch && *o.batch < 0) fail(concat_text("the batch must not be negative, got ", *o.batch));
  if (o.sequence && (*o.sequence < 1 || *o.sequence > c.max_tokens))
    fail(concat_text("the sequence must be in [1, ", c.max_tokens, "], got ", *o.sequence),
         "this is the largest sequence of the model");
  if (o.types && c.names.types.empty()) fail(concat_text("a ", c.family, " has no token types"));
  if (o.output == EncoderOutput::Scores && !c.classifier)
    fail(concat_text("a ", c.family, " has no classifier that rlx supports"));
  if (c.classifier && c.classifier->answers)
    for (const std::int32_t id : {c.classifier->answers->no, c.classifier->answers->yes})
      if (id < 0 || id >= c.vocab_size)
        fail(concat_text("the answer token ", id, " is not in the vocabulary of ", c.vocab_size, " tokens of the ",
                         c.family));
  std::int64_t width = c.hidden_size;
  for (const DenseSpec& d : o.dense) {
    if (d.in != width || d.out < 1 || d.out > std::int64_t{1} << 30)
      fail(concat_text("the dense layer '", d.name, "' has ", d.in, " inputs and ", d.out,
                       " outputs, but the vectors before it have length ", width));
    width = d.out;
  }
  if (o.dimensions < 0 || o.dimensions > width)
    fail(concat_text("dimensions must be in [1, ", width, "] or 0 for all, got ", o.dimensions),
         concat_text("vectors of this model have ", width, " elements"));
}

// Whether the layers equal BERT's except for their names.
bool has_bert_layers(const EncoderConfig& c) {
  const EncoderNames& n = c.names;
  return n.attention_norm.empty() && n.attention_post_norm.empty() && n.ff_norm.empty() && n.ff_post_norm.empty() &&
         !n.attention_sum_norm.empty() && !n.ff_sum_norm.empty() && n.qkv.empty() && c.norm == NormKind::Layer &&
         c.norm_bias && c.norm_offset == 0 && !c.gated && c.qkv_bias && c.o_bias && c.up_bias && c.down_bias &&
         c.kv_heads == c.num_heads && c.num_heads * c.head_dim == c.hidden_size && c.qk_norm == QkNorm::None &&
         !c.attention_scale && !c.attention_softcap && !c.causal && c.residual_scale == 1 && c.relative_buckets == 0 &&
         std::all_of(c.layers.begin(), c.layers.end(),
                     [](const EncoderLayer& layer) { return layer.reach == 0 && layer.rope < 0; });
}

}  // namespace

EncoderBuilder::EncoderBuilder(Flow& flow, const EncoderConfig& config, Expr ids, Expr mask, std::optional<Expr> types)
    : flow_(flow),
      g_(flow.graph()),
      c_(config),
      batch_(ids.dim(0)),
      seq_(ids.dim(1)),
      ids_(ids),
      mask_(mask),
      types_(types),
      blocks_(has_bert_layers(config)) {
  weights_ = g_.cast(mask_, flow_.dtype());
  if (blocks_) {
    const Expr visible = mask_.dtype() == DType::Bool || is_float(mask_.dtype()) ? mask_ : weights_;
    visible_ = g_.reshape(visible, {batch_, 1, 1, seq_});
  }
  if (c_.ropes.empty()) return;
  auto scope = g_.scope("rope");
  const Expr places = g_.cast(g_.iota(Shape({seq_, 1}, DType::I32), 0), DType::F32);
  for (const RopeSpec& spec : c_.ropes) {
    const std::vector<float> f = rope_frequencies(spec, c_.max_tokens);
    const Expr angle = places * g_.constant(Tensor::of<float>({1, static_cast<std::int64_t>(f.size())}, f));
    Angles a{g_.cos(angle), g_.sin(angle)};
    if (spec.table_scale != 1) a = {a.cos * spec.table_scale, a.sin * spec.table_scale};
    angles_.push_back(a);
  }
}

Expr EncoderBuilder::norm(Expr x, const std::string& name) {
  return flow_.norm(x, name, c_.norm, c_.norm_eps, c_.norm_bias, c_.norm_offset);
}

Expr EncoderBuilder::embedded() {
  auto scope = g_.scope("embeddings");
  const EncoderNames& n = c_.names;
  Expr x = flow_.embed(n.embedding + ".weight", ids_, c_.vocab_size, c_.hidden_size);
  // Values that depend on weights alone are added first, so that they are folded.
  std::optional<Expr> places, types;
  if (c_.positions == EncoderPositions::Learned) {
    places = g_.narrow(flow_.weight(n.positions + ".weight", {c_.position_rows, c_.hidden_size}), 0, 0, seq_);
  } else if (c_.positions == EncoderPositions::AfterPadding) {
    const Expr real = g_.cast(g_.ne(ids_, c_.padding_id), DType::I32);
    const Expr rows = g_.cumsum(real, 1) * real + c_.padding_id;
    places = flow_.embed(n.positions + ".weight", rows, c_.position_rows, c_.hidden_size);
  }
  if (!n.types.empty()) {
    const std::string name = n.types + ".weight";
    // A single segment: every token has type 0.
    types = types_ ? flow_.embed(name, *types_, c_.type_vocab_size, c_.hidden_size)
                   : g_.narrow(flow_.weight(name, {c_.type_vocab_size, c_.hidden_size}), 0, 0, 1);
  }
  if (places && types)
    x = x + (*places + *types);
  else if (places || types)
    x = x + (places ? *places : *types);
  if (c_.embedding_scale != 1) x = x * c_.embedding_scale;
  return n.embedding_norm.empty() ? x : norm(x, n.embedding_norm);
}

Expr EncoderBuilder::lengths() {
  if (!lengths_) lengths_ = g_.cast(g_.sum(weights_, {1}), DType::I32);
  return *lengths_;
}

// Whether a token attends to another one: [S, S].
Expr EncoderBuilder::near(std::int64_t reach) {
  const auto known = near_.find(reach);
  if (known != near_.end()) return known->second;
  const Expr i = g_.iota(Shape({seq_, 1}, DType::I32), 0), j = g_.iota(Shape({1, seq_}, DType::I32), 1);
  return near_.emplace(reach, g_.le(g_.max(i - j, j - i), reach)).first->second;
}

// The relative position bias of each head, [heads, S, S].
Expr EncoderBuilder::distance_bias() {
  if (bias_) return *bias_;
  auto scope = g_.scope("distances");
  const std::int64_t farthest = c_.relative_distance;  // larger distances share its row
  std::vector<std::int32_t> rows;
  for (std::int64_t delta = -farthest; delta <= farthest; ++delta)
    rows.push_back(distance_bucket(delta, c_.relative_buckets, c_.relative_distance));
  const auto n = static_cast<std::int64_t>(rows.size());
  const Expr table = flow_.weight(c_.names.relative_bias + ".weight", {c_.relative_buckets, c_.num_heads});
  const Expr by_delta = g_.t(g_.gather(table, g_.constant(Tensor::of<std::int32_t>({n}, rows))));  // [heads, n]
  const Expr i = g_.iota(Shape({seq_, 1}, DType::I32), 0), j = g_.iota(Shape({1, seq_}, DType::I32), 1);
  bias_ = g_.gather(by_delta, g_.max(g_.min(j - i, farthest), -farthest) + farthest, 1);
  return *bias_;
}

Expr EncoderBuilder::head_norm(Expr x, const std::string& name, std::int64_t heads) {
  if (c_.qk_norm == QkNorm::None) return x;
  if (c_.qk_norm == QkNorm::Width) return norm(x, at(name));
  const Expr y = norm(g_.reshape(x, {batch_, seq_, heads, c_.head_dim}), at(name));
  return g_.reshape(y, {batch_, seq_, heads * c_.head_dim});
}

Expr EncoderBuilder::rotate(Expr x, const EncoderLayer& layer) {
  if (layer.rope < 0) return x;
  const auto index = static_cast<std::size_t>(layer.rope);
  ops::Rope op;
  op.head_dim = c_.head_dim, op.n_rot = c_.ropes[index].rotated, op.pairing = c_.ropes[index].pairing;
  op.layout = HeadLayout::Merged;
  return g_.rope(x, angles_[index].cos, angles_[index].sin, op);
}

Expr EncoderBuilder::attention(Expr x, const EncoderLayer& layer) {
  const EncoderNames& n = c_.names;
  const std::int64_t q_width = c_.num_heads * c_.head_dim, kv_width = c_.kv_heads * c_.head_dim;
  Expr q, k, v;
  if (n.qkv.empty()) {
    q = flow_.linear(x, at(n.q), q_width, c_.qkv_bias);
    k = flow_.linear(x, at(n.k), kv_width, c_.qkv_bias);
    v = flow_.linear(x, at(n.v), kv_width, c_.qkv_bias);
  } else {
    const Expr all = c_.qkv_layout == QkvLayout::Parts
                         ? flow_.linear(x, at(n.qkv), q_width + 2 * kv_width, c_.qkv_bias)
                         : flow_.linear_of_heads(x, at(n.qkv), c_.num_heads, c_.head_dim, c_.qkv_bias);
    q = g_.narrow(all, 2, 0, q_width), k = g_.narrow(all, 2, q_width, kv_width);
    v = g_.narrow(all, 2, q_width + kv_width, kv_width);
  }
  q = rotate(head_norm(q, n.q_norm, c_.num_heads), layer);
  k = rotate(head_norm(k, n.k_norm, c_.kv_heads), layer);
  ops::Attention op;
  op.num_heads = c_.num_heads, op.kv_heads = c_.kv_heads, op.head_dim = c_.head_dim;
  op.scale = c_.attention_scale, op.softcap = c_.attention_softcap, op.layout = HeadLayout::Merged;
  AttentionOptions options;
  if (c_.causal) {  // padding is after every token
    op.mask = layer.reach ? MaskKind::SlidingWindow : MaskKind::Causal;
    op.window = layer.reach;
  } else {
    options.kv_len = lengths();
    if (layer.reach) op.mask = MaskKind::Custom, options.mask = near(layer.reach);
    if (c_.relative_buckets) op.mask = MaskKind::Bias, options.mask = distance_bias();
  }
  return flow_.linear(g_.attention(q, k, v, op, options), at(n.o), c_.hidden_size, c_.o_bias);
}

Expr EncoderBuilder::feed_forward(Expr x) {
  const EncoderNames& n = c_.names;
  Expr y;
  if (!c_.gated) {
    y = g_.activation(c_.activation, flow_.linear(x, at(n.up), c_.ff_size, c_.up_bias));
  } else if (n.gate_up.empty()) {
    const Expr gate = flow_.linear(x, at(n.gate), c_.ff_size, c_.up_bias);
    y = g_.activation(c_.activation, gate) * flow_.linear(x, at(n.up), c_.ff_size, c_.up_bias);
  } else {
    const Expr both = flow_.linear(x, at(n.gate_up), 2 * c_.ff_size, c_.up_bias);
    y = g_.activation(c_.activation, g_.narrow(both, 2, 0, c_.ff_size)) * g_.narrow(both, 2, c_.ff_size, c_.ff_size);
  }
  return flow_.linear(y, at(n.down), c_.hidden_size, c_.down_bias);
}

// A BERT layer, or one that differs only in names, as one HIR block.
Expr EncoderBuilder::whole_block(Expr x) {
  const EncoderNames& n = c_.names;
  ops::EncoderBlock block;
  block.num_heads = c_.num_heads;
  block.head_dim = c_.head_dim;
  block.mask = MaskKind::Custom;
  block.eps = c_.norm_eps;
  block.activation = c_.activation;
  std::vector<Expr> operands{x};
  const auto linear = [&](const std::string& name, std::int64_t in, std::int64_t out) {
    operands.push_back(g_.t(flow_.weight(at(name) + ".weight", {out, in})));
    operands.push_back(flow_.weight(at(name) + ".bias", {out}));
  };
  const auto layer_norm = [&](const std::string& name) {
    operands.push_back(flow_.weight(at(name) + ".weight", {c_.hidden_size}));
    operands.push_back(flow_.weight(at(name) + ".bias", {c_.hidden_size}));
  };
  for (const std::string* name : {&n.q, &n.k, &n.v, &n.o}) linear(*name, c_.hidden_size, c_.hidden_size);
  layer_norm(n.attention_sum_norm);
  linear(n.up, c_.hidden_size, c_.ff_size);
  linear(n.down, c_.ff_size, c_.hidden_size);
  layer_norm(n.ff_sum_norm);
  operands.push_back(visible_);
  return g_.encoder_block(block, operands);
}

Expr EncoderBuilder::layer(Expr x, const EncoderLayer& layer) {
  const EncoderNames& n = c_.names;
  if (blocks_) return whole_block(x);
  const auto normed = [&](Expr y, const std::string& name) { return name.empty() ? y : norm(y, at(name)); };
  const Expr seen = layer.attention_norm ? normed(x, n.attention_norm) : x;
  x = normed(x + branch(normed(attention(seen, layer), n.attention_post_norm)), n.attention_sum_norm);
  return normed(x + branch(normed(feed_forward(normed(x, n.ff_norm)), n.ff_post_norm)), n.ff_sum_norm);
}

Expr EncoderBuilder::tokens() {
  Expr x = embedded();
  for (std::size_t i = 0; i < c_.layers.size(); ++i) {
    auto scope = g_.scope("layer" + std::to_string(i));
    prefix_ = with_number(c_.names.layer, static_cast<std::int64_t>(i));
    x = layer(x, c_.layers[i]);
  }
  return c_.names.final_norm.empty() ? x : norm(x, c_.names.final_norm);
}

Expr EncoderBuilder::scores(Expr tokens) {
  auto scope = g_.scope("classifier");
  const ClassifierSpec& s = *c_.classifier;
  Expr y = pool_tokens(tokens, weights_, s.pooling);
  if (!s.dense.empty()) y = g_.activation(s.activation, flow_.linear(y, s.dense, c_.hidden_size, s.dense_bias));
  if (!s.norm.empty()) y = flow_.norm(y, s.norm, c_.norm, c_.norm_eps, s.norm_bias);
  if (s.answers) {
    const Expr rows = g_.constant(Tensor::of<std::int32_t>({2}, {s.answers->no, s.answers->yes}));
    const Expr both = g_.matmul(y, g_.t(flow_.embed(s.out + ".weight", rows, c_.vocab_size, c_.hidden_size)));
    return g_.narrow(both, 1, 1, 1) - g_.narrow(both, 1, 0, 1);
  }
  return flow_.linear(y, s.out, s.labels, s.out_bias);
}

Expr EncoderBuilder::text(Expr tokens, const EncoderGraphOptions& o) {
  auto scope = g_.scope("pooling");
  Expr y = pool_tokens(tokens, weights_, o.pooling);
  for (const DenseSpec& d : o.dense) {
    y = flow_.linear(y, d.name, d.out, d.bias);
    if (d.activation) y = g_.activation(*d.activation, y);
  }
  if (o.dimensions && o.dimensions < y.dim(1).value()) y = g_.narrow(y, 1, 0, o.dimensions);
  return o.normalize ? l2_normalize(y) : y;
}

Expr pool_tokens(Expr tokens, Expr mask, Pooling pooling) {
  if (pooling_name(pooling) == "unknown")
    throw Error(ErrorCode::InvalidArgument, concat_text(static_cast<int>(pooling), " is not a Pooling"));
  Graph& g = tokens.graph();
  if (pooling == Pooling::Cls) return g.squeeze(g.narrow(tokens, 1, 0, 1), 1);
  if (pooling == Pooling::LastToken) {
    const Expr last = g.cast(g.sum(mask, {1}, true), DType::I32) - 1;  // [B, 1]
    return g.squeeze(g.take_along_axis(tokens, g.reshape(g.max(last, 0), {tokens.dim(0), 1, 1}), 1), 1);
  }
  Expr weight = g.unsqueeze(mask, 2);  // [B, S, 1]
  // -1e9 rather than -inf, as in sentence-transformers: the vector of a text without tokens stays finite.
  if (pooling == Pooling::Max) return g.reduce_max(g.where(g.gt(weight, 0), tokens, -1e9), {1});
  Expr total = g.sum(tokens * weight, {1});          // [B, H]
  Expr count = g.max(g.sum(mask, {1}, true), 1e-9);  // [B, 1]
  return total / (pooling == Pooling::Mean ? count : g.sqrt(count));
}

Expr l2_normalize(Expr x) {
  Graph& g = x.graph();
  return x / g.max(g.sqrt(g.sum(g.square(x), {x.rank() - 1}, true)), 1e-12);
}

Graph build_encoder(const EncoderConfig& c, const ModelWeights& weights, const EncoderGraphOptions& o) try {
  check_encoder(c);
  check_options(c, o);
  if (!weights.loader)
    throw Error(ErrorCode::InvalidArgument, "build_encoder: the weights have no loader (a null pointer)");
  // A wrong configuration must be refused before it costs memory.
  const std::string embedding = c.names.embedding + ".weight";
  const std::optional<TensorView> table = weights.loader->find(embedding);
  if (table && (table->dims.size() != 2 || table->dims[1] != c.hidden_size))
    throw Error(ErrorCode::BadFile,
                concat_text(weights.source, ": '", embedding, "' is ", dims_text(table->dims), ", expected ",
                            dims_text(std::vector<std::int64_t>{c.vocab_size, c.hidden_size})),
                "the configuration and the weights belong to different models");
  const std::size_t there = weights.loader->names().size();
  if (c.layers.size() > there)  // each layer is built: a wrong count must not take long
    throw Error(ErrorCode::BadFile,
                concat_text(weights.source, ": the file has ", there, " tensors, but a ", c.family, " of ",
                            c.layers.size(), " layers has more"),
                "the configuration and the weights belong to different models");
  Graph g("encoder");
  const Dim batch = o.batch ? Dim(*o.batch) : g.symbol("batch", SymbolInfo{.min = 1});
  const Dim seq = o.sequence ? Dim(*o.sequence) : g.symbol("seq", SymbolInfo{.min = 1, .max = c.max_tokens});
  const Expr ids = g.input("ids", Shape({batch, seq}, DType::I32)),
             mask = g.input("mask", Shape({batch, seq}, DType::F32));
  std::optional<Expr> types;
  if (o.types) types = g.input("types", Shape({batch, seq}, DType::I32));
  Flow flow(g, weights);
  EncoderBuilder b(flow, c, ids, mask, types);
  const Expr x = b.tokens();
  g.set_outputs({o.output == EncoderOutput::Tokens   ? x
                 : o.output == EncoderOutput::Scores ? b.scores(x)
                                                     : b.text(x, o)});
  flow.finish(concat_text("a ", c.family, " of ", c.layers.size(), c.layers.size() == 1 ? " layer" : " layers"),
              c.names.ignored);
  return g;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("build_encoder");
}

}  // namespace rlx
