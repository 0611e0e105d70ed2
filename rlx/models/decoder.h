// The graph of a decoder-only language model over a cache of keys and values: one program for prefill, chunks of it
// and single steps, of one sequence or of many.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rlx/ir/graph.h"
#include "rlx/models/decoder_config.h"
#include "rlx/models/flow.h"

namespace rlx {

class AdapterSet;

/// What the graph of a decoder leaves open.
struct DecoderGraphOptions {
  std::int64_t sequences = 1;                 // B
  std::int64_t context = 2048;                // tokens that a sequence may have
  std::int64_t max_tokens = 512;              // T and R at most
  std::int64_t page = 2048;                   // tokens of a page of the cache
  std::int64_t pages_per_sequence = 1;        // M
  std::int64_t pages = 1;                     // P, of the pool
  std::int64_t window_page = 0;               // 0: layers with a window lie in the same pages; else they have a pool
  std::int64_t window_pages = 0;              // of their own, of so many pages of `window_page` tokens
  DType cache_dtype = DType::F32;             // F32, BF16 or F16
  std::optional<QuantScheme> cache_scheme{};  // Q8_0, Q4_0, ..: keys and values are kept as such blocks instead
  bool round_q = false;                       // scores with keys of Q8_0 may round queries likewise
};

/// Builds the model. T, the symbol `tokens`, is the number of new tokens of a run, of all B sequences together, one
/// after the other; R, the symbol `rows`, is how many of these get logits. Inputs, all I32:
///   tokens [T]         their ids
///   positions [T]      their places in their sequences, from 0
///   slots [T]          where their keys and values go: row page * number + offset of the pool; -1: nowhere
///   block_table [B, M] the pages of each sequence
///   kv_len [B]         tokens of each sequence, the new ones among them
///   q_start [B + 1]    sequence b has the new tokens [q_start[b], q_start[b + 1])
///   rows [R]           the tokens to give logits of
///   window_slots [T], window_table [B, context / window_page rounded up]
///                      if there is a `window_page`: slots and block_table of the layers with a window; pages that lie
///                      before the window of each new token of a sequence may be any
///   adapters [T]       if there are `adapters`: which one changes a token's products; -1: none
/// Output: logits F32 [R, V]. States "cache.k.LAYER" and "cache.v.LAYER" hold the pool; latent
/// attention has one vector for each token, in the former. Params have the names of the
/// checkpoint. Errors: InvalidArgument for options out of range, those of Flow::finish and AdapterSet::finish.
Graph build_decoder(const DecoderConfig& config, const ModelWeights& weights, const DecoderGraphOptions& options,
                    AdapterSet* adapters = nullptr);

/// The longest window of a layer, in tokens; 0: no layer has one.
std::int64_t longest_window(const DecoderConfig& config);

/// Bytes of the cache of keys and values that build_decoder declares.
std::size_t decoder_cache_bytes(const DecoderConfig& config, const DecoderGraphOptions& options);

}  // namespace rlx
