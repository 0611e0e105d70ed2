// Weights of a compiled graph: param values, and the prepared forms kernels read.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/compiler/precision.h"
#include "rlx/compiler/split_weights.h"
#include "rlx/device/backend.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/lir.h"
#include "rlx/runtime/run_memory.h"
#include "rlx/tensor/sole_owner.h"
#include "rlx/tensor/weight_loader.h"

namespace rlx {

/// What one executable needs of the weights, by output of its prepare graph; both lists are empty for a Param or
/// Constant that is read as it is.
struct WeightPlan {
  WeightPlan() = default;
  explicit WeightPlan(std::shared_ptr<const ExecutableGraph> e);
  std::shared_ptr<const ExecutableGraph> executable;
  std::vector<std::string> keys;               // `prepared_keys`
  std::vector<std::vector<ParamNames>> reads;  // the params of each operand of a packed form, of a computed one at once
};

/// What kernels of one executable read of the weights, by Param index, and what keeps it on the device.
struct WeightTable {
  std::vector<BufferView> views;
  std::vector<std::shared_ptr<Buffer>> owners;
};

/// Where weights are prepared and read.
struct WeightPlace {
  const Backend& backend;
  const Target& target;
  const BackendOptions& options;
  OpenDevice& device;
  Stream& stream;
};

/// Params and their prepared forms, shared by clones until one of them sets a weight; every specialisation that needs
/// the same form (equal key) finds it. A param's own values stay in memory only while something reads them: a kernel, a
/// form computed from them (setting a sibling computes it again), or a form that is not packed yet; when a later
/// specialisation needs them again they are read back out of a packed form, which holds them bit for bit. Behind forms
/// with loss they stay, or are let go for good (KeepValues). A computed form goes with the last program that reads it.
/// Calls may come from several threads.
class WeightStore {
 public:
  /// `cache`, unless it is null, keeps forms that are made of files from one start to the next.
  /// `keep`: the values behind forms with loss.
  explicit WeightStore(std::shared_ptr<PackedWeightCache> cache = nullptr, KeepValues keep = KeepValues::Yes)
      : cache_(std::move(cache)), keep_(keep) {}
  WeightStore(const WeightStore& other);
  WeightStore& operator=(const WeightStore&) = delete;

  /// Makes the forms of `plan` known, so that `set` packs into them at once.
  void add(const WeightPlan& plan);
  /// What a param is set to: `value`, converted when its dtype is not `declared`. Without an owner (`Tensor::borrowed`
  /// of a null pointer) the bytes are read during the call only; `loader` tells whose mapped bytes they are, if any.
  struct NewValue {
    std::string name;
    Tensor value;
    DType declared = DType::F32;
    std::shared_ptr<const WeightLoader> loader;
  };
  /// Sets params: all of them, or, when it throws, none. Every known packed form is written now: of a form that joins
  /// several params, the ranges of these.
  void set(std::span<const NewValue> values);
  bool has(std::string_view name) const;
  /// The value of a param that has one, in its declared dtype.
  Tensor value(const std::string& name);
  /// All outputs of the plan's prepare graph, preparing what is not ready yet. Throws NotFound naming every param it
  /// needs that has no value.
  WeightTable prepare(const WeightPlan& plan, const WeightPlace& place);
  /// Bytes held in memory: prepared forms, and values that are read as they are unless a loader holds them.
  std::size_t bytes() const;

 private:
  struct Param {
    Tensor raw;  // empty once only packed forms hold the values
    DType declared = DType::F32;
    std::shared_ptr<const WeightLoader> loader{};  // raw lies in its memory
    Resident resident{};
  };
  /// One source of a form: a Param packed as it is, or a value computed from some.
  struct Source {
    std::string param;
    ParamNames reads;
    bool ready = false;
  };
  struct PackedLayout {
    Tensor bytes;
    std::vector<Source> sources;                       // one for a computed form
    std::shared_ptr<const ExecutableGraph> packed_by;  // null for a computed form
    NodeId node;                                       // its relayout there
    Resident resident{};
    bool mapped = false;  // bytes are a file's
  };

  /// Which forms a param is read by: through the lists of params, since many forms share one.
  struct Reading {
    std::map<std::string, std::vector<ParamNames>, std::less<>> lists;  // that hold the param
    struct At {
      std::string key;  // maybe gone from forms_ by now
      std::size_t source;
    };
    std::map<ParamNames, std::vector<At>> sources;  // that are made of these params
    void add(const std::string& key, const PackedLayout& form);
  };

  void add_locked(const WeightPlan& plan);
  static std::shared_ptr<PackedLayout> copy_of(const PackedLayout& form);
  static PackedLayout& own(std::shared_ptr<PackedLayout>& form);
  bool is_packed(const std::string& name) const;
  bool held_packed(const std::string& name) const;
  void pack_waiting(const std::string& name, const Tensor& values, const WeightLoader* loader);
  void pack_params(std::span<const std::string> names);
  /// A form that waits for params of files, which a cache may hold.
  struct Savable {
    std::string key;  // in the cache
    std::shared_ptr<PackedLayout>* form = nullptr;
    SourceIdentity source{};
    std::vector<Tensor> params;  // what it is made of, in order
    std::vector<std::string> names;
    std::shared_ptr<const WeightLoader> loader;
    std::string content() const;  // and gives back the pages that it has read
  };
  std::vector<Savable> savable_packed_layouts(std::span<const std::string> names);
  static void write_source(PackedLayout& f, std::size_t source, const Tensor& values, const WeightLoader* loader,
                           const std::string& name);
  /// A source of a form that holds some columns of a param.
  struct HeldPart {
    const PackedLayout* form = nullptr;
    std::size_t source = 0;
    Shape of;                          // the param's
    std::int64_t k = 0, elements = 0;  // of the matrix; of the param
    ops::PackedSource at{};
  };
  std::vector<HeldPart> parts_in_packed_layouts(const std::string& name, bool ready, bool with_loss = false) const;
  static bool covers(std::vector<HeldPart>& parts);
  const Tensor& raw(const std::string& name);

  mutable std::mutex mutex_;
  std::shared_ptr<PackedWeightCache> cache_;
  KeepValues keep_;
  std::map<std::string, Param, std::less<>> params_;
  std::map<std::string, std::shared_ptr<PackedLayout>, std::less<>> forms_;
  struct PackedAt {
    std::string key;
    std::size_t source;
  };
  std::map<std::string, std::vector<PackedAt>, std::less<>> packed_at_;  // the packed forms of a param; they stay
  Reading reading_;
  std::map<std::string, std::vector<std::weak_ptr<const ExecutableGraph>>> readers_;  // of computed forms, by key
  std::set<std::string> read_raw_;  // params that a kernel or a computed form of some plan reads
  std::set<std::string, std::less<>>
      whole_in_packed_layouts_;                     // params that can be read back out of forms, or are not to be
  std::map<const std::byte*, Resident> constants_;  // by their bytes, which live as long as the plans that read them
};

}  // namespace rlx
