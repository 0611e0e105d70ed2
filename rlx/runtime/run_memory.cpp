// Buffers of a runner, and the one place that tells devices which reach the host's memory from those that do not.
#include "rlx/runtime/run_memory.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "rlx/error.h"
#include "rlx/runtime/specialize.h"

namespace rlx {

BufferView input_on(OpenDevice& device, Stream& stream, const void* data, std::size_t bytes, const BufferView& room) {
  if (device.host_memory()) return {data, bytes};
  BufferView at = room;
  at.bytes = bytes;
  if (bytes != 0) stream.upload({static_cast<const std::byte*>(data), bytes}, at);
  return at;
}

BufferView output_on(OpenDevice& device, void* data, std::size_t bytes, const BufferView& room) {
  if (device.host_memory()) return {data, bytes};
  BufferView at = room;
  at.bytes = bytes;
  return at;
}

void fetch_output(OpenDevice& device, Stream& stream, const BufferView& from, void* data, Buffer* readback) {
  if (device.host_memory() || from.bytes == 0) return;
  if (!readback) return stream.download(from, {static_cast<std::byte*>(data), from.bytes});
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(data) - readback->host());
  stream.copy(from, BufferView(*readback, offset, from.bytes));
}

BufferView resident_on(OpenDevice& device, Stream& stream, const Tensor& bytes, Resident& copy) {
  if (device.host_memory()) return {bytes.data(), bytes.size_bytes()};
  if (!copy.buffer) {
    copy.buffer = device.put(bytes.view(), nullptr, BufferUse::Weights, stream);
    copy.there = stream.record();
  } else if (!copy.there.ready()) {  // another runner's stream may still be bringing it
    stream.wait(copy.there);
  }
  return {*copy.buffer, 0, bytes.size_bytes()};
}

std::vector<Tensor> run_once(OpenDevice& device, Stream& stream, const ExecutableGraph& code,
                             std::span<const Tensor> inputs) {
  const LirModule& program = code.lir();
  std::vector<std::shared_ptr<Buffer>> buffers;
  const auto take = [&](std::size_t bytes, BufferUse use) {
    buffers.push_back(device.allocate(std::max<std::size_t>(64, bytes), use));
    return BufferView(*buffers.back(), 0, bytes);
  };
  const auto room = [&](std::size_t bytes) {
    return device.host_memory() ? BufferView() : take(bytes, BufferUse::Slots);
  };
  std::vector<BufferView> arenas;
  for (std::size_t bytes : program.plan.arenas) arenas.push_back(take(bytes, BufferUse::Arena));
  std::vector<Tensor> results;
  std::vector<RunSlot> in, out;
  for (Value v : program.graph.outputs()) results.push_back(Tensor::uninitialized(program.graph.shape(v)));
  for (const Tensor& t : inputs)
    in.push_back({input_on(device, stream, t.data(), t.size_bytes(), room(t.size_bytes()))});
  for (Tensor& t : results) out.push_back({output_on(device, t.mutable_data(), t.size_bytes(), room(t.size_bytes()))});
  const std::unique_ptr<BoundGraph> bound = code.bind(device, program, arenas);
  RunArguments run;
  run.inputs = in, run.outputs = out;
  Fetching fetching(stream);
  (void)bound->submit(run, stream);
  for (std::size_t i = 0; i < results.size(); ++i)
    fetch_output(device, stream, out[i].view, results[i].mutable_data(), nullptr);
  fetching.finish(stream.record());
  return results;
}

namespace {

bool meets(const void* data, std::size_t bytes, const Buffer& b) {
  const auto x = reinterpret_cast<std::uintptr_t>(data), y = reinterpret_cast<std::uintptr_t>(b.host());
  return y != 0 && bytes != 0 && x < y + b.bytes() && y < x + bytes;
}

}  // namespace

RunMemory::RunMemory(std::shared_ptr<OpenDevice> device, std::size_t alignment)
    : device_(std::move(device)),
      alignment_(device_->host_memory() ? alignment : 1),  // other devices align what they allocate
      spare_(alignment_ > 64 ? alignment_ : 0) {}

bool RunMemory::fits(const Code& c) const {
  const LirBufferPlan& plan = c.executable->lir().plan;
  if (arenas_.size() < plan.arenas.size() || !results_ || results_->bytes() < c.slot_bytes + spare_) return false;
  for (std::size_t i = 0; i < plan.arenas.size(); ++i)
    if (arenas_[i]->bytes() < plan.arenas[i] + spare_) return false;
  if (device_->host_memory()) return true;
  const auto holds = [](const Buffers& list, const std::vector<std::size_t>& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
      if (i >= list.size() || list[i]->bytes() < bytes[i]) return false;
    return true;
  };
  return holds(inputs_, c.input_bytes) && holds(outputs_, c.output_bytes);
}

std::shared_ptr<Buffer> RunMemory::take(std::size_t bytes, BufferUse use) const {
  return device_->allocate(std::max<std::size_t>(64, bytes) + spare_, use);
}

std::size_t RunMemory::start(const Buffer& b) const {
  return (alignment_ - reinterpret_cast<std::uintptr_t>(b.host()) % alignment_) % alignment_;
}

void RunMemory::reserve(const Code& c, const std::string& graph) {
  const LirBufferPlan& plan = c.executable->lir().plan;
  RunMemory grown = *this;
  std::size_t wanted = 0;
  const auto grow = [&](Buffers& list, const std::vector<std::size_t>& bytes, BufferUse use) {
    list.resize(std::max(list.size(), bytes.size()));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      wanted = bytes[i];
      if (!list[i] || list[i]->bytes() < bytes[i] + spare_) list[i] = take(bytes[i], use);
    }
  };
  try {
    grow(grown.arenas_, plan.arenas, BufferUse::Arena);
    if (!device_->host_memory()) {
      grow(grown.inputs_, c.input_bytes, BufferUse::Slots);
      grow(grown.outputs_, c.output_bytes, BufferUse::Slots);
    }
    wanted = c.slot_bytes;
    if (!results_ || results_->bytes() < c.slot_bytes + spare_)
      grown.results_ = take(c.slot_bytes, BufferUse::Readback);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::OutOfMemory) throw;
    if (device_->host_memory()) throw_no_room(graph, "the values of a run", wanted);
    Diagnostic d = e.diagnostic();  // it says what the device's memory is in use for
    d.message = concat_text("graph '", graph, "': ", d.message);
    throw Error(std::move(d));
  } catch (const std::bad_alloc&) {
    throw_no_room(graph, "the values of a run", wanted);
  }
  grown.arena_views_.clear();
  for (const auto& b : grown.arenas_) {
    const std::size_t at = start(*b);
    grown.arena_views_.emplace_back(*b, at, b->bytes() - at);
  }
  grown.results_at_ = grown.results_->host() + start(*grown.results_);
  *this = std::move(grown);
}

bool RunMemory::in_arenas(const void* data, std::size_t bytes) const {
  return std::any_of(arenas_.begin(), arenas_.end(), [&](const auto& b) { return meets(data, bytes, *b); });
}

bool RunMemory::in_results(const void* data, std::size_t bytes) const {
  return results_ && meets(data, bytes, *results_);
}

void throw_no_room(const std::string& graph, const std::string& what, std::size_t bytes) {
  throw Error(ErrorCode::OutOfMemory,
              concat_text("graph '", graph, "': there is no memory for ", what, ", ", bytes, " bytes"),
              "run it with smaller dimensions, or where there is more memory");
}

}  // namespace rlx
