// A host-controlled branch or loop: the host reads the decisions and submits the bodies as separate programs. Internal.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "rlx/device/backend.h"
#include "rlx/ir/rewrite/bodies.h"

namespace rlx {

/// The `bytes` bytes of a view that begin at `offset`.
BufferView part_of(const BufferView& view, std::size_t offset, std::size_t bytes);

/// One node, bound to the ranges that its bodies use.
class HostControlledNode {
 public:
  /// `bodies[b]` is body b of `plan`, bound. `ranges` are the locations of the plan's ranges. Offsets that streams copy
  /// from and to are multiples of `granule`.
  HostControlledNode(const Graph& g, const LirBodies& plan, std::vector<std::unique_ptr<Instance>> bodies,
                     std::vector<BufferView> ranges, std::size_t granule);
  /// Runs the node after the work on the stream, from the given operands into the given results. Blocks while it waits
  /// for a decision. The last work may still be running when it returns.
  void run(std::span<const BufferView> operands, std::span<const BufferView> results, Stream& stream);

 private:
  /// A body and the locations for its next run.
  struct Body {
    std::unique_ptr<Instance> bound;
    std::vector<RunSlot> inputs, outputs;
    void run(Stream& stream);
  };
  /// How rows of an x or y reach the body and return.
  struct Rows {
    std::size_t bytes = 0;  // of one row
    bool passes = false;    // rows pass through `buffer`; otherwise the body is bound to them directly
    BufferView buffer{};
    bool by_host = false;  // streams cannot copy rows from their offsets, so they pass through `staging`, which holds
                           // all rows
    std::vector<std::byte> staging{};
  };

  void run_branch(std::span<const BufferView> operands, std::span<const BufferView> results, Stream& stream);
  void run_loop(std::span<const BufferView> operands, std::span<const BufferView> results, Stream& stream);
  bool decides(const BufferView& flag, Stream& stream);
  void begin_rows(std::span<const BufferView> operands, std::span<const BufferView> results, Stream& stream);
  void begin_iteration(std::size_t row, std::span<const BufferView> operands, std::span<const BufferView> results,
                       Stream& stream);
  void end_iteration(std::size_t row, std::span<const BufferView> results, Stream& stream);
  /// Copies the rows of the `iterations` that ran to the results. Other rows become zeros.
  void end_rows(std::size_t iterations, std::span<const BufferView> results, Stream& stream);

  const Graph& graph_;
  const LirBodies& plan_;
  std::vector<Body> bodies_;
  std::vector<BufferView> ranges_;
  std::size_t granule_;
  LoopParts parts_;
  std::vector<Rows> xs_, ys_;
  std::vector<BufferView> now_;  // of a loop: the current locations of its carries
  std::byte flag_{};
};

}  // namespace rlx
