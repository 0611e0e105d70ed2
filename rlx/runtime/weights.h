// Weights of a compiled graph: bound params, and the prepared forms kernels read.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/driver/backend.h"
#include "rlx/ir/evaluate.h"
#include "rlx/tensor/weight_loader.h"

namespace rlx {

/// One prepared value; sources of a packed weight become ready one by one.
struct PreparedWeight {
  Tensor bytes;
  std::vector<bool> ready;  // per source of a relayout; one entry otherwise
  bool complete() const;
};

/// Params and prepared weights, shared by clones until one of them sets a weight. Keys are `prepared_key`s, so that every
/// specialisation of a graph that needs the same form finds it.
/// Calls may come from several threads.
class WeightStore {
 public:
  WeightStore() = default;
  WeightStore(const WeightStore& other);
  WeightStore& operator=(const WeightStore&) = delete;
  /// Binds a param. Of a packed weight that reads it only that param's range becomes stale; computed forms are dropped.
  void set(const std::string& name, Tensor value);
  void keep_alive(std::shared_ptr<const WeightLoader> loader);
  bool has(std::string_view name) const;
  /// Pointers of all outputs of `executable`'s prepare graph, preparing what is not ready yet. Throws NotFound naming every
  /// unset param among `needed`.
  std::vector<const std::byte*> prepare(const ExecutableGraph& executable, const Backend& backend, const TargetInfo& target,
                                        const BackendOptions& options);
  std::size_t prepared_bytes() const;

 private:
  struct Entry {
    PreparedWeight weight;
    std::vector<std::string> params;         // names it depends on
    std::vector<std::string> source_params;  // of a packed weight: the param each source is; empty text for a computed one
  };
  const Tensor& param(const std::string& name) const;

  mutable std::mutex mutex_;
  NamedTensors params_;
  std::map<std::string, std::shared_ptr<Entry>> prepared_;
  std::vector<std::shared_ptr<const WeightLoader>> loaders_;
};

}  // namespace rlx
