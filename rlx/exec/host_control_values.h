// A branch or loop that the host drives on a device of whole values. Internal.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "rlx/device/backend.h"
#include "rlx/ir/rewrite/bodies.h"

namespace rlx {

/// A value as the device keeps it.
using HeldValue = std::shared_ptr<Buffer>;

/// Where the bytes of a dense value of `shape` are in memory of the host.
TensorView view_of(const Shape& shape, std::span<const std::int64_t> dims, const std::byte* data);

/// One node, bound to its bodies. A carry goes from trip to trip as the value that the body made; rows of an x are put
/// one by one, those of a y are put as a whole when the loop has ended.
class HostControlledValues {
 public:
  /// `bodies[b]` is body b of `part`, bound.
  HostControlledValues(const Graph& g, const LirPart& part, std::vector<std::unique_ptr<BoundGraph>> bodies);
  /// Runs it behind what the stream holds; an operand that nobody else holds may be taken over. It blocks where it
  /// waits for a decision and for rows; the last of its work may be under way when it returns the results. Where it
  /// fails, operands that no body was given are there as before.
  std::vector<HeldValue> run(std::vector<HeldValue>& operands, OpenDevice& device, Stream& stream);
  /// True when a body may be given that operand.
  bool gives(std::size_t operand) const;

 private:
  /// A body and the values of its next run.
  struct Body {
    std::unique_ptr<BoundGraph> bound;
    std::vector<Shape> takes, makes;
    std::vector<HeldValue> in, out;
    std::vector<RunSlot> inputs, outputs;
    std::vector<bool> given;  // inputs in whose memory an output may be made
    void run(Stream& stream);
  };
  /// All rows of an x or y.
  struct Rows {
    std::size_t bytes = 0;  // of one
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
