// GGUF files of the reference decoders: heads as the format's own converter wrote them, data drawn anew.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "rlx/tensor/block_schemes.h"
#include "tests/support/decoder_reference.h"

namespace rlx::test {

/// Whether make_references.py has a GGUF head of the case.
bool has_gguf(const std::string& name);
/// The bytes of the file that llama.cpp's converter makes of the case in f32: its head, and behind it the weights in
/// the order and form that the converter gives them. Throws when a tensor's bytes are not those of the converter.
std::string decoder_gguf(const DecoderReference& model);
/// A GGUF file with the metadata of `f32` and its matrices in blocks of `scheme`, where their rows fit.
std::string with_blocks(const std::string& f32, QuantScheme scheme);

}  // namespace rlx::test
