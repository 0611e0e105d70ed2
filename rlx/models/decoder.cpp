// The graph of a decoder of any family, from its DecoderConfig. Vaswani et al. 2017 (arXiv:1706.03762) with later
// variants: RMS norms (1910.07467), gated feed-forward layers (2002.05202), rotary positions (2104.09864),
// grouped-query attention (2305.13245).
#include "rlx/models/decoder.h"

#include <algorithm>
#include <vector>

#include "rlx/error.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/rope.h"
#include "rlx/models/adapter/adapter_set.h"
#include "rlx/models/decoder/decoder_blocks.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

// Checks a hand-made configuration. Configurations of parse_decoder_config always pass.
void check_config(const DecoderConfig& c) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::InvalidArgument, concat_text("the configuration of a ", c.family, " decoder: ", what));
  };
  struct Size {
    const char* name;
    std::int64_t value;
  };
  std::vector<Size> sizes{{"vocab_size", c.vocab_size},      {"hidden_size", c.hidden_size}, {"ff_size", c.ff_size},
                          {"num_heads", c.num_heads},        {"kv_heads", c.kv_heads},       {"head_dim", c.head_dim},
                          {"max_positions", c.max_positions}};
  if (c.mla) {
    const MlaSpec& m = *c.mla;
    sizes.insert(sizes.end(),
                 {{"kv_rank", m.kv_rank}, {"nope_dim", m.nope_dim}, {"rope_dim", m.rope_dim}, {"v_dim", m.v_dim}});
  }
  if (c.moe) {
    const MoeSpec& m = *c.moe;
    sizes.insert(sizes.end(), {{"experts", m.experts},
                               {"used experts", m.used},
                               {"ff_size of an expert", m.ff_size},
                               {"groups", m.groups},
                               {"used groups", m.used_groups}});
  }
  for (const Size& s : sizes)
    if (s.value < 1 || s.value > std::int64_t{1} << 30)
      fail(concat_text(s.name, " must be in [1, 2^30], got ", s.value));
  if (c.num_heads % c.kv_heads) fail(concat_text("kv_heads ", c.kv_heads, " must divide num_heads ", c.num_heads));
  if (c.mla && (c.head_dim != c.mla->nope_dim + c.mla->rope_dim || c.kv_heads != c.num_heads || c.mla->q_rank < 0))
    fail("latent attention (MLA) needs head_dim = nope_dim + rope_dim, kv_heads = num_heads and q_rank >= 0");
  if (c.moe && (c.moe->used > c.moe->experts || c.moe->experts % c.moe->groups || c.moe->used_groups > c.moe->groups))
    fail(concat_text("cannot select ", c.moe->used, " of ", c.moe->experts, " experts in ", c.moe->groups, " groups"));
  if (c.layers.empty()) fail("the model has no layers");
  if (!c.xielu.empty() && c.xielu.size() != c.layers.size())
    fail(concat_text("xIELU has parameters for ", c.xielu.size(), " layers, but the model has ", c.layers.size()));
  for (const DecoderLayer& l : c.layers) {
    if (l.window < 0) fail(concat_text("a window must not be negative, got ", l.window));
    if (l.rope >= static_cast<int>(c.ropes.size()))
      fail(concat_text("a layer uses rope ", l.rope, ", but the model has ", c.ropes.size(), " ropes"));
    if (l.moe && !c.moe) fail("a layer has experts, but the configuration of experts is missing");
  }
  const std::int64_t rotatable = c.mla ? c.mla->rope_dim : c.head_dim;
  for (const RopeSpec& r : c.ropes)
    if (r.rotated > rotatable)
      fail(concat_text("rope rotates ", r.rotated, " elements, but a head has only ", rotatable, " for it"));
  if (c.norm != NormKind::Rms && c.norm != NormKind::Layer) fail("norm must be Rms or Layer");
}

