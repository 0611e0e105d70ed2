// Decodes ranges of quantized values.
#include "rlx/backends/cpu/quant/decoder.h"

#include <algorithm>

#include "rlx/ir/input_spec.h"
#include "rlx/tensor/block_schemes.h"
#include "rlx/tensor/visit.h"

namespace rlx::cpu {

const char* decoder_refuses(const Graph& g, NodeId id) {
  const auto& op = g.node(id).op.as<ops::Dequantize>();
  return refuse_unless(op.dtype == DType::F32 || op.dtype == DType::BF16 || op.dtype == DType::F16,
                       "its result is not f32, f16 or bf16");
}

void Decoder::point(LowerContext& c, NodeId id) {
  const Node& n = c.graph().node(id);
  const auto& op = n.op.as<ops::Dequantize>();
  const auto operand = [&](std::string_view name) -> std::optional<View> {
    const std::optional<int> i = find_operand(n.op, static_cast<int>(n.inputs.size()), name);
    if (!i) return std::nullopt;
    View v = c.value(n.inputs[static_cast<std::size_t>(*i)]);
    check(v.dense(), "an operand of a dequantize is not row-major");
    return v;
  };
  scheme_ = op.scheme;
  const View quants = *operand("codes");
  dtype_ = quants.dtype;
  c.point(quants_, quants);
  if (is_block_scheme(scheme_)) {
    const BlockLayout& l = block_layout(scheme_);
    grain_ = l.elements;
    code_bytes_ = static_cast<double>(l.bytes) / l.elements;
    return;
  }
  grain_ = dtype_bits(dtype_) < 8 ? 2 : 1;
  code_bytes_ = dtype_bits(dtype_) / 8.0;
  if (const auto scale = operand("scale")) {
    has_scale_ = true;
    scale_dtype_ = scale->dtype;
    c.point(scale_, *scale);
  }
  if (const auto zero = operand("zero_point")) {
    has_zero_ = true;
    c.point(zero_, *zero);
  }
  if (const auto global = operand("global_scale")) {
    has_global_ = true;
    c.point(global_, *global);
  }
  if (!op.axis) return;
  has_axis_ = true;
  const AxisView axis = around(quants, *op.axis);
  inner_ = axis.inner, extent_ = axis.extent, block_ = op.block;
  if (block_ > 0) blocks_ = (extent_ + block_ - 1) / block_;
}

float Decoder::scale_at(std::int64_t i) const {
  if (!has_scale_) return 1.0F;
  const auto s = static_cast<float>(load_element<double>(scale_, scale_dtype_, i));
  return has_global_ ? s * *global_ : s;
}

void Decoder::read(std::int64_t first, std::int64_t count, float* to) const {
  if (is_block_scheme(scheme_)) {
    const BlockLayout& l = block_layout(scheme_);
    const auto bytes = static_cast<std::size_t>(count / l.elements * l.bytes);
    dequantize_blocks(scheme_, {quants_ + first / l.elements * l.bytes, bytes}, {to, static_cast<std::size_t>(count)});
    return;
  }
  const std::int64_t end = first + count;
  for (std::int64_t i = first; i < end;) {
    // A run has one scale (step 0), or one scale per element, side by side (step 1).
    std::int64_t run = end - i, scale = 0, step = 0;
    if (has_axis_) {
      const std::int64_t along = i / inner_ % extent_, outer = i / inner_ / extent_, in = i % inner_;
      const std::int64_t row = outer * blocks_ + (block_ > 0 ? along / block_ : 0);
      if (inner_ == 1) {
        run = std::min(run, block_ > 0 ? std::min(block_ - along % block_, extent_ - along) : extent_ - along);
        scale = block_ > 0 ? row : along;
        step = block_ > 0 ? 0 : 1;
      } else {
        run = std::min(run, inner_ - in);
        scale = block_ > 0 ? row * inner_ + in : along;
        step = block_ > 0 ? 1 : 0;
      }
    }
    read_run(i, run, scale, step, to + (i - first));
    i += run;
  }
}

void Decoder::read_run(std::int64_t first, std::int64_t count, std::int64_t scale, std::int64_t step, float* to) const {
  const auto finish = [&](const auto& difference) {
    if (step == 0) {
      const float s = scale_at(scale);
      for (std::int64_t i = 0; i < count; ++i) to[i] = has_scale_ ? difference(i, scale) * s : difference(i, scale);
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        const float q = difference(i, scale + i);
        to[i] = has_scale_ ? q * scale_at(scale + i) : q;
      }
    }
  };
  // The difference of quantized value and zero point is exact in 64 bits and is rounded once.
  const auto integers = [&]<class T>(const T* quants) {
    const T* zero = has_zero_ ? reinterpret_cast<const T*>(zero_) : nullptr;
    finish([&](std::int64_t i, std::int64_t s) {
      const auto q = static_cast<std::uint64_t>(quants[i]);  // wraps
      return static_cast<float>(static_cast<std::int64_t>(zero ? q - static_cast<std::uint64_t>(zero[s]) : q));
    });
  };
  switch (dtype_) {
    case DType::I8: return integers(reinterpret_cast<const std::int8_t*>(quants_) + first);
    case DType::U8: return integers(reinterpret_cast<const std::uint8_t*>(quants_) + first);
    case DType::I16: return integers(reinterpret_cast<const std::int16_t*>(quants_) + first);
    case DType::U16: return integers(reinterpret_cast<const std::uint16_t*>(quants_) + first);
    case DType::I32: return integers(reinterpret_cast<const std::int32_t*>(quants_) + first);
    case DType::U32: return integers(reinterpret_cast<const std::uint32_t*>(quants_) + first);
    case DType::I64: return integers(reinterpret_cast<const std::int64_t*>(quants_) + first);
    default: break;  // 4 bits and small floats: exact in double
  }
  finish([&](std::int64_t i, std::int64_t s) {
    const double q = load_element<double>(quants_, dtype_, first + i);
    return static_cast<float>(has_zero_ ? q - load_element<double>(zero_, dtype_, s) : q);
  });
}

}  // namespace rlx::cpu
