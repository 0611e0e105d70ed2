// Random calls of rlx/functions: convolutions and windows with random attributes, matrices, transforms, random numbers,
// losses.
#include "rlx/functions/functions.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "rlx/ir/math/windows.h"
#include "rlx/ir/ops/conv.h"
#include "tests/support/random_generator.h"

namespace rlx::test {

void Generator::function_call() {
  switch (dice_.below(8)) {
    case 0:
    case 1: return convolution();
    case 2: return pool_call();
    case 3: return matrices();
    case 4: return transforms();
    case 5: return draws();
    case 6: return losses();
    default: return small_functions();
  }
}

Expr Generator::float_of(const Dims& dims, DType t, Fill fill, std::int64_t bound) {
  return operand(SampleInput(Shape(dims, t), fill, bound));
}

void Generator::convolution() {
  const DType t = dice_.of(kFloats);
  const std::int64_t space = 1 + dice_.below(3), few = space == 3 ? 3 : space == 2 ? 6 : 20;
  const auto list = [&](std::int64_t low, std::int64_t high) {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < space; ++i) out.push_back(low + (dice_.chance(50) ? 0 : dice_.below(high - low)));
    return out;
  };
  ops::Conv op;
  op.strides = list(1, 4), op.rhs_dilation = list(1, 4), op.low = list(0, 4), op.high = list(0, 4);
  if (dice_.chance(15)) op.low = list(-1, 3), op.high = list(-1, 3);
  if (dice_.chance(25)) op.lhs_dilation = list(1, 4);
  op.groups = dice_.chance(50) ? 1 : 1 + dice_.below(4);
  if (dice_.chance(10)) op.batch_groups = 1 + dice_.below(2);
  const bool depthwise = dice_.chance(25) && op.batch_groups == 1;
  std::int64_t in = depthwise ? 1 : 1 + dice_.below(5), out = 1 + dice_.below(depthwise ? 2 : 9);
  if (depthwise) op.groups = 1 + dice_.below(18);
  const std::int64_t batch = op.batch_groups * (1 + dice_.below(2));
  if (op.batch_groups > 1) op.groups = 1;
  // The order of the axes: a usual one, or any.
  const auto spec = [&](std::vector<std::int64_t>& places) {
    places.clear();
    for (std::int64_t i = 0; i < space + 2; ++i) places.push_back(i);
    if (dice_.chance(50)) {  // channels last
      places = {0, space + 1};
      for (std::int64_t i = 0; i < space; ++i) places.push_back(1 + i);
    }
    if (dice_.chance(15))
      for (std::size_t i = places.size(); i-- > 1;)
        std::swap(places[i], places[static_cast<std::size_t>(dice_.below(static_cast<std::int64_t>(i) + 1))]);
  };
  const auto laid = [&](const std::vector<std::int64_t>& places, std::int64_t first, std::int64_t second,
                        const std::vector<std::int64_t>& rest) {
    Dims dims(static_cast<std::size_t>(space + 2), Dim(1));
    const auto at = [&](std::size_t i) { return places.empty() ? i : static_cast<std::size_t>(places[i]); };
    dims[at(0)] = first, dims[at(1)] = second;
    for (std::size_t i = 0; i < rest.size(); ++i) dims[at(i + 2)] = rest[i];
    return dims;
  };
  if (dice_.chance(60)) spec(op.lhs_spec), spec(op.rhs_spec), spec(op.out_spec);
  const Dims x = laid(op.lhs_spec, batch, in * op.groups, list(1, few + 4));
  const Dims w = laid(op.rhs_spec, out * op.groups * op.batch_groups, in, list(1, 5));
  if (elements(x) > 4 * options_.max_elements || elements(w) > 4 * options_.max_elements) return;
  const Expr y = keep(g_.conv(float_of(x, t), float_of(w, t), op));
  if (dice_.chance(40)) {  // an epilogue that passes fuse
    Dims bias(static_cast<std::size_t>(space + 2), Dim(1));
    const auto feature = static_cast<std::size_t>(op.out_spec.empty() ? 1 : op.out_spec[1]);
    bias[feature] = y.dim(static_cast<int>(feature));
    const Expr sum = keep(g_.add(y, float_of(bias, t)));
    if (dice_.chance(60)) keep(g_.activation(function(6), sum));
  }
}

