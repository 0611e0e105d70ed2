// Encodes blocks, one contiguous run at a time.
#include "rlx/backends/cpu/quant/encoder.h"

#include "rlx/ir/ops/quantize.h"
#include "rlx/tensor/block_schemes.h"

namespace rlx::cpu {

const char* encoder_refuses(const Graph& g, NodeId quantize) {
  if (!is_block_scheme(g.node(quantize).op.as<ops::Quantize>().scheme))
    return "its quantized values are not in a block scheme";
  return refuse_unless(g.shape(g.node(quantize).inputs[0]).dtype() == DType::F32, "x is not f32");
}

void Encoder::point(LowerContext& c, NodeId quantize) {
  const Node& n = c.graph().node(quantize);
  scheme_ = n.op.as<ops::Quantize>().scheme;
  const BlockLayout& layout = block_layout(scheme_);
  const View x = c.value(n.inputs[0]);
  elements_ = layout.elements, bytes_ = layout.bytes;
  blocks_ = x.elements() / elements_;
  runs_ = Runs(x);
  encode_q8_0_ = c.kernels().encode_q8_0;
  c.point(x_, x);
}

void Encoder::write(std::int64_t first, std::int64_t end, std::byte* y) const {
  runs_.each(first * elements_, end * elements_, [&](std::int64_t at, std::int64_t count, std::int64_t from) {
    std::byte* to = y + from / elements_ * bytes_;
    if (scheme_ == QuantScheme::Q8_0)
      encode_q8_0_(x_ + at, count / elements_, reinterpret_cast<std::uint8_t*>(to));
    else
      quantize_blocks(scheme_, {x_ + at, static_cast<std::size_t>(count)},
                      {to, static_cast<std::size_t>(count / elements_ * bytes_)});
  });
}

}  // namespace rlx::cpu
