// Weights of a compiled graph: param values, and the packed layouts and computed values that kernels read.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/base/forks.h"
#include "rlx/compiler/precision.h"
#include "rlx/compiler/split_weights.h"
#include "rlx/device/backend.h"
#include "rlx/error.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/runtime/run_memory.h"
#include "rlx/tensor/sole_owner.h"
#include "rlx/tensor/weight_loader.h"

namespace rlx {

/// What one executable needs of the weights, by output of its prepare graph. Both lists are empty for a Param or
/// Constant that is read unpacked.
struct WeightPlan {
  WeightPlan() = default;
  explicit WeightPlan(std::shared_ptr<const Executable> e);
  std::shared_ptr<const Executable> executable;
  std::vector<std::string> keys;  // from `prepared_keys`: equal for equal packed layouts of the same params
  std::vector<std::vector<ParamNames>> reads;  // for a packed layout: the params of each source; for a computed value:
                                               // one list
};

/// What the kernels of one executable read of the weights, by Param index, and the owners that keep it on the device.
struct WeightTable {
  std::vector<BufferView> views;
  std::vector<std::shared_ptr<Buffer>> owners;
};

/// The device on which weights are prepared and read.
struct WeightPlace {
  const Backend& backend;
  const Target& target;
  const BackendOptions& options;
  OpenDevice& device;
  Stream& stream;
};

/// Params and their prepared values, shared by clones until one of them sets a weight. All specialisations that need
/// the same packed layout (equal key) share it.
///
/// A param's own values stay in memory only while something reads them: a kernel, a value computed from them (setting a
/// sibling computes it again), or a packed layout that is not packed yet. When a later specialisation needs them again,
/// they are read back from a packed layout, which holds them bit for bit. Values behind lossy packed layouts stay or
/// are freed for good (KeepValues). A computed value is freed with the last program that reads it. Calls may come from
/// several threads.
class WeightStore {
 public:
  /// `cache`, if not null, keeps packed layouts made from files across process starts. `keep`: whether the values
  /// behind lossy packed layouts stay.
  explicit WeightStore(std::shared_ptr<PackedWeightCache> cache = nullptr, KeepValues keep = KeepValues::Yes)
      : cache_(std::move(cache)), keep_(keep) {}
  WeightStore(const WeightStore& other);
  WeightStore& operator=(const WeightStore&) = delete;

  /// Registers the packed layouts of `plan`, so that `set` packs into them at once.
  void add(const WeightPlan& plan);
  /// The new value of a param. `value` is converted when its dtype is not `declared`. Without an owner
  /// (`Tensor::borrowed` of a null pointer) the bytes are read during the call only. `loader` owns the mapped bytes, if
  /// any.
  struct NewValue {
    std::string name;
    Tensor value;
    DType declared = DType::F32;
    std::shared_ptr<const WeightLoader> loader;
  };
  /// Sets all these params, or none when it throws. Every registered packed layout is written now. Of a layout that
  /// joins several params, the ranges of these params are written.
  void set(std::span<const NewValue> values);
  bool has(std::string_view name) const;
  /// Errors: BadFile naming a mapped file of these weights that lost pages. Weights made of lost pages are zeros, so
  /// the error stays until weights are set again.
  void check_files();
  /// The value of a param, which must have one, in its declared dtype.
  Tensor value(const std::string& name);
  /// All outputs of the plan's prepare graph. Prepares those that are not ready yet. Throws NotFound naming every
  /// needed param that has no value.
  WeightTable prepare(const WeightPlan& plan, const WeightPlace& place);
  /// Bytes held in memory: packed layouts and computed values, and values that are read unpacked unless a loader holds
  /// them.
  std::size_t bytes() const;

 private:
  struct Param {
    Tensor raw;  // empty once only packed layouts hold the values
    DType declared = DType::F32;
    std::shared_ptr<const WeightLoader> loader{};  // raw lies in its memory
    Resident resident{};
  };
  /// One source of a layout: a Param that is packed directly, or a value computed from several.
  struct Source {
    std::string param;
    ParamNames reads;
    bool ready = false;
  };
  struct PackedWeight {
    Tensor bytes;
    std::vector<Source> sources;                  // one for a computed value
    std::shared_ptr<const Executable> packed_by;  // null for a computed value
    NodeId node;                                  // its Relayout there
    Resident resident{};
    bool mapped = false;  // the bytes belong to a file
  };

  /// The layouts that read a param, found through the lists of params, because many layouts share a list.
  struct Reading {
    std::map<std::string, std::vector<ParamNames>, std::less<>> lists;  // lists that contain the param
    struct At {
      std::string key;  // may be gone from packed_ by now
      std::size_t source;
    };
    std::map<ParamNames, std::vector<At>> sources;  // sources made from these params
    void add(const std::string& key, const PackedWeight& weight);
  };

  void add_locked(const WeightPlan& plan);
  void check_read(std::span<const void* const> addresses);
  static std::shared_ptr<PackedWeight> copy_of(const PackedWeight& weight);
  static PackedWeight& own(std::shared_ptr<PackedWeight>& weight);
  bool is_packed(const std::string& name) const;
  bool held_packed(const std::string& name) const;
  void pack_waiting(const std::string& name, const Tensor& values, const WeightLoader* loader);
  void pack_params(std::span<const std::string> names);
  /// A packed layout that waits for params of files and that a cache may hold.
  struct Savable {
    std::string key;  // key in the cache
    std::shared_ptr<PackedWeight>* weight = nullptr;
    SourceIdentity source{};
    std::vector<Tensor> params;  // the params that it is made of, in order
    std::vector<std::string> names;
    std::shared_ptr<const WeightLoader> loader;
    std::string content() const;  // also releases the pages that it has read
  };
  std::vector<Savable> savable_packed_layouts(std::span<const std::string> names);
  static void write_source(PackedWeight& f, std::size_t source, const Tensor& values, const WeightLoader* loader,
                           const std::string& name);
  /// A source of a packed layout that holds some columns of a param.
  struct HeldPart {
    const PackedWeight* weight = nullptr;
    std::size_t source = 0;
    Shape of;                          // of the param
    std::int64_t k = 0, elements = 0;  // of the matrix; of the param
    ops::PackedSource at{};
  };
  std::vector<HeldPart> parts_in_packed_layouts(const std::string& name, bool ready, bool with_loss = false) const;
  static bool covers(std::vector<HeldPart>& parts);
  const Tensor& raw(const std::string& name);

  mutable ObjectMutex mutex_{"the weights of a program"};
  std::optional<Error> lost_;  // of check_files
  std::shared_ptr<PackedWeightCache> cache_;
  KeepValues keep_;
  std::map<std::string, Param, std::less<>> params_;
  std::map<std::string, std::shared_ptr<PackedWeight>, std::less<>> packed_;
  struct PackedAt {
    std::string key;
    std::size_t source;
  };
  std::map<std::string, std::vector<PackedAt>, std::less<>> packed_at_;  // the packed layouts of a param; they stay
  Reading reading_;
  std::map<std::string, std::vector<std::weak_ptr<const Executable>>> readers_;  // of computed values
  std::set<std::string> read_raw_;  // params that a kernel or a computed value of some plan reads
  std::set<std::string, std::less<>> whole_in_packed_layouts_;  // params that can be read back from packed layouts, or
                                                                // whose values are not kept
  std::map<const std::byte*, Resident> constants_;  // by their bytes, which live as long as the plans that read them
};

}  // namespace rlx