void Generator::pool_call() {
  const DType t = dice_.of(kFloats);
  const std::int64_t space = 1 + dice_.below(2), channels = 1 + dice_.below(18);
  nn::PoolOptions o;
  Dims dims{Dim(1 + dice_.below(2)), Dim(channels)};
  o.low.clear();
  for (std::int64_t i = 0; i < space; ++i) {
    dims.emplace_back(1 + dice_.below(space == 1 ? 40 : 9));
    o.window.push_back(1 + dice_.below(4));
    o.strides.push_back(1 + dice_.below(3));
    o.low.push_back(dice_.below(o.window.back() / 2 + 1));
  }
  if (dice_.chance(30)) o.dilation = {1 + dice_.below(3)};
  o.padding = static_cast<nn::PoolPadding>(dice_.below(3));
  if (o.padding != nn::PoolPadding::Given) o.low = {0};
  o.ceil_mode = o.padding == nn::PoolPadding::Given && dice_.chance(30), o.count_include_pad = dice_.chance(50);
  o.channels_last = dice_.chance(40);
  if (o.channels_last) std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  if (elements(dims) > 2 * options_.max_elements) return;
  const Expr x = float_of(dims, t);
  switch (dice_.below(7)) {
    case 0:
    case 1: keep(nn::max_pool(x, o)); return;
    case 2: keep(nn::avg_pool(x, o)); return;
    case 3: keep(nn::pool(static_cast<ReduceKind>(dice_.below(5)), x, o)); return;
    case 4: {
      const nn::IndexedPool p = nn::max_pool_with_indices(x, o);
      keep(p.values);
      keep(p.indices);
      return;
    }
    case 5: {
      const std::vector<std::int64_t> sizes(static_cast<std::size_t>(space), 1 + dice_.below(5));
      keep(dice_.chance(50) ? nn::adaptive_avg_pool(x, sizes, o.channels_last)
                            : nn::adaptive_max_pool(x, sizes, o.channels_last));
      return;
    }
    default: {  // the derivative of a maximum alone
      ops::SelectAndScatter op{dice_.chance(50) ? ReduceKind::Max : ReduceKind::Min};
      std::vector<WindowAxis> axes;
      Dims windows;
      for (const Dim& d : x.shape().dims()) {
        WindowAxis a;
        if (dice_.chance(60)) a = {1 + dice_.below(3), 1 + dice_.below(3), dice_.below(2), dice_.below(2), 1, 1};
        axes.push_back(a);
        windows.push_back(a.outputs(d));
      }
      set_window_axes(op, axes);
      keep(g_.select_and_scatter(x, float_of(windows, t), op));
    }
  }
}

void Generator::matrices() {
  const DType t = dice_.chance(70) ? DType::F32 : DType::F64;
  const std::int64_t n = 1 + dice_.below(9), k = 1 + dice_.below(4);
  Dims square{Dim(n), Dim(n)}, sides{Dim(n), Dim(k)};
  if (dice_.chance(30)) square.insert(square.begin(), Dim(2)), sides.insert(sides.begin(), Dim(2));
  const Expr a = float_of(square, t, Fill::Unit, n), b = float_of(sides, t);
  const auto transposed = [&] { return static_cast<linalg::Transposed>(dice_.below(3)); };
  switch (dice_.below(12)) {
    case 0: keep(linalg::solve(a, b)); return;
    case 1: keep(linalg::inv(a)); return;
    case 2: keep(linalg::slogdet(a).logabsdet); return;
    case 3: keep(g_.mul(linalg::det(a), 1.0 / 64)); return;
    case 4: keep(linalg::lu_solve(linalg::lu_factor(a), b, transposed())); return;
    case 5: keep(linalg::cholesky_solve(g_.cholesky(a), b)); return;
    case 6: keep(linalg::solve_triangular(a, b, dice_.chance(50), transposed(), dice_.chance(20))); return;
    case 7: {  // a projector, which does not depend on the signs of the columns
      const Expr q = g_.qr(float_of(sides, t, Fill::Unit, n))[0];
      keep(g_.matmul(q, g_.t(q)));
      return;
    }
    case 8: keep(linalg::eigvalsh(a)); return;
    case 9: keep(linalg::svdvals(float_of(sides, t))); return;
    case 10: keep(linalg::expm(g_.mul(a, 1.0 / static_cast<double>(2 * n)))); return;
    default: keep(linalg::matrix_norm(b, static_cast<linalg::MatrixNorm>(dice_.below(8)))); return;
  }
}