void check(const DecoderConfig& c, const DecoderGraphOptions& o) {
  check_config(c);
  const struct {
    const char* name;
    std::int64_t value;
  } sizes[] = {{"sequences", o.sequences},
               {"context", o.context},
               {"max_tokens", o.max_tokens},
               {"page", o.page},
               {"pages_per_sequence", o.pages_per_sequence},
               {"pages", o.pages}};
  for (const auto& s : sizes)
    if (s.value < 1 || s.value > std::int64_t{1} << 30)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("the decoder's ", s.name, " must be in [1, 2^30], got ", s.value));
  if (o.pages > (std::int64_t{1} << 31) / o.page - 1)
    throw Error(ErrorCode::InvalidArgument, concat_text(o.pages, " pages of ", o.page, " tokens exceed 2^31 tokens"));
  if (o.context > o.page * o.pages_per_sequence)
    throw Error(ErrorCode::InvalidArgument, concat_text("a context of ", o.context, " tokens does not fit in ",
                                                        o.pages_per_sequence, " pages of ", o.page));
  if (o.window_page < 0 || (o.window_page == 0 && o.window_pages != 0) ||
      (o.window_page != 0 && (o.window_pages < 1 || o.window_pages > (std::int64_t{1} << 31) / o.window_page - 1)))
    throw Error(ErrorCode::InvalidArgument,
                concat_text(o.window_pages, " pages of ", o.window_page,
                            " tokens for layers with sliding windows are not a valid cache"));
  if (!c.names.positions.empty() && o.context > c.max_positions)
    throw Error(
        ErrorCode::InvalidArgument,
        concat_text("a context of ", o.context, " tokens is larger than the model's ", c.max_positions, " positions"),
        "the position embedding of the model has no more rows");
  if (o.cache_dtype != DType::F32 && o.cache_dtype != DType::BF16 && o.cache_dtype != DType::F16)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the KV cache must be f32, bf16 or f16, got ", dtype_name(o.cache_dtype)));
  if (o.cache_scheme) {
    if (!is_block_scheme(*o.cache_scheme) || block_layout(*o.cache_scheme).elements != 32)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("the KV cache cannot hold ", quant_scheme_name(*o.cache_scheme), " blocks"),
                  "supported are q8_0, q4_0, q4_1, q5_0 and q5_1");
    if (c.cached_dim() % 32)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("heads of ", c.cached_dim(), " elements cannot be divided into blocks of 32"),
                  "keep the cache in f32, bf16 or f16");
  }
}

// A checkpoint of the base model without its head may have names without the prefix.
DecoderConfig with_stored_names(DecoderConfig c, const ModelWeights& weights) {
  DecoderNames& n = c.names;
  if (n.prefix.empty() || weights.loader->find(n.embedding + ".weight")) return c;
  for (std::string* name : {&n.embedding, &n.positions, &n.final_norm, &n.layer})
    if (name->starts_with(n.prefix)) name->erase(0, n.prefix.size());
  return c;
}

// Every layer and every expert is built. A configuration with more of them than the file can hold must be refused
// without minutes of work or much memory.
void check_counts(const DecoderConfig& c, const ModelWeights& weights) {
  const std::size_t there = weights.loader->names().size();
  std::size_t least = 0;
  for (const DecoderLayer& layer : c.layers)
    least += layer.moe && c.moe->layout == ExpertLayout::Apart ? 3 * static_cast<std::size_t>(c.moe->experts) : 1;
  if (least > there)
    throw Error(
        ErrorCode::BadFile,
        concat_text(weights.source, ": the file has ", there, " tensors, but a ", c.family, " of ", c.layers.size(),
                    " layers", c.moe ? concat_text(" with ", c.moe->experts, " experts") : std::string(),
                    " has at least ", least),
        "the configuration and the weights belong to different models");
}

}  // namespace

Graph build_decoder(const DecoderConfig& config, const ModelWeights& weights, const DecoderGraphOptions& o,
                    AdapterSet* adapters) try {
  check(config, o);
  if (!weights.loader)
    throw Error(ErrorCode::InvalidArgument, "build_decoder: the weights have no loader (a null pointer)");
  const DecoderConfig c = with_stored_names(config, weights);
  check_counts(c, weights);
  Graph g("decoder");
  Flow flow(g, weights);
  DecoderBuilder b(flow, c, o, adapters);
  Expr x = b.embedded();
  for (std::size_t layer = 0; layer < c.layers.size(); ++layer) {
    auto scope = g.scope("layer" + std::to_string(layer));
    x = b.layer(x, layer);
  }
  {
    auto scope = g.scope("head");
    g.set_outputs({b.logits(x)});
  }
  const std::string what =
      concat_text("a ", c.family, " of ", c.layers.size(), c.layers.size() == 1 ? " layer" : " layers");
  flow.finish(what, c.names.ignored);
  if (adapters) adapters->finish(what);
  return g;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("build_decoder");
}

std::size_t decoder_cache_bytes(const DecoderConfig& c, const DecoderGraphOptions& o) {
  check(c, o);
  std::size_t bytes = 0;
  for (const DecoderLayer& layer : c.layers) bytes += shape_of_cache(c, o, layer).size_bytes() * c.cached_states();
  return bytes;
}

std::int64_t longest_window(const DecoderConfig& c) {
  std::int64_t most = 0;
  for (const DecoderLayer& layer : c.layers) most = std::max(most, layer.window);
  return most;
}

}  // namespace rlx
