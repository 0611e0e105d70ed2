// Random parts of models: norms, attention, positions, blocks and layers.
#include <optional>

#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/rope.h"
#include "rlx/ir/ops/sequence.h"
#include "tests/support/random_generator.h"

namespace rlx::test {

void Generator::norm() {
  const Expr x = pick_float(1);
  std::vector<std::int64_t> axes{dice_.chance(80) ? x.rank() - 1 : axis_of(x)};
  if (x.rank() > 1 && dice_.chance(20)) axes = {x.rank() - 2, x.rank() - 1};
  Shape along({}, x.dtype());
  for (std::int64_t axis : axes) {
    Dims dims = along.dims();
    dims.push_back(x.dim(static_cast<int>(axis)));
    along = Shape(dims, x.dtype());
  }
  std::optional<Operand> gamma, beta;
  if (dice_.chance(80)) gamma = leaf(along);
  if (dice_.chance(80)) beta = leaf(along);
  switch (dice_.below(4)) {
    case 0: {
      const Expr y = g_.layer_norm(x, gamma, beta, 1e-5, axes);
      keep(dice_.chance(20) ? y * y.result(2) : y);
      return;
    }
    case 1: keep(g_.rms_norm(x, gamma, beta, 1e-6, axes)); return;
    default: {  // of a sum, as passes fuse it
      const Shape last({x.dim(-1)}, x.dtype());
      const Expr sum = x + leaf(x.shape());
      keep(dice_.chance(50) ? g_.layer_norm(sum, leaf(last), leaf(last)) : g_.rms_norm(sum, leaf(last), leaf(last)));
      if (dice_.chance(50)) keep(sum);
    }
  }
}

void Generator::attention() {
  ops::Attention op;
  static constexpr std::int64_t kHeadDims[] = {1, 2, 4, 8, 16, 5};
  op.kv_heads = 1 + dice_.below(2);
  op.num_heads = op.kv_heads * (1 + dice_.below(2));
  op.head_dim = dice_.of(kHeadDims);
  op.mask = static_cast<MaskKind>(dice_.below(5));
  op.window = op.mask == MaskKind::SlidingWindow ? dice_.below(4) : 0;
  op.layout = static_cast<HeadLayout>(dice_.below(3));
  if (dice_.chance(20)) op.scale = 0.3;
  if (dice_.chance(20)) op.softcap = 2.0;
  const DType t = dice_.chance(80) ? DType::F32 : dice_.of(kFloats);
  const Dim batch = 1 + dice_.below(3);
  const Dim queries = dice_.chance(30) && !symbols_.empty() ? symbols_[0] : Dim(1 + dice_.below(9));
  const Dim keys = dice_.chance(50) ? queries : Dim(1 + dice_.below(9));
  const auto heads = [&](const Dim& s, std::int64_t h) {
    return op.layout == HeadLayout::Merged       ? Dims{batch, s, h * op.head_dim}
           : op.layout == HeadLayout::HeadsFirst ? Dims{batch, h, s, op.head_dim}
                                                 : Dims{batch, s, h, op.head_dim};
  };
  const Dims q_dims = heads(queries, op.num_heads);
  if (elements(q_dims) > options_.max_elements) return;
  Expr q = pick([&](const Expr& e) { return e.dtype() == t && e.shape().dims() == q_dims; });
  if (!q.valid()) q = leaf(Shape(q_dims, t));
  const Expr k = leaf(Shape(heads(keys, op.kv_heads), t)), v = leaf(Shape(heads(keys, op.kv_heads), t));
  std::optional<Operand> mask;
  if (op.mask == MaskKind::Custom)
    mask = dice_.chance(50) ? leaf(Shape({batch, keys}, DType::Bool))
                            : leaf(Shape({batch, Dim(1), queries, keys}, DType::Bool));
  if (op.mask == MaskKind::Bias) mask = leaf(Shape({Dim(1), Dim(op.num_heads), queries, keys}, t));
  AttentionOptions options{mask, {}, {}, {}};
  const auto lengths = [&] {
    std::vector<std::int32_t> n(static_cast<std::size_t>(batch.value()));
    for (std::int32_t& e : n) e = static_cast<std::int32_t>(dice_.below(11));
    return g_.constant(Tensor::of<std::int32_t>({batch.value()}, n));
  };
  if (dice_.chance(20)) options.kv_len = lengths();
  if (dice_.chance(15)) options.q_len = lengths();
  if (dice_.chance(15)) options.sinks = g_.tanh(leaf(Shape({Dim(op.num_heads)}, t)));  // finite
  const Expr y = g_.attention(q, k, v, op, options);
  keep(y);
  if (dice_.chance(20)) keep(g_.exp(y.result(1)));  // the log may be -inf
}

void Generator::positions() {
  if (dice_.chance(50)) {
    const Expr x = pick_any(1);
    keep(dice_.chance(50) ? g_.dim_size(x, axis_of(x))
                          : g_.iota(Shape(x.shape().dims(), dice_.chance(50) ? DType::I32 : DType::F32), axis_of(x)));
    return;
  }
  ops::Rope op;
  op.head_dim = 2 * (1 + dice_.below(4));
  op.n_rot = 2 * (1 + dice_.below(op.head_dim / 2));
  op.pairing = static_cast<RopePairing>(dice_.below(2));
  op.inverse = dice_.chance(30);
  const Dim s = 1 + dice_.below(7);
  const Expr x = leaf(Shape({Dim(1 + dice_.below(2)), s, Dim(op.head_dim * (1 + dice_.below(3)))}, DType::F32));
  const Shape table({s, Dim(op.n_rot / 2)}, DType::F32);
  keep(g_.rope(x, leaf(table), leaf(table), op));
}

void Generator::block() {
  const Expr x = pick([](const Expr& e) { return e.dtype() == DType::F32 && e.rank() >= 2; });
  if (!x.valid()) return;
  const Dim k = x.dim(-1), n = 1 + dice_.below(12);
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  const auto act = function(6);
  switch (dice_.below(7)) {
    case 0: keep(g_.linear(x, leaf(f32({k, n})), Operand(leaf(f32({n}))), act)); return;
    case 1: keep(g_.linear_fused(x, leaf(f32({k, n})), leaf(f32({n})), act)); return;
    case 2: {
      const auto [a, b] = g_.shared_linear_pair(x, leaf(f32({k, n})), leaf(f32({k, n})));
      keep(a);
      keep(b);
      return;
    }
    case 3: keep(g_.swiglu(x, leaf(f32({k, n})), leaf(f32({k, n})), leaf(f32({n, k})))); return;
    case 4: keep(g_.residual_rms_norm(x, leaf(x.shape()), leaf(f32({k})), leaf(f32({k})))); return;
    case 5: keep(g_.residual_layer_norm(x, leaf(x.shape()), leaf(f32({k})), leaf(f32({k})))); return;
    default: layer();
  }
}

void Generator::layer() {
  const auto f32 = [](Dims dims) { return Shape(std::move(dims), DType::F32); };
  const Dim batch = 1 + dice_.below(2),
            seq = dice_.chance(40) && !symbols_.empty() ? symbols_[0] : Dim(1 + dice_.below(6));
  if (dice_.chance(30)) {  // a recurrence
    const std::int64_t h = 1 + dice_.below(20), width = 1 + dice_.below(6);
    const Dim sides = dice_.chance(30) ? 2 : 1;
    const Expr x = g_.input(next("x"), f32({seq, batch, Dim(width)}));
    const auto run = [&](auto op, std::int64_t gates) {
      op.direction = sides.value() == 2 ? RecurrentDirection::Bidirectional
                     : dice_.chance(30) ? RecurrentDirection::Reverse
                                        : RecurrentDirection::Forward;
      std::vector<std::pair<std::string_view, Expr>> operands{
          {"x", x}, {"w", leaf(f32({sides, gates * h, width}))}, {"r", leaf(f32({sides, gates * h, h}))}};
      if (dice_.chance(50)) operands.emplace_back("bias", leaf(f32({sides, 2 * gates * h})));
      if (dice_.chance(50)) operands.emplace_back("h0", leaf(f32({sides, batch, h})));
      const Expr y = g_.add_named(op, operands);
      keep(dice_.chance(50) ? y : y.result(1));
    };
    switch (dice_.below(4)) {
      case 0: return run(ops::Lstm{}, 4);
      case 1: return run(ops::Gru{}, 3);
      case 2: return run(ops::Rnn{}, 1);
      default: {
        const Expr t = g_.transpose(x, {1, 0, 2}), a = leaf(f32({width, h})), b = leaf(f32({batch, seq, h}));
        const Expr y =
            g_.add_named(ops::SelectiveScan{}, {{"x", t}, {"delta", g_.sin(t)}, {"a", g_.tanh(a)}, {"b", b}, {"c", b}});
        keep(y);
        return;
      }
    }
  }
  const std::int64_t heads = 1 + dice_.below(2), d = 2 * (1 + dice_.below(4)), e = heads * d,
                     inner = 1 + dice_.below(12);
  std::vector<Expr> x{g_.input(next("x"), f32({batch, seq, Dim(e)}))};
  const auto add = [&](Dims dims) { x.push_back(g_.param(next("w"), f32(std::move(dims)))); };
  const MaskKind mask = dice_.chance(30) ? MaskKind::Custom : dice_.chance(50) ? MaskKind::Causal : MaskKind::None;
  if (dice_.chance(60)) {
    for (int i = 0; i < 4; ++i) add({e, e}), add({e});
    add({e}), add({e}), add({e, inner}), add({inner}), add({inner, e}), add({e}), add({e}), add({e});
    ops::EncoderBlock op;
    op.num_heads = heads, op.head_dim = d, op.mask = mask, op.eps = 1e-5;
    op.activation = function(4);
    if (mask == MaskKind::Custom) x.push_back(leaf(Shape({batch, seq}, DType::Bool)));
    keep(g_.encoder_block(op, x));
  } else {
    const std::int64_t kv = heads % 2 == 0 && dice_.chance(50) ? heads / 2 : heads;
    add({e}), add({e, e}), add({e, kv * d}), add({e, kv * d}), add({e, e});
    add({e}), add({e, inner}), add({e, inner}), add({inner, e});
    x.push_back(g_.input(next("x"), f32({seq, Dim(d / 2)})));
    x.push_back(g_.input(next("x"), f32({seq, Dim(d / 2)})));
    ops::LlamaDecoderBlock op;
    op.num_heads = heads, op.kv_heads = kv, op.head_dim = d, op.mask = mask;
    if (mask == MaskKind::Custom) x.push_back(leaf(Shape({batch, seq}, DType::Bool)));
    keep(g_.llama_decoder_block(op, x));
  }
}

}  // namespace rlx::test
