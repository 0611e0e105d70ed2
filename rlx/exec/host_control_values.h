// A host-controlled branch or loop on an opaque device, over whole values. Internal.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "rlx/device/backend.h"
#include "rlx/ir/rewrite/bodies.h"

namespace rlx {

/// A value as the device stores it.
using HeldValue = std::shared_ptr<Buffer>;

/// A view of a dense value of `shape` at `data` in host memory.
TensorView view_of(const Shape& shape, std::span<const std::int64_t> dims, const std::byte* data);

/// One host-controlled node, bound to its bodies. A carry is passed to the next iteration as the buffer that the body
/// returned. Rows of an x are uploaded one by one. Rows of a y are collected on the host and uploaded together after
/// the loop.
class HostControlledValues {
 public:
  /// `bodies[b]` is body b of `part`, bound.
  HostControlledValues(const Graph& g, const LirPart& part, std::vector<std::unique_ptr<Instance>> bodies);
  /// Runs the node after the work on the stream. It may consume an operand that nobody else holds. Blocks while it
  /// waits for a decision or for rows. The last work may still be running when it returns the results. When it fails,
  /// operands that were not donated to a body are unchanged.
  std::vector<HeldValue> run(std::vector<HeldValue>& operands, OpenDevice& device, Stream& stream);
  /// True when that operand may be donated to a body.
  bool donates(std::size_t operand) const;

 private:
  /// A body and the values for its next run.
  struct Body {
    std::unique_ptr<Instance> bound;
    std::vector<Shape> takes, makes;
    std::vector<HeldValue> in, out;
    std::vector<RunSlot> inputs, outputs;
    std::vector<bool> donated;  // inputs that an output may be written over
    void run(Stream& stream);
  };
  /// All rows of an x or y.
  struct Rows {
    std::size_t bytes = 0;  // of one row
    std::vector<std::byte> all{};
  };

  std::vector<HeldValue> run_loop(std::vector<HeldValue>& operands, OpenDevice& device, Stream& stream);
  bool is_branch() const { return graph_.node(part_.nodes[0]).kind() == OpKind::If; }
  bool decides(Buffer& flag, OpenDevice& device, Stream& stream);

  const Graph& graph_;
  const LirPart& part_;
  std::vector<Body> bodies_;
  LoopParts loop_;
  std::vector<Rows> xs_, ys_;
  std::byte flag_{};
};

}  // namespace rlx