void Generator::transforms() {
  const DType t = dice_.chance(70) ? DType::F32 : DType::F64;
  static constexpr std::int64_t kLengths[] = {1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 16, 17, 20, 25, 31, 32, 49, 64, 97, 128};
  const std::int64_t n = dice_.of(kLengths);
  const Dims dims{Dim(1 + dice_.below(4)), Dim(n)};
  const Expr x = float_of(dims, t);
  const auto norm = static_cast<FftNorm>(dice_.below(4));
  const auto parts = [&](const Expr& z) {
    keep(z);
    keep(g_.real(z));
    if (dice_.chance(50)) keep(g_.imag(z));
  };
  const fft::Length length = dice_.chance(30) ? fft::Length(Dim(1 + dice_.below(20))) : fft::Length();
  const std::int64_t axis = dice_.chance(75) ? -1 : 0;
  switch (dice_.below(8)) {
    case 0: parts(fft::fft(x, length, axis, norm)); return;
    case 1: parts(fft::ifft(g_.complex(x, float_of(dims, t)), length, axis, norm)); return;
    case 2: parts(fft::rfft(x, length, axis, norm)); return;
    case 3: keep(fft::irfft(g_.complex(x, float_of(dims, t)), length, axis, norm)); return;
    case 4: parts(fft::fftn(x, {}, norm)); return;
    case 5: parts(fft::rfftn(x, {}, norm)); return;
    case 6:
      keep(fft::fft_conv1d(x, float_of({Dim(1 + dice_.below(9))}, t),
                           static_cast<fft::ConvolutionPart>(dice_.below(3))));
      return;
    default: keep(dice_.chance(50) ? fft::psd(x) : fft::fftshift(x));
  }
}

void Generator::draws() {
  const Expr key = whole_leaf(Shape({Dim(2)}, DType::U32), 0, 1 << 30);
  const Dims dims{random_dim(), Dim(1 + dice_.below(20))};
  if (elements(dims) > options_.max_elements) return;
  const DType t = dice_.chance(70) ? DType::F32 : dice_.of(kFloats);
  switch (dice_.below(12)) {
    case 0: keep(random::gumbel(key, dims, t)); return;
    case 1: keep(random::exponential(key, dims, t)); return;
    case 2: keep(random::laplace(key, dims, t)); return;
    case 3: keep(random::logistic(key, dims, t)); return;
    case 4: keep(random::uniform(key, -1.0, 2.0, dims, t)); return;
    case 5: keep(random::truncated_normal(key, -2.0, 1.5, dims, t)); return;
    case 6: keep(random::rademacher(key, dims)); return;
    case 7: keep(random::randint(key, -5, 11, dims, dice_.chance(50) ? DType::I32 : DType::I64)); return;
    case 8: keep(random::permutation(key, 1 + dice_.below(40))); return;
    case 9: keep(random::shuffle(key, pick_any(1), 0, dice_.chance(50))); return;
    case 10: keep(random::weibull(key, 1.5, 0.75, dims, t)); return;
    default: keep(random::philox_bits(key, dims));
  }
}

