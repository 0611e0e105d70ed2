// Whether a model fits into memory, known before anything of it is loaded.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "rlx/device/open_device.h"
#include "rlx/ir/module.h"
#include "rlx/models/decoder.h"
#include "rlx/models/decoder_model.h"

namespace rlx {

/// Bytes that a decoder needs, by what they are for.
struct MemoryNeed {
  std::size_t in_files = 0;  // weights that kernels read where files are mapped: they ought to stay there
  std::size_t repacked = 0;  // weights in the forms that products read
  std::size_t cache = 0;     // keys and values
  std::size_t buffers = 0;   // of a run of as many tokens as there may be
  std::size_t total() const { return in_files + repacked + cache + buffers; }
};

/// At least what a model needs, by the heads of its files: weights as they lie there, where products may lose something
/// as small as they may become, and the cache.
MemoryNeed least_memory(const DecoderConfig& config, const ModelWeights& weights, const DecoderGraphOptions& graph,
                        MatmulPrecision products);
/// What the compiled program of a model needs.
MemoryNeed program_memory(const LirModule& program, const DecoderConfig& config, const DecoderGraphOptions& graph);

/// Bytes that this process may take yet: what the system calls available, and what is left below the limits of its
/// control groups, file pages not counted as used. None where the system does not say. `root` goes in front of the
/// paths that are read, for tests.
std::optional<std::size_t> available_memory(const std::string& root = {});
/// The same of a device; none where its backend does not tell.
std::optional<std::size_t> available_memory(const OpenDevice& device);

/// Throws OutOfMemory when `need` is more than `available`: it names each part, and what a smaller cache would be.
void require_memory(const std::string& path, const MemoryNeed& need, std::size_t available, const DecoderConfig& config,
                    const DecoderGraphOptions& graph);

}  // namespace rlx
