// What the compiler knows of a device, which need not be there: answers about nodes, values and memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rlx/device/device.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/op_set.h"
#include "rlx/ir/packed_layout.h"
#include "rlx/tensor/block_schemes.h"

namespace rlx {

/// How a target keeps memory. All counts are of bytes but the last.
struct TargetLimits {
  std::size_t alignment = 64;                      // of values
  std::size_t view_alignment = 1;                  // of a view in its value: one that lies elsewhere is copied
  std::size_t copy_granule = 1;                    // of places that streams copy to and from
  std::size_t max_buffer_bytes = ~std::size_t{0};  // of one value
  std::size_t max_arena_bytes = ~std::size_t{0};   // of one arena, unless a single value is larger
  int max_bindings = 0;                            // buffers that one kernel may be given; 0: any number
};

/// A weight, or a matrix that is the same in all steps of a loop, as products see it: K rows, which are summed over,
/// and N columns.
struct ConstantMatrix {
  std::int64_t k = 0, n = 0;
  DType dtype = DType::F32;                               // of its values
  DType stored = DType::F32;                              // of its sources; narrower where the values only widen them
  MatmulPrecision allowed_loss = MatmulPrecision::Exact;  // to lose something
  QuantScheme scheme = QuantScheme::Affine;  // of its sources: blocks along K (`stored` is U8 then); Affine: none
};

/// A target of compiles: its backend's kernel rows answer, and nothing else. Immutable, so that threads may share it.
class Target : public Claims {
 public:
  /// For reports: "cpu (avx512, 2 threads)".
  virtual std::string_view name() const = 0;
  virtual Device device() const { return Device::Cpu; }
  virtual int threads() const { return 1; }
  virtual TargetLimits limits() const { return {}; }
  /// True when the device plans its memory itself (MemoryModel::Opaque): it gets graphs without a plan of ours.
  virtual bool opaque() const { return false; }
  /// True when the backend's code can be bound to any values of symbols that the program still holds.
  virtual bool runtime_symbols() const { return false; }
  /// True when the node's kernel reads that operand through any element strides (last axis adjacent); the planner then
  /// makes slices and transposes views instead of copies.
  virtual bool reads_strided(const Graph&, NodeId, int /*operand*/) const { return false; }
  /// True when the node's kernel may write result `result` over operand `operand` (same bytes, last use).
  virtual bool in_place(const Graph&, NodeId, int /*operand*/, int /*result*/) const { return false; }
  /// True when the node's kernel does without result `result` where nobody reads it: it then has no place in memory
  /// (Place::None) and no work is done for it.
  virtual bool skips_unread(const Graph&, NodeId, int /*result*/) const { return false; }
  /// A branch or loop that is refused is driven by the program where its bodies hold nothing else that is.
  bool host_controlled(const Graph& g, NodeId id) const override;
  /// Of a target that stands for several devices: the number (`LirModule::others`) of the one that runs the node;
  /// `home` has the inputs of `g`.
  virtual std::uint32_t device_of(const Graph&, NodeId, std::uint32_t home) const { return home; }
  /// Likewise: what answers for the device of that number alone.
  virtual const Target& of_device(std::uint32_t /*number*/) const { return *this; }
  /// Likewise: the number of the host where it may run the node in place of a device that refuses it.
  virtual std::optional<std::uint32_t> fallback(const Graph&, NodeId) const { return std::nullopt; }
  /// True when the node's kernel runs its bodies as programs: they are then planned inside the arena of the whole.
  virtual bool plans_bodies(const Graph&, NodeId) const { return false; }
  /// The form that a product's kernel wants of constant operand `operand`, the matrix `of`; none when it reads the
  /// operand as it is.
  virtual std::optional<PackedLayout> form(const Graph&, NodeId, int /*operand*/, const ConstantMatrix& /*of*/) const {
    return std::nullopt;
  }
  /// True when the node's kernel reads that operand in `form` too, which another reader asked for.
  virtual bool reads_packed(const Graph&, NodeId, int /*operand*/, const PackedLayout&) const { return false; }
};

/// `base`, which refuses all kinds but these.
std::shared_ptr<const Target> limited_to(std::shared_ptr<const Target> base, const OpSet& kinds);
/// `base` with values aligned to at least `bytes`.
std::shared_ptr<const Target> with_alignment(std::shared_ptr<const Target> base, std::size_t bytes);

}  // namespace rlx
