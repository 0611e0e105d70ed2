// Fingerprints of everything that decides a decoder's keys and values: its configuration and its weights.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "rlx/ir/serial/fingerprint.h"
#include "rlx/models/decoder_config.h"
#include "rlx/tensor/weight_loader.h"

namespace rlx {

/// The fingerprint of a configuration, with the rotary angles for `context`. Contexts with equal angles have equal
/// fingerprints. Errors: those of rope_frequencies.
Fingerprint config_fingerprint(const DecoderConfig& config, std::int64_t context);

/// The fingerprint of the content of the tensors `names`, in that order. Reads all of them. Errors: NotFound for a name
/// that the loader lacks.
Fingerprint weights_fingerprint(const WeightLoader& loader, std::span<const std::string> names);

/// The fingerprint of the files of the tensors `names`, by their file system identity. Equal fingerprints mean equal
/// content. Zero when one of the tensors is in no file.
Fingerprint sources_fingerprint(const WeightLoader& loader, std::span<const std::string> names);

}  // namespace rlx
