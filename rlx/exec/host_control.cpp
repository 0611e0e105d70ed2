// Host-controlled branches and loops, iteration by iteration. A body is bound to the parent's memory for the values
// that it reads and writes, where the device can bind that memory. A row that it cannot bind passes through a buffer.
// The copy runs on the device where streams can copy from there, otherwise through the host.
#include "rlx/exec/host_control.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "rlx/base/stop_request.h"
#include "rlx/exec/fetching.h"
#include "rlx/ir/ops/control.h"
#include "rlx/ir/packed_layout.h"

namespace rlx {
namespace {

void copy(Stream& stream, const BufferView& from, const BufferView& to) {
  const bool same = from.buffer == to.buffer && from.offset == to.offset && from.host == to.host;
  if (to.bytes != 0 && !same) stream.copy(part_of(from, 0, to.bytes), to);
}

void upload_zeros(Stream& stream, const BufferView& to) {
  static constexpr std::array<std::byte, std::size_t{1} << 16> zeros{};
  for (std::size_t at = 0; at < to.bytes; at += zeros.size()) {
    const std::size_t bytes = std::min(zeros.size(), to.bytes - at);
    stream.upload(std::span(zeros).first(bytes), part_of(to, at, bytes));
  }
}

}  // namespace

BufferView part_of(const BufferView& view, std::size_t offset, std::size_t bytes) {
  check(offset + bytes <= view.bytes, "a range reaches past the end of its view");
  BufferView part = view;
  part.offset += offset;
  if (part.host) part.host += offset;
  part.bytes = bytes;
  return part;
}

void HostControlledNode::Body::run(Stream& stream) {
  RunArguments a;
  a.inputs = inputs, a.outputs = outputs;
  (void)bound->submit(a, stream);
}

HostControlledNode::HostControlledNode(const Graph& g, const LirBodies& plan,
                                       std::vector<std::unique_ptr<Instance>> bodies, std::vector<BufferView> ranges,
                                       std::size_t granule)
    : graph_(g), plan_(plan), ranges_(std::move(ranges)), granule_(granule) {
  const Node& n = g.node(plan.node);
  parts_ = loop_parts(n.op).value_or(LoopParts{});
  for (std::size_t b = 0; b < bodies.size(); ++b) {
    const Graph& body = plan.modules[b].graph;
    bodies_.push_back({std::move(bodies[b]), std::vector<RunSlot>(body.leaves(OpKind::Input).size()),
                       std::vector<RunSlot>(body.outputs().size())});
  }
  const Graph& step = plan.modules.back().graph;
  const auto rows = [&](std::size_t i, Value v) {
    Rows r;
    r.bytes = stored_bytes(step, v);
    if (i < plan.rows.size() && plan.rows[i]) {
      r.passes = true;
      r.buffer = part_of(ranges_[*plan.rows[i]], 0, r.bytes);
      r.by_host = r.bytes % granule_ != 0;
    }
    return r;
  };
  const std::vector<NodeId> inputs = step.leaves(OpKind::Input);
  for (std::size_t x = 0; x < parts_.xs; ++x) xs_.push_back(rows(x, Value(inputs[parts_.first_x() + x])));
  for (std::size_t y = 0; y < parts_.ys; ++y) ys_.push_back(rows(parts_.xs + y, step.outputs()[parts_.carries + y]));
  now_.resize(parts_.carries);
}

void HostControlledNode::run(std::span<const BufferView> operands, std::span<const BufferView> results,
                             Stream& stream) {
  if (graph_.node(plan_.node).kind() == OpKind::If)
    run_branch(operands, results, stream);
  else
    run_loop(operands, results, stream);
}

bool HostControlledNode::decides(const BufferView& flag, Stream& stream) {
  Fetching fetching(stream);
  stream.download(part_of(flag, 0, 1), std::span(&flag_, 1));
  fetching.finish(stream.record());
  return flag_ != std::byte{0};
}

void HostControlledNode::run_branch(std::span<const BufferView> operands, std::span<const BufferView> results,
                                    Stream& stream) {
  Body& taken = bodies_[decides(operands[0], stream) ? 0 : 1];
  for (std::size_t i = 1; i < operands.size(); ++i) taken.inputs[i - 1].view = operands[i];
  for (std::size_t r = 0; r < results.size(); ++r) taken.outputs[r].view = results[r];
  taken.run(stream);
}

void HostControlledNode::run_loop(std::span<const BufferView> operands, std::span<const BufferView> results,
                                  Stream& stream) {
  const OpBox& op = graph_.node(plan_.node).op;
  const auto* scan = op.get_if<ops::Scan>();
  const auto* loop = op.get_if<ops::While>();
  const bool reverse = scan && scan->reverse;
  const std::int64_t most =
      scan ? scan->length[0].value() : loop->max_trips.value_or(std::numeric_limits<std::int64_t>::max());
  Body& step = bodies_.back();
  const auto second = [&](std::size_t c) {
    return plan_.second[c] ? std::optional(part_of(ranges_[*plan_.second[c]], 0, results[c].bytes)) : std::nullopt;
  };
  const auto next = [&](std::size_t c) {
    const std::optional<BufferView> other = second(c);
    return !other ? now_[c] : now_[c] == *other ? results[c] : *other;
  };
  // When the number of iterations is known, a carry with two buffers starts in the buffer from which it ends in the
  // result.
  for (std::size_t c = 0; c < parts_.carries; ++c) {
    const std::optional<BufferView> other = scan && most % 2 != 0 ? second(c) : std::nullopt;
    now_[c] = other.value_or(results[c]);
    copy(stream, operands[parts_.first_carry() + c], now_[c]);
  }
  for (std::size_t i = 0; i < parts_.invariants; ++i)
    for (Body& b : bodies_) b.inputs[i].view = operands[i];
  Fetching staged(stream);  // bytes in staging memory of the host stay until the work is done
  begin_rows(operands, results, stream);
  std::int64_t iterations = 0;
  for (; iterations < most; ++iterations) {
    StopRequest::check();
    if (loop) {
      Body& cond = bodies_.front();
      for (std::size_t c = 0; c < parts_.carries; ++c) cond.inputs[parts_.first_carry() + c].view = now_[c];
      cond.outputs[0].view = part_of(ranges_[*plan_.decision], 0, 1);
      cond.run(stream);
      if (!decides(cond.outputs[0].view, stream)) break;
    }
    const auto row = static_cast<std::size_t>(reverse ? most - 1 - iterations : iterations);
    begin_iteration(row, operands, results, stream);
    for (std::size_t c = 0; c < parts_.carries; ++c) {
      step.inputs[parts_.first_carry() + c].view = now_[c];
      step.outputs[c].view = next(c);
    }
    step.run(stream);
    for (std::size_t c = 0; c < parts_.carries; ++c) now_[c] = next(c);
    end_iteration(row, results, stream);
  }
  for (std::size_t c = 0; c < parts_.carries; ++c) copy(stream, now_[c], results[c]);
  end_rows(static_cast<std::size_t>(iterations), results, stream);
  if (loop) stream.upload(std::as_bytes(std::span(&iterations, 1)), results[parts_.outputs()]);
  staged.finish({});
}

void HostControlledNode::begin_rows(std::span<const BufferView> operands, std::span<const BufferView> results,
                                    Stream& stream) {
  bool fetched = false;
  for (std::size_t x = 0; x < xs_.size(); ++x) {
    const BufferView& whole = operands[parts_.first_x() + x];
    if (!xs_[x].by_host || whole.bytes == 0) continue;
    xs_[x].staging.resize(whole.bytes);
    stream.download(whole, xs_[x].staging);
    fetched = true;
  }
  for (std::size_t y = 0; y < ys_.size(); ++y)
    if (ys_[y].by_host) ys_[y].staging.assign(results[parts_.carries + y].bytes, std::byte{0});
  if (fetched) stream.record().wait();
}

void HostControlledNode::begin_iteration(std::size_t row, std::span<const BufferView> operands,
                                         std::span<const BufferView> results, Stream& stream) {
  Body& step = bodies_.back();
  for (std::size_t x = 0; x < xs_.size(); ++x) {
    const Rows& r = xs_[x];
    BufferView& place = step.inputs[parts_.first_x() + x].view;
    place = r.passes ? r.buffer : part_of(operands[parts_.first_x() + x], row * r.bytes, r.bytes);
    if (!r.passes || r.bytes == 0) continue;
    if (r.by_host)
      stream.upload(std::span(r.staging).subspan(row * r.bytes, r.bytes), r.buffer);
    else
      copy(stream, part_of(operands[parts_.first_x() + x], row * r.bytes, r.bytes), r.buffer);
  }
  for (std::size_t y = 0; y < ys_.size(); ++y)
    step.outputs[parts_.carries + y].view =
        ys_[y].passes ? ys_[y].buffer : part_of(results[parts_.carries + y], row * ys_[y].bytes, ys_[y].bytes);
}

void HostControlledNode::end_iteration(std::size_t row, std::span<const BufferView> results, Stream& stream) {
  for (std::size_t y = 0; y < ys_.size(); ++y) {
    Rows& r = ys_[y];
    if (!r.passes || r.bytes == 0) continue;
    if (r.by_host)
      stream.download(r.buffer, std::span(r.staging).subspan(row * r.bytes, r.bytes));
    else
      copy(stream, r.buffer, part_of(results[parts_.carries + y], row * r.bytes, r.bytes));
  }
}

void HostControlledNode::end_rows(std::size_t iterations, std::span<const BufferView> results, Stream& stream) {
  bool waited = false;
  for (std::size_t y = 0; y < ys_.size(); ++y) {
    const BufferView& whole = results[parts_.carries + y];
    const std::size_t done = iterations * ys_[y].bytes;
    if (ys_[y].by_host) {
      if (!std::exchange(waited, true)) stream.record().wait();
      if (whole.bytes != 0) stream.upload(ys_[y].staging, whole);
    } else if (done < whole.bytes) {
      upload_zeros(stream, part_of(whole, done, whole.bytes - done));
    }
  }
}

}  // namespace rlx
