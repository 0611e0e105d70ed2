// The table of GGUF element types, and decoding by that table.
#include "rlx/formats/gguf_types.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "rlx/error.h"
#include "rlx/tensor/half.h"

namespace rlx {
namespace {

constexpr GgufTypeInfo plain_type(GgufType type, std::string_view name, DType dtype) {
  return {type, name, 1, static_cast<int>(size_bytes(dtype)), dtype, QuantScheme::Affine};
}
constexpr GgufTypeInfo block_type(GgufType type, std::string_view name, int elements, int bytes, QuantScheme scheme) {
  return {type, name, elements, bytes, std::nullopt, scheme};
}

// clang-format off
constexpr GgufTypeInfo kGgufTypes[] = {
    plain_type(GgufType::F32, "F32", DType::F32),
    plain_type(GgufType::F16, "F16", DType::F16),
    block_type(GgufType::Q4_0, "Q4_0", 32, 18, QuantScheme::Q4_0),
    block_type(GgufType::Q4_1, "Q4_1", 32, 20, QuantScheme::Q4_1),
    block_type(GgufType::Q5_0, "Q5_0", 32, 22, QuantScheme::Q5_0),
    block_type(GgufType::Q5_1, "Q5_1", 32, 24, QuantScheme::Q5_1),
    block_type(GgufType::Q8_0, "Q8_0", 32, 34, QuantScheme::Q8_0),
    block_type(GgufType::Q2_K, "Q2_K", 256, 84, QuantScheme::Q2_K),
    block_type(GgufType::Q3_K, "Q3_K", 256, 110, QuantScheme::Q3_K),
    block_type(GgufType::Q4_K, "Q4_K", 256, 144, QuantScheme::Q4_K),
    block_type(GgufType::Q5_K, "Q5_K", 256, 176, QuantScheme::Q5_K),
    block_type(GgufType::Q6_K, "Q6_K", 256, 210, QuantScheme::Q6_K),
    block_type(GgufType::Q8_K, "Q8_K", 256, 292, QuantScheme::Q8_K),
    block_type(GgufType::IQ2_XXS, "IQ2_XXS", 256, 66, QuantScheme::IQ2_XXS),
    block_type(GgufType::IQ2_XS, "IQ2_XS", 256, 74, QuantScheme::IQ2_XS),
    block_type(GgufType::IQ3_XXS, "IQ3_XXS", 256, 98, QuantScheme::IQ3_XXS),
    block_type(GgufType::IQ1_S, "IQ1_S", 256, 50, QuantScheme::IQ1_S),
    block_type(GgufType::IQ4_NL, "IQ4_NL", 32, 18, QuantScheme::IQ4_NL),
    block_type(GgufType::IQ3_S, "IQ3_S", 256, 110, QuantScheme::IQ3_S),
    block_type(GgufType::IQ2_S, "IQ2_S", 256, 82, QuantScheme::IQ2_S),
    block_type(GgufType::IQ4_XS, "IQ4_XS", 256, 136, QuantScheme::IQ4_XS),
    plain_type(GgufType::I8, "I8", DType::I8),
    plain_type(GgufType::I16, "I16", DType::I16),
    plain_type(GgufType::I32, "I32", DType::I32),
    plain_type(GgufType::I64, "I64", DType::I64),
    plain_type(GgufType::F64, "F64", DType::F64),
    block_type(GgufType::IQ1_M, "IQ1_M", 256, 56, QuantScheme::IQ1_M),
    plain_type(GgufType::BF16, "BF16", DType::BF16),
    block_type(GgufType::TQ1_0, "TQ1_0", 256, 54, QuantScheme::TQ1_0),
    block_type(GgufType::TQ2_0, "TQ2_0", 256, 66, QuantScheme::TQ2_0),
    block_type(GgufType::MXFP4, "MXFP4", 32, 17, QuantScheme::MXFP4),
    block_type(GgufType::NVFP4, "NVFP4", 64, 36, QuantScheme::NVFP4),
    block_type(GgufType::Q1_0, "Q1_0", 128, 18, QuantScheme::Q1_0),
};
// clang-format on

char upper_case(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

}  // namespace

std::span<const GgufTypeInfo> gguf_types() { return kGgufTypes; }

std::optional<GgufType> gguf_type_of_number(std::uint32_t number) {
  for (const GgufTypeInfo& t : kGgufTypes)
    if (static_cast<std::uint32_t>(t.type) == number) return t.type;
  return std::nullopt;
}

const GgufTypeInfo& gguf_type_info(GgufType type) {
  for (const GgufTypeInfo& t : kGgufTypes)
    if (t.type == type) return t;
  detail::throw_no_enumerator("GgufType", static_cast<std::int64_t>(type));
}

std::optional<GgufType> parse_gguf_type(std::string_view name) {
  const auto same = [](char a, char b) { return upper_case(a) == b; };
  for (const GgufTypeInfo& t : kGgufTypes)
    if (std::equal(name.begin(), name.end(), t.name.begin(), t.name.end(), same)) return t.type;
  return std::nullopt;
}

GgufType gguf_type_of(QuantScheme scheme) {
  for (const GgufTypeInfo& t : kGgufTypes)
    if (t.scheme == scheme && is_block_scheme(scheme)) return t.type;
  throw Error(ErrorCode::InvalidArgument,
              concat_text("GGUF has no tensor type for blocks of ", quant_scheme_name(scheme)));
}

void decode_gguf(GgufType type, std::span<const std::byte> bytes, std::span<float> out) {
  const GgufTypeInfo& info = gguf_type_info(type);
  const auto per = static_cast<std::size_t>(info.bytes), each = static_cast<std::size_t>(info.elements);
  if (bytes.size() % per != 0 || bytes.size() / per * each != out.size()) {
    throw Error(ErrorCode::InvalidArgument,
                concat_text(info.name, ": ", bytes.size(), " bytes do not hold ", out.size(), " elements"),
                concat_text(info.elements, " elements take ", info.bytes, " bytes"));
  }
  const auto halves = [&](float (*convert)(std::uint16_t)) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::uint16_t bits;
      std::memcpy(&bits, bytes.data() + 2 * i, 2);
      out[i] = convert(bits);
    }
  };
  if (!info.dtype) {
    dequantize_blocks(info.scheme, bytes, out);
  } else if (info.dtype == DType::F32) {
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  } else if (info.dtype == DType::F16) {
    halves(f16_bits_to_float);
  } else if (info.dtype == DType::BF16) {
    halves(bf16_bits_to_float);
  } else {
    throw Error(ErrorCode::Unsupported, concat_text("tensors of type ", info.name, " cannot be decoded to F32"),
                "read the tensor in its own dtype and cast it");
  }
}

}  // namespace rlx
