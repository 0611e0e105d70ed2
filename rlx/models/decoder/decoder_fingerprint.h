// What decides the keys and values of a decoder: its configuration and its weights, as fingerprints.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "rlx/ir/serial/fingerprint.h"
#include "rlx/models/decoder_config.h"
#include "rlx/tensor/weight_loader.h"

namespace rlx {

/// Of all that a configuration says, rotary angles as they are for `context`: contexts for which these are equal do not
/// differ. Errors: those of rope_frequencies.
Fingerprint config_fingerprint(const DecoderConfig& config, std::int64_t context);

/// Of the content of the tensors `names`, in that order; reads all of them. Errors: NotFound for a name that the loader
/// lacks.
Fingerprint weights_fingerprint(const WeightLoader& loader, std::span<const std::string> names);

/// Of the files that the tensors `names` lie in, as the file system knows them: equal ones have the same content. Zero
/// where one of them lies in no file.
Fingerprint sources_fingerprint(const WeightLoader& loader, std::span<const std::string> names);

}  // namespace rlx
