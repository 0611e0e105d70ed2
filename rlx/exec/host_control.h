// A branch or loop that the host drives: it reads the decisions, and submits the bodies as programs of their own.
// Internal.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "rlx/device/backend.h"
#include "rlx/ir/rewrite/bodies.h"

namespace rlx {

/// `bytes` bytes of a view from `offset` on.
BufferView part_of(const BufferView& view, std::size_t offset, std::size_t bytes);

/// One node, bound to the ranges that its bodies use.
class HostControlledNode {
 public:
  /// `bodies[b]` is body b of `plan`, bound; `ranges` are where those of the plan lie; places that streams copy from
  /// and to are multiples of `granule`.
  HostControlledNode(const Graph& g, const LirBodies& plan, std::vector<std::unique_ptr<BoundGraph>> bodies,
                     std::vector<BufferView> ranges, std::size_t granule);
  /// Runs it behind what the stream holds, from the operands and into the results that are there. It blocks where it
  /// waits for a decision; the last of its work may be under way when it returns.
  void run(std::span<const BufferView> operands, std::span<const BufferView> results, Stream& stream);

 private:
  /// A body and the places of its next run.
  struct Body {
    std::unique_ptr<BoundGraph> bound;
    std::vector<RunSlot> inputs, outputs;
    void run(Stream& stream);
  };
  /// How a row of an x or y gets to the body and back.
  struct Rows {
    std::size_t bytes = 0;  // of a row
    bool passes = false;    // through `buffer`; else the body is bound to where it lies
    BufferView buffer{};
    bool by_host = false;  // rows do not lie where streams copy: by way of `staging`, which holds all of them
    std::vector<std::byte> staging{};
  };

  void run_branch(std::span<const BufferView> operands, std::span<const BufferView> results, Stream& stream);
  void run_loop(std::span<const BufferView> operands, std::span<const BufferView> results, Stream& stream);
  bool decides(const BufferView& flag, Stream& stream);
  void begin_rows(std::span<const BufferView> operands, std::span<const BufferView> results, Stream& stream);
  void begin_iteration(std::size_t row, std::span<const BufferView> operands, std::span<const BufferView> results,
                       Stream& stream);
  void end_iteration(std::size_t row, std::span<const BufferView> results, Stream& stream);
  /// Brings the rows of `trips` trips to where they belong; those of others are zeros.
  void end_rows(std::size_t trips, std::span<const BufferView> results, Stream& stream);

  const Graph& graph_;
  const LirBodies& plan_;
  std::vector<Body> bodies_;
  std::vector<BufferView> ranges_;
  std::size_t granule_;
  LoopParts parts_;
  std::vector<Rows> xs_, ys_;
  std::vector<BufferView> now_;  // of a loop: where its carries are
  std::byte flag_{};
};

}  // namespace rlx
