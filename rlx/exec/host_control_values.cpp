// Host-controlled branches and loops over whole values, iteration by iteration.
#include "rlx/exec/host_control_values.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "rlx/base/stop_request.h"
#include "rlx/exec/fetching.h"
#include "rlx/ir/ops/control.h"
#include "rlx/tensor/sole_owner.h"

namespace rlx {
namespace {

HeldValue put_value(OpenDevice& device, Stream& stream, const Shape& shape, const std::byte* data) {
  const std::vector<std::int64_t> dims = shape.static_dims();
  return device.put(view_of(shape, dims, data), nullptr, BufferUse::Values, stream);
}

void get_value(OpenDevice& device, Stream& stream, Buffer& from, const Shape& shape, std::byte* to) {
  if (shape.size_bytes() == 0) return;
  const std::vector<std::int64_t> dims = shape.static_dims();
  device.get(from, {to, shape.dtype(), dims, shape.size_bytes()}, stream);
}

}  // namespace

TensorView view_of(const Shape& shape, std::span<const std::int64_t> dims, const std::byte* data) {
  return {data, shape.dtype(), dims, shape.size_bytes()};
}

void HostControlledValues::Body::run(Stream& stream) {
  for (std::size_t i = 0; i < in.size(); ++i) inputs[i] = {{}, &in[i], donated[i] && sole_owner(in[i])};
  for (std::size_t o = 0; o < out.size(); ++o) {
    out[o].reset();
    outputs[o] = {{}, &out[o]};
  }
  RunArguments a;
  a.inputs = inputs, a.outputs = outputs;
  (void)bound->submit(a, stream);
}

HostControlledValues::HostControlledValues(const Graph& g, const LirPart& part,
                                           std::vector<std::unique_ptr<Instance>> bodies)
    : graph_(g), part_(part), loop_(loop_parts(g.node(part.nodes[0]).op).value_or(LoopParts{})) {
  for (std::size_t b = 0; b < bodies.size(); ++b) {
    const LirModule& m = part.modules[b];
    Body body;
    body.bound = std::move(bodies[b]);
    for (NodeId id : m.graph.leaves(OpKind::Input)) body.takes.push_back(m.graph.shape(id));
    for (Value v : m.graph.outputs()) body.makes.push_back(m.graph.shape(v));
    body.in.resize(body.takes.size()), body.inputs.resize(body.takes.size());
    body.out.resize(body.makes.size()), body.outputs.resize(body.makes.size());
    body.donated.resize(body.takes.size());
    for (const LirAlias& a : m.plan.aliases)
      if (a.refused.empty()) body.donated[a.input] = true;
    bodies_.push_back(std::move(body));
  }
  const Body& step = bodies_.back();
  for (std::size_t x = 0; x < loop_.xs; ++x) xs_.push_back({step.takes[loop_.first_x() + x].size_bytes()});
  for (std::size_t y = 0; y < loop_.ys; ++y) ys_.push_back({step.makes[loop_.carries + y].size_bytes()});
}

bool HostControlledValues::donates(std::size_t operand) const {
  const std::size_t first = is_branch() ? 1 : 0;
  return operand >= first && std::any_of(bodies_.begin(), bodies_.end(), [&](const Body& b) {
           return operand - first < b.donated.size() && b.donated[operand - first];
         });
}

std::vector<HeldValue> HostControlledValues::run(std::vector<HeldValue>& operands, OpenDevice& device, Stream& stream) {
  const auto let_go = [&] {
    for (Body& b : bodies_) {
      b.in.assign(b.in.size(), nullptr);
      b.out.assign(b.out.size(), nullptr);
    }
  };
  try {
    std::vector<HeldValue> results;
    if (is_branch()) {
      const bool taken = decides(*operands[0], device, stream);
      Body& body = bodies_[taken ? 0 : 1];
      for (std::size_t i = 1; i < operands.size(); ++i) body.in[i - 1] = std::move(operands[i]);
      try {
        body.run(stream);
      } catch (...) {
        for (std::size_t i = 1; i < operands.size(); ++i) operands[i] = std::move(body.in[i - 1]);
        throw;
      }
      results = body.out;
    } else {
      results = run_loop(operands, device, stream);
    }
    let_go();
    return results;
  } catch (...) {
    let_go();
    throw;
  }
}

bool HostControlledValues::decides(Buffer& flag, OpenDevice& device, Stream& stream) {
  Fetching fetching(stream);
  get_value(device, stream, flag, Shape({}, DType::Bool), &flag_);
  fetching.finish(stream.record());
  return flag_ != std::byte{0};
}

std::vector<HeldValue> HostControlledValues::run_loop(std::vector<HeldValue>& operands, OpenDevice& device,
                                                      Stream& stream) {
  const Node& n = graph_.node(part_.nodes[0]);
  const auto* scan = n.op.get_if<ops::Scan>();
  const auto* loop = n.op.get_if<ops::While>();
  const std::int64_t most =
      scan ? scan->length[0].value() : loop->max_trips.value_or(std::numeric_limits<std::int64_t>::max());
  Body& step = bodies_.back();
  const std::size_t first = loop_.first_carry();
  std::vector<HeldValue> made(loop_.carries);
  std::span<HeldValue> carries = std::span(operands).subspan(first, loop_.carries);  // updated by each iteration
  Fetching staged(stream);  // rows stay in our memory until the work is done
  for (std::size_t x = 0; x < xs_.size(); ++x) {
    const Shape& whole = graph_.shape(n.inputs[loop_.first_x() + x]);
    xs_[x].all.resize(whole.size_bytes());
    get_value(device, stream, *operands[loop_.first_x() + x], whole, xs_[x].all.data());
    operands[loop_.first_x() + x].reset();
  }
  if (!xs_.empty()) stream.record().wait();
  for (std::size_t y = 0; y < ys_.size(); ++y)
    ys_[y].all.assign(n.shapes[loop_.carries + y].size_bytes(), std::byte{0});
  std::int64_t iterations = 0;
  for (; iterations < most; ++iterations) {
    StopRequest::check();
    if (loop) {
      Body& cond = bodies_.front();
      for (std::size_t i = 0; i < loop_.invariants; ++i) cond.in[i] = operands[i];
      for (std::size_t c = 0; c < loop_.carries; ++c) cond.in[first + c] = carries[c];
      cond.run(stream);
      const bool goes_on = decides(*cond.out[0], device, stream);
      cond.in.assign(cond.in.size(), nullptr);
      if (!goes_on) break;
    }
    const auto row = static_cast<std::size_t>(scan && scan->reverse ? most - 1 - iterations : iterations);
    for (std::size_t i = 0; i < loop_.invariants; ++i) step.in[i] = operands[i];
    for (std::size_t x = 0; x < xs_.size(); ++x)
      step.in[loop_.first_x() + x] =
          put_value(device, stream, step.takes[loop_.first_x() + x], xs_[x].all.data() + row * xs_[x].bytes);
    for (std::size_t c = 0; c < loop_.carries; ++c) step.in[first + c] = std::move(carries[c]);
    try {
      step.run(stream);
    } catch (...) {
      for (std::size_t c = 0; c < loop_.carries; ++c) carries[c] = std::move(step.in[first + c]);
      throw;
    }
    for (std::size_t c = 0; c < loop_.carries; ++c) made[c] = std::move(step.out[c]);
    carries = made;
    for (std::size_t y = 0; y < ys_.size(); ++y)
      get_value(device, stream, *step.out[loop_.carries + y], step.makes[loop_.carries + y],
                ys_[y].all.data() + row * ys_[y].bytes);
  }
  staged.finish(stream.record());
  std::vector<HeldValue> results(carries.begin(), carries.end());
  for (std::size_t y = 0; y < ys_.size(); ++y)
    results.push_back(put_value(device, stream, n.shapes[loop_.carries + y], ys_[y].all.data()));
  if (loop)
    results.push_back(put_value(device, stream, n.shapes.back(), reinterpret_cast<const std::byte*>(&iterations)));
  return results;
}

}  // namespace rlx
