// What is behind CompiledGraph: the bound memory of one runner. Internal.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/specialize.h"
#include "rlx/runtime/weights.h"

namespace rlx {

/// A specialisation bound to the memory of one runner.
struct ShapeInstance {
  std::shared_ptr<const Specialization> spec;
  std::vector<const std::byte*> prepared;
  std::vector<std::byte*> state_pointers;
  std::unique_ptr<BoundGraph> bound;
  std::uint64_t weights_version = 0;
  std::vector<const void*> input_pointers;
  std::vector<void*> output_pointers;
};

struct CompiledGraph::Impl {
  std::shared_ptr<SharedCode> code;
  std::shared_ptr<WeightStore> weights;
  std::uint64_t weights_version = 1;
  std::vector<Tensor> states;
  bool states_valid = true;
  std::map<std::string, std::vector<float>, std::less<>> sticky;
  Tensor block;                                       // arena and output slots of the largest shape so far
  std::list<std::unique_ptr<ShapeInstance>> shapes;   // most recently used first

  static std::unique_ptr<Impl> make(std::shared_ptr<SharedCode> code);
  void reset_states();
  ShapeInstance& use(std::shared_ptr<const Specialization> spec);
  void bind(ShapeInstance& s);
  ShapeInstance& instance_for(std::span<const TensorView> views);
  void check_sizes(const ShapeInstance& s, std::span<const TensorView> views) const;
  std::vector<std::int64_t> resolve_dims(const IoInfo& info, const TensorView& view) const;
  void run(ShapeInstance& s, std::span<const TensorView> views);
  void outputs_to_block(ShapeInstance& s);
  ShapeInstance& last() const;
  WeightStore& own_weights();
};

}  // namespace rlx
