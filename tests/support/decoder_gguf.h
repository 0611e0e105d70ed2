// GGUF files of the reference decoders: heads as written by llama.cpp's converter, with newly drawn data.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "rlx/tensor/block_schemes.h"
#include "tests/support/decoder_reference.h"

namespace rlx::test {

/// True if make_references.py has a GGUF head for the case.
bool has_gguf(const std::string& name);
/// The bytes of the f32 file that llama.cpp's converter makes of the case: its head, then the weights in the
/// converter's order and layout. Throws when a tensor's bytes differ from the converter's.
std::string decoder_gguf(const DecoderReference& model);
/// A GGUF file with the metadata of `f32` and its matrices quantized to blocks of `scheme`, where their rows are whole
/// blocks.
std::string with_blocks(const std::string& f32, QuantScheme scheme);

}  // namespace rlx::test
