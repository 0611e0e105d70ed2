// Code shared by clones: the source graph, and what was compiled of it for the dimensions used so far. Internal.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/weights.h"

namespace rlx {

/// True when `declared` is static and has these dimensions.
bool dims_equal(const Shape& declared, std::span<const std::int64_t> dims);

/// The code of one set of input dimensions.
struct Specialization {
  CompileResult result;
  std::shared_ptr<const ExecutableGraph> executable;
  WeightPlan weights;
  std::vector<Shape> inputs, outputs;
  std::vector<Slot> slots;        // outputs behind the arena
  std::size_t block_bytes = 0;    // arena and slots
  bool matches(const std::vector<std::vector<std::int64_t>>& dims) const;
};

/// What clones share: the source graph, its target, and the specialisations compiled so far (least recently used goes).
struct SharedCode {
  SharedCode(Graph g, std::shared_ptr<const Backend> b, CompileOptions o, BackendOptions bo);
  std::shared_ptr<const Specialization> specialize(const std::vector<std::vector<std::int64_t>>& dims);

  Graph source;
  std::shared_ptr<const Backend> backend;
  TargetInfo target;
  CompileOptions options;
  BackendOptions backend_options;
  std::vector<IoInfo> inputs, params, outputs, states;
  void (*stage_hook)(const CompileResult&) = nullptr;  // reports and dumps that the environment asks for

 private:
  std::mutex mutex;
  std::list<std::shared_ptr<const Specialization>> cache;
};

}  // namespace rlx
