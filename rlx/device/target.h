// The compiler's knowledge of a device, which need not be present: answers about nodes, values and memory.
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

/// How a target keeps memory. All counts are in bytes, except the last.
struct TargetLimits {
  std::size_t alignment = 64;                      // of values
  std::size_t view_alignment = 1;                  // of a view's offset in its value; other views are copied
  std::size_t copy_granule = 1;                    // alignment of the offsets of stream copies
  std::size_t max_buffer_bytes = ~std::size_t{0};  // of one value
  std::size_t max_arena_bytes = ~std::size_t{0};   // of one arena, unless a single value is larger
  int max_bindings = 0;                            // buffers that one kernel may bind; 0: any number
};

/// A weight, or a loop-invariant matrix, as matmuls read it: K rows, the contracted dimension, and N columns.
struct ConstantMatrix {
  std::int64_t k = 0, n = 0;
  DType dtype = DType::F32;                               // of its values
  DType stored = DType::F32;                              // of its sources; narrower when the values only widen them
  MatmulPrecision allowed_loss = MatmulPrecision::Exact;  // allowed precision loss
  QuantScheme scheme = QuantScheme::Affine;  // of its sources: blocks along K (`stored` is U8 then); Affine: none
};

/// The target of a compile. Its backend's kernel entries answer, and nothing else. Immutable, so threads may share it.
class Target : public Claims {
 public:
  /// For reports: "cpu (avx512, 2 threads)".
  virtual std::string_view name() const = 0;
  virtual Device device() const { return Device::Cpu; }
  virtual int threads() const { return 1; }
  virtual TargetLimits limits() const { return {}; }
  /// True when the device plans its own memory (MemoryModel::Opaque): it gets graphs without our memory plan.
  virtual bool opaque() const { return false; }
  /// True when the backend's code can be bound to any values of symbols that the program still holds.
  virtual bool runtime_symbols() const { return false; }
  /// True when the node's kernel reads that operand with any element strides (last axis adjacent). The planner then
  /// makes slices and transposes views instead of copies.
  virtual bool reads_strided(const Graph&, NodeId, int /*operand*/) const { return false; }
  /// True when the node's kernel may write result `result` over operand `operand` (same bytes, last use).
  virtual bool in_place(const Graph&, NodeId, int /*operand*/, int /*result*/) const { return false; }
  /// True when the node's kernel can skip result `result` when nobody reads it. The result then has no place in memory
  /// (Place::None), and no work is done for it.
  virtual bool skips_unread(const Graph&, NodeId, int /*result*/) const { return false; }
  /// True for a refused branch or loop when its bodies hold no other refused node. The program then controls it.
  bool host_controlled(const Graph& g, NodeId id) const override;
  /// For a target of several devices: the number (`LirModule::others`) of the device that runs the node. `home` holds
  /// the inputs of `g`.
  virtual std::uint32_t device_of(const Graph&, NodeId, std::uint32_t home) const { return home; }
  /// For a target of several devices: the target of the device with that number.
  virtual const Target& of_device(std::uint32_t /*number*/) const { return *this; }
  /// For a target of several devices: the number of the host if it may run the node in place of a device that refuses
  /// it.
  virtual std::optional<std::uint32_t> fallback(const Graph&, NodeId) const { return std::nullopt; }
  /// True when the node's kernel runs its bodies as programs. They are then planned within the arena of the whole
  /// program.
  virtual bool plans_bodies(const Graph&, NodeId) const { return false; }
  /// The packed layout that a matmul's kernel asks for in constant operand `operand`, the matrix `of`. None when the
  /// kernel reads the operand unpacked.
  virtual std::optional<PackedLayout> packed_layout(const Graph&, NodeId, int operand, const ConstantMatrix& of) const;
  /// The name of `packed_layout` in the last release, to call and to override.
  [[deprecated("now packed_layout")]] virtual std::optional<PackedLayout> form(const Graph& g, NodeId id, int operand,
                                                                               const ConstantMatrix& of) const;
  /// True when the node's kernel can also read that operand in this packed layout, which another reader asked for.
  virtual bool reads_packed(const Graph&, NodeId, int /*operand*/, const PackedLayout&) const { return false; }
  [[deprecated("now reads_packed")]] bool reads_form(const Graph& g, NodeId id, int operand,
                                                     const PackedLayout& layout) const {
    return reads_packed(g, id, operand, layout);
  }
};

/// `base`, refusing all kinds except these.
std::shared_ptr<const Target> limited_to(std::shared_ptr<const Target> base, const OpSet& kinds);
/// `base` with values aligned to at least `bytes`.
std::shared_ptr<const Target> with_alignment(std::shared_ptr<const Target> base, std::size_t bytes);

}  // namespace rlx
