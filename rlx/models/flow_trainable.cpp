// Flows whose weights are states: their first values, and their values after training.
#include <algorithm>
#include <cmath>

#include "rlx/models/flow.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx {
namespace {

// SplitMix64, a generator of 64-bit numbers by Steele, Lea and Flood.
std::uint64_t next_bits(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

// A seed for each name (FNV-1a).
std::uint64_t seed_of(std::uint64_t seed, const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325U ^ seed;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return next_bits(hash);
}

}  // namespace

Flow Flow::trainable(Graph& g, ModelWeights start) {
  Flow flow(g, std::move(start));
  flow.seed_ = 0;
  return flow;
}

Flow Flow::trainable(Graph& g, std::uint64_t seed) {
  Flow flow(g, DType::F32);
  flow.seed_ = seed;
  return flow;
}

Tensor Flow::first_value(const std::string& name, const Stored& weight, Start start) const {
  const Shape shape(Dims(weight.dims.begin(), weight.dims.end()), DType::F32);
  if (weights_.loader) {
    const std::optional<TensorView> view = weights_.loader->find(name);
    // A weight that does not fit is reported by finish.
    if (!view || (!weight.scheme && (!is_float(view->dtype) || !std::equal(view->dims.begin(), view->dims.end(),
                                                                           weight.dims.begin(), weight.dims.end()))))
      return Tensor::zeros(shape);
    if (!weight.scheme) return Tensor::copy_of(view->data, Shape(shape.dims(), view->dtype)).cast(DType::F32);
    Tensor out = Tensor::zeros(shape);
    dequantize_blocks(*weight.scheme, {static_cast<const std::byte*>(view->data), view->size_bytes},
                      out.mutable_values<float>());
    return out;
  }
  if (weight.dims.size() < 2) return Tensor::full(shape, start.value);
  Tensor out = Tensor::zeros(shape);
  const std::int64_t inputs = start.inputs ? start.inputs : weight.dims.back();
  const double bound = std::sqrt(3 / static_cast<double>(std::max<std::int64_t>(inputs, 1)));
  std::uint64_t state = seed_of(*seed_, name);
  for (float& v : out.mutable_values<float>())
    v = static_cast<float>((static_cast<double>(next_bits(state) >> 11) * 0x1p-52 - 1) * bound);
  return out;
}

std::vector<std::string> Flow::names() const {
  std::vector<std::string> out;
  for (const auto& [name, weight] : taken_) out.push_back(name);
  return out;
}

std::vector<NamedTensor> Flow::trained_weights(const CompiledGraph& program) const {
  if (!seed_)
    throw Error(ErrorCode::InvalidArgument, "Flow::trained_weights: the weights of this flow are params",
                "make it with Flow::trainable");
  std::vector<NamedTensor> out;
  for (const auto& [name, weight] : taken_) out.push_back({name, program.read_state(name)});
  return out;
}

}  // namespace rlx
