// Generated inputs and weights for programs that are only timed.
#include "cli/made_up.h"

#include <cmath>
#include <random>

#include "rlx/device/registry.h"

namespace rlx::cli {

Tensor made_up_values(const Shape& shape, bool param, std::uint64_t seed) {
  Tensor t = Tensor::zeros(Shape(shape.dims(), DType::F32));
  const double scale =
      param && t.rank() > 1 ? 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(t.dim(0), 1))) : 1;
  const bool floats = is_inexact(shape.dtype());
  std::mt19937_64 random(seed);
  for (float& v : t.mutable_values<float>()) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    v = floats ? static_cast<float>((2 * unit - 1) * scale) : unit < 0.5 ? 0.0f : 1.0f;
  }
  return t.cast(shape.dtype());
}

MachineLimits one_thread_limits(Device device, const std::string& isa) {
  BackendOptions one_thread;
  one_thread.threads = 1;
  one_thread.isa = isa;
  return backend_for(device)->measure_limits(one_thread).value_or(MachineLimits{});
}

}  // namespace rlx::cli
