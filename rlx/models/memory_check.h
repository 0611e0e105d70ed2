// Checks before loading whether a model fits into memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "rlx/device/open_device.h"
#include "rlx/ir/module.h"
#include "rlx/models/decoder.h"
#include "rlx/models/decoder_model.h"

namespace rlx {

/// Bytes that a decoder needs, by purpose.
struct MemoryNeed {
  std::size_t in_files = 0;  // weights that kernels read in place from mapped files; slow unless they stay in the page
                             // cache
  std::size_t repacked = 0;  // weights in packed layouts
  std::size_t cache = 0;     // the KV cache
  std::size_t buffers = 0;   // buffers of a run with the maximum number of tokens
  std::size_t total() const { return in_files + repacked + cache + buffers; }
};

/// A lower bound of a model's memory, from the headers of its files: weights as stored, or the smallest packed layout
/// where precision loss is allowed, and the KV cache.
MemoryNeed least_memory(const DecoderConfig& config, const ModelWeights& weights, const DecoderGraphOptions& graph,
                        MatmulPrecision precision);
/// The memory of a model's compiled program.
MemoryNeed program_memory(const LirModule& program, const DecoderConfig& config, const DecoderGraphOptions& graph);

/// Bytes that this process may still allocate: the system's available memory, and the rest below the limits of its
/// control groups, with file pages not counted as used. None where the system does not tell. `root` is a prefix of the
/// paths that are read, for tests.
std::optional<std::size_t> available_memory(const std::string& root = {});
/// The available memory of a device; none where its backend does not tell.
std::optional<std::size_t> available_memory(const OpenDevice& device);

/// Throws OutOfMemory when `need` exceeds `available`. The message names each part, and the size of a smaller cache.
void require_memory(const std::string& path, const MemoryNeed& need, std::size_t available, const DecoderConfig& config,
                    const DecoderGraphOptions& graph);

}  // namespace rlx
