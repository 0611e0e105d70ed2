// Element types of GGUF files: numbers, names, sizes, and decoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "rlx/tensor/block_schemes.h"
#include "rlx/tensor/dtype.h"

namespace rlx {

/// Element type of a tensor in a GGUF file. The values are those of the format.
enum class GgufType : std::uint32_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q2_K = 10,
  Q3_K = 11,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  Q8_K = 15,
  IQ2_XXS = 16,
  IQ2_XS = 17,
  IQ3_XXS = 18,
  IQ1_S = 19,
  IQ4_NL = 20,
  IQ3_S = 21,
  IQ2_S = 22,
  IQ4_XS = 23,
  I8 = 24,
  I16 = 25,
  I32 = 26,
  I64 = 27,
  F64 = 28,
  IQ1_M = 29,
  BF16 = 30,
  TQ1_0 = 34,
  TQ2_0 = 35,
  MXFP4 = 39,
  NVFP4 = 40,
  Q1_0 = 41,
};

/// Facts about a type: `elements` consecutive elements of a row take `bytes` bytes.
struct GgufTypeInfo {
  GgufType type;
  std::string_view name;  // "F32", "Q4_K", as in files and tools
  int elements, bytes;
  std::optional<DType> dtype;  // dtype of a plain type
  QuantScheme scheme;          // scheme of a block-quantized type; Affine for a plain type
};
/// All types, in the order of their numbers.
std::span<const GgufTypeInfo> gguf_types();
/// The facts about `type`. Errors: InvalidArgument for a number that is not an enumerator.
const GgufTypeInfo& gguf_type_info(GgufType type);
/// The type with the format's number, or none.
std::optional<GgufType> gguf_type_of_number(std::uint32_t number);
/// The type of a name in any case ("q4_k", "BF16"), or none.
std::optional<GgufType> parse_gguf_type(std::string_view name);
/// The GGUF type of a block scheme. Errors: InvalidArgument for Affine.
GgufType gguf_type_of(QuantScheme scheme);

/// Decodes whole blocks of `bytes` into `out`, in F32. The result equals the format's reference bit for bit. Errors:
/// InvalidArgument when the sizes do not match, Unsupported for integers and F64.
void decode_gguf(GgufType type, std::span<const std::byte> bytes, std::span<float> out);

}  // namespace rlx
