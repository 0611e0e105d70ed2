// The graph of a decoder-only language model with a KV cache: one program for prefill, chunked prefill and decode, of
// one or many sequences.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rlx/ir/graph.h"
#include "rlx/models/decoder_config.h"
#include "rlx/models/flow.h"

namespace rlx {

class AdapterSet;

/// Options of a decoder's graph.
struct DecoderGraphOptions {
  std::int64_t sequences = 1;                 // B
  std::int64_t context = 2048;                // maximum tokens of a sequence
  std::int64_t max_tokens = 512;              // maximum of T and R
  std::int64_t page = 2048;                   // tokens of a KV page
  std::int64_t pages_per_sequence = 1;        // M
  std::int64_t pages = 1;                     // P, of the pool
  std::int64_t window_page = 0;               // tokens of a page of the separate pool for sliding-window layers; 0:
                                              // they share the pool
  std::int64_t window_pages = 0;              // pages of that separate pool
  DType cache_dtype = DType::F32;             // F32, BF16 or F16
  std::optional<QuantScheme> cache_scheme{};  // Q8_0, Q4_0, ..: keys and values are stored as such blocks
  bool round_q = false;                       // scores with Q8_0 keys may also round queries to Q8_0
};

/// Builds the model. T, the symbol `tokens`, is the number of new tokens of a run: those of all B sequences, one
/// sequence after the other. R, the symbol `rows`, is the number of tokens that get logits. Inputs, all I32:
///   tokens [T]         their ids
///   positions [T]      their positions in their sequences, from 0
///   slots [T]          where their keys and values are stored: page * page size + offset in the pool; -1: nowhere
///   block_table [B, M] the pages of each sequence
///   kv_len [B]         tokens of each sequence, including the new ones
///   q_start [B + 1]    sequence b has the new tokens [q_start[b], q_start[b + 1])
///   rows [R]           the tokens that get logits
///   window_slots [T], window_table [B, context / window_page rounded up]
///                      if there is a `window_page`: slots and block_table of the sliding-window layers; entries for
///                      pages before the windows of all new tokens of a sequence may have any value
///   adapters [T]       if there are `adapters`: the adapter of each token's matmuls; -1: none
/// Output: logits F32 [R, V]. The states "cache.k.LAYER" and "cache.v.LAYER" hold the pool; latent attention stores one
/// vector for each token, in the former. Params have the names of the checkpoint. Errors: InvalidArgument for options
/// out of range, those of Flow::finish and AdapterSet::finish.
Graph build_decoder(const DecoderConfig& config, const ModelWeights& weights, const DecoderGraphOptions& options,
                    AdapterSet* adapters = nullptr);

/// The longest sliding window of a layer, in tokens; 0: no layer has one.
std::int64_t longest_window(const DecoderConfig& config);

/// Bytes of the KV cache that build_decoder declares.
std::size_t decoder_cache_bytes(const DecoderConfig& config, const DecoderGraphOptions& options);

}  // namespace rlx