void Generator::losses() {
  const DType t = dice_.chance(70) ? DType::F32 : dice_.of(kFloats);
  const std::int64_t rows = 1 + dice_.below(9), classes = 1 + dice_.below(17);
  const Dims dims{Dim(rows), Dim(classes)};
  const Expr x = float_of(dims, t), y = float_of(dims, t);
  const auto reduction = static_cast<nn::Reduction>(dice_.below(3));
  switch (dice_.below(10)) {
    case 0: {
      nn::CrossEntropyOptions o;
      if (dice_.chance(40)) o.weight = float_of({Dim(classes)}, t, Fill::Positive, 1);
      if (dice_.chance(30)) o.ignore_index = dice_.below(classes + 1);
      if (dice_.chance(30)) o.label_smoothing = 0.125;
      o.reduction = reduction;
      const Expr labels = whole_leaf(Shape({Dim(rows)}, dice_.chance(50) ? DType::I32 : DType::I64), 0, classes);
      keep(nn::cross_entropy(x, labels, o));
      return;
    }
    case 1: keep(nn::binary_cross_entropy_with_logits(x, g_.sigmoid(y), {}, {}, reduction)); return;
    case 2: keep(nn::mse_loss(x, y, reduction)); return;
    case 3: keep(nn::smooth_l1_loss(x, y, 0.5, reduction)); return;
    case 4: keep(nn::huber_loss(x, y, 0.75, reduction)); return;
    case 5: keep(nn::kl_div(g_.log_softmax(x, -1), g_.softmax(y, -1), false, reduction)); return;
    case 6: keep(nn::cosine_similarity(x, y)); return;
    case 7: keep(nn::sigmoid_focal_loss(x, g_.sigmoid(y), 0.25, 2, reduction)); return;
    case 8: keep(nn::soft_margin_loss(x, g_.tanh(y), reduction)); return;
    default: keep(nn::gaussian_nll_loss(x, y, float_of(dims, t, Fill::Positive, 1), dice_.chance(50), 1e-6, reduction));
  }
}

void Generator::small_functions() {
  const Expr x = pick_float(1);
  switch (dice_.below(14)) {
    case 0: {
      if (!x.dim(-1).is_static() || x.dim(-1).value() < 1) return;
      nn::ResizeOptions o;
      o.kind = static_cast<ResizeKind>(dice_.below(6)), o.places = static_cast<ResizePlaces>(dice_.below(4));
      o.rounding = static_cast<ResizeRounding>(dice_.below(4)), o.antialias = dice_.chance(30);
      o.renormalize = dice_.chance(50);
      keep(nn::resize(x, {x.rank() - 1}, {1 + dice_.below(20)}, o));
      return;
    }
    case 1: {
      const auto mode = static_cast<nn::PadMode>(dice_.below(4));
      std::vector<std::int64_t> low, high;
      for (int i = 0; i < x.rank(); ++i) low.push_back(dice_.below(3)), high.push_back(dice_.below(3));
      keep(nn::pad(x, low, high, mode));
      return;
    }
    case 2: keep(nn::roll(x, {dice_.below(9) - 4}, {axis_of(x)})); return;
    case 3: {
      std::vector<std::int64_t> repeats;
      for (int i = 0; i < x.rank(); ++i) repeats.push_back(1 + dice_.below(2));
      keep(nn::tile(x, repeats));
      return;
    }
    case 4:
      keep(x.rank() >= 2 ? (dice_.chance(50) ? nn::tril(x, dice_.below(3) - 1) : nn::triu(x, dice_.below(3) - 1))
                         : stats::diag(x, dice_.below(3) - 1));
      return;
    case 5: keep(stats::var(x, axes_of(x), 0, dice_.chance(50))); return;
    case 6: keep(stats::logsumexp(x, {axis_of(x)})); return;
    case 7: keep(stats::cumulative_logsumexp(x, axis_of(x), dice_.chance(50))); return;
    case 8: keep(stats::median(x, axis_of(x))); return;
    case 9: {
      const Expr p = g_.add(g_.mul(g_.tanh(x), 0.45), 0.5);
      switch (dice_.below(5)) {
        case 0: keep(special::logit(p)); return;
        case 1: keep(special::ndtri(p)); return;
        case 2: keep(special::log_ndtr(x)); return;
        case 3: keep(special::xlogy(x, p)); return;
        default: keep(special::betainc(g_.add(p, 0.5), g_.add(p, 1.0), p)); return;
      }
    }
    case 10: {
      if (!x.shape().is_static() || x.shape().num_elements() == 0) return;
      const Expr y =
          g_.group_norm(fitted(x, Shape({Dim(2), Dim(6), Dim(1 + dice_.below(9))}, x.dtype())), 1 + dice_.below(3));
      keep(y);
      return;
    }
    case 11: keep(x.rank() >= 2 ? nn::batch_norm_training(x).y : nn::hard_tanh(x)); return;
    case 12: keep(nn::squareplus(x)); return;
    default: keep(nn::shrink(x, 0.5, 0.25));
  }
}

}  // namespace rlx::test
