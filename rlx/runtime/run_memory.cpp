// Buffers of an instance, and the only code that depends on how a device keeps memory.
#include "rlx/runtime/run_memory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>

#include "rlx/base/forks.h"
#include "rlx/device/host_device.h"
#include "rlx/error.h"
#include "rlx/runtime/shared_programs.h"

namespace rlx {

namespace {

bool on_host(const OpenDevice& device) { return device.memory_model() == MemoryModel::Host; }
bool opaque(const OpenDevice& device) { return device.memory_model() == MemoryModel::Opaque; }

BufferView front_of(const BufferView& room, std::size_t bytes) {
  BufferView at = room;
  at.bytes = bytes;
  return at;
}

// The extents of a static shape. Usual ranks allocate nothing.
class Extents {
 public:
  explicit Extents(const Shape& shape) {
    const Dims& dims = shape.dims();
    if (dims.size() > few_.size()) {
      many_ = shape.static_dims();
      all_ = many_;
      return;
    }
    for (std::size_t i = 0; i < dims.size(); ++i) few_[i] = dims[i].value();
    all_ = std::span(few_).first(dims.size());
  }
  Extents(const Extents&) = delete;
  Extents& operator=(const Extents&) = delete;
  std::span<const std::int64_t> all() const { return all_; }

 private:
  std::array<std::int64_t, 16> few_{};
  std::vector<std::int64_t> many_;
  std::span<const std::int64_t> all_;
};

std::shared_ptr<Buffer> put_value(OpenDevice& device, Stream& stream, const void* data, const Shape& shape,
                                  BufferUse use) {
  const Extents dims(shape);
  return device.put({data, shape.dtype(), dims.all(), shape.size_bytes()}, nullptr, use, stream);
}

void get_value(OpenDevice& device, Stream& stream, Buffer& from, const Shape& shape, void* to) {
  const Extents dims(shape);
  device.get(from, {to, shape.dtype(), dims.all(), shape.size_bytes()}, stream);
}

}  // namespace

RunSlot input_slot(OpenDevice& device, Stream& stream, const TensorView& value, const Shape& shape,
                   const BufferView& room, std::shared_ptr<Buffer>& slot) {
  if (value.buffer) {
    wait_behind(stream, value.buffer->written());
    if (!opaque(device)) return {BufferView(*value.buffer, 0, value.size_bytes)};
    slot = value.buffer->shared_from_this();
    return {{}, &slot};
  }
  if (on_host(device)) return {{value.data, value.size_bytes}};
  if (opaque(device)) {
    slot = put_value(device, stream, value.data, shape, BufferUse::Slots);
    return {{}, &slot};
  }
  const BufferView at = front_of(room, value.size_bytes);
  if (value.size_bytes != 0) stream.upload({static_cast<const std::byte*>(value.data), value.size_bytes}, at);
  return {at};
}

RunSlot output_slot(OpenDevice& device, void* data, std::size_t bytes, const BufferView& room,
                    std::shared_ptr<Buffer>& slot) {
  if (on_host(device)) return {{data, bytes}};
  if (!opaque(device)) return {front_of(room, bytes)};
  slot.reset();
  return {{}, &slot};
}

void fetch_output(OpenDevice& device, Stream& stream, const RunSlot& from, const Shape& shape, void* data,
                  Buffer* readback) {
  if (from.buffer_slot) {
    if (shape.size_bytes() != 0) get_value(device, stream, **from.buffer_slot, shape, data);
    from.buffer_slot->reset();
    return;
  }
  if (on_host(device) || from.view.bytes == 0) return;
  if (!readback) return stream.download(from.view, {static_cast<std::byte*>(data), from.view.bytes});
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(data) - readback->host());
  stream.copy(from.view, BufferView(*readback, offset, from.view.bytes));
}

RunSlot value_slot(OpenDevice& device, const Shape& shape, Tensor& value, std::shared_ptr<Buffer>& slot) {
  if (opaque(device)) {
    slot.reset();
    return {{}, &slot};
  }
  if (on_host(device)) {
    value = Tensor::uninitialized(shape);
    return {{value.mutable_data(), shape.size_bytes()}};
  }
  value = Tensor::on_device(device.allocate(std::max<std::size_t>(shape.size_bytes(), 1), BufferUse::Values), shape);
  return {BufferView(*value.buffer(), 0, shape.size_bytes())};
}

void keep_value(const RunSlot& from, const Shape& shape, const Event& done, Tensor& value) {
  if (from.buffer_slot) value = Tensor::on_device(std::move(*from.buffer_slot), shape);
  if (value.buffer()) value.buffer()->set_written(done);
}

std::shared_ptr<Buffer> state_buffer(OpenDevice& device, const Shape& shape) {
  return opaque(device) ? nullptr : device.allocate(shape.size_bytes(), BufferUse::States);
}

RunSlot state_slot(OpenDevice& device, std::shared_ptr<Buffer>& buffer, const Shape& shape) {
  if (opaque(device)) return {{}, &buffer};
  return {BufferView(*buffer, 0, shape.size_bytes())};
}

void drop_state_value(const OpenDevice& device, std::shared_ptr<Buffer>& buffer, bool& valid) {
  if (!opaque(device)) return;
  valid = false;
  buffer.reset();
}

namespace {

// Bytes [from, to) that a device copies for a part of a value of `all` bytes.
struct Span {
  std::size_t from, to;
};
Span copied_span(const OpenDevice& device, std::size_t all, std::size_t granule, std::size_t offset,
                 std::size_t bytes) {
  if (opaque(device)) return {0, all};
  const std::size_t from = offset / granule * granule;
  return {from, std::min(all, (offset + bytes + granule - 1) / granule * granule)};
}

void put_bytes(OpenDevice& device, Stream& stream, std::shared_ptr<Buffer>& buffer, const Shape& shape,
               std::size_t offset, std::span<const std::byte> from, bool& valid) {
  if (opaque(device)) {
    buffer = put_value(device, stream, from.data(), shape, BufferUse::States);
    return;
  }
  valid = false;
  stream.upload(from, BufferView(*buffer, offset, from.size()));
}

}  // namespace

void write_state_bytes(OpenDevice& device, Stream& stream, std::shared_ptr<Buffer>& buffer, const Shape& shape,
                       std::size_t granule, std::size_t offset, std::size_t bytes, const std::byte* data, bool& valid) {
  const std::size_t all = shape.size_bytes();
  if (bytes == 0 && !(opaque(device) && !buffer)) return;
  const Span span = copied_span(device, all, granule, offset, bytes);
  if (data && span.from == offset && span.to == offset + bytes)
    return put_bytes(device, stream, buffer, shape, offset, {data, bytes}, valid);
  if (!data && !opaque(device) && bytes == all) {
    static constexpr std::byte zeros[std::size_t{1} << 16]{};
    for (std::size_t at = 0; at < bytes; at += sizeof zeros)
      put_bytes(device, stream, buffer, shape, at, {zeros, std::min(sizeof zeros, bytes - at)}, valid);
    return;
  }
  Tensor around = Tensor::zeros(Shape({Dim(span.to - span.from)}, DType::U8));
  std::byte* const copy = around.mutable_data();
  if (bytes != all) read_state_bytes(device, stream, *buffer, shape, granule, span.from, {copy, span.to - span.from});
  if (data)
    std::memcpy(copy + (offset - span.from), data, bytes);
  else
    std::memset(copy + (offset - span.from), 0, bytes);
  put_bytes(device, stream, buffer, shape, span.from, {copy, span.to - span.from}, valid);
}

void read_state_bytes(OpenDevice& device, Stream& stream, Buffer& buffer, const Shape& shape, std::size_t granule,
                      std::size_t offset, std::span<std::byte> to) {
  if (to.empty()) return;
  const Span span = copied_span(device, shape.size_bytes(), granule, offset, to.size());
  Tensor around;
  std::byte* at = to.data();
  if (span.to - span.from != to.size()) {
    around = Tensor::uninitialized(Shape({Dim(span.to - span.from)}, DType::U8));
    at = around.mutable_data();
  }
  Fetching fetching(stream);
  if (opaque(device))
    get_value(device, stream, buffer, shape, at);
  else
    stream.download(BufferView(buffer, span.from, span.to - span.from), {at, span.to - span.from});
  fetching.finish(stream.record());
  if (at != to.data()) std::memcpy(to.data(), at + (offset - span.from), to.size());
}

void read_scalars(OpenDevice& device, Stream& stream, std::span<const BufferView> from, std::span<std::int64_t> to) {
  Fetching fetching(stream);
  for (std::size_t k = 0; k < from.size(); ++k) {
    if (on_host(device) || !from[k].buffer)
      std::memcpy(&to[k], from[k].host, sizeof to[k]);
    else
      stream.download(from[k], std::as_writable_bytes(to.subspan(k, 1)));
  }
  fetching.finish(stream.record());
}

std::shared_ptr<Buffer> copied_state(OpenDevice& device, Stream& stream, const std::shared_ptr<Buffer>& buffer,
                                     const Shape& shape) {
  if (opaque(device)) return buffer;
  std::shared_ptr<Buffer> copy = state_buffer(device, shape);
  if (const std::size_t bytes = shape.size_bytes(); bytes != 0)
    stream.copy(BufferView(*buffer, 0, bytes), BufferView(*copy, 0, bytes));
  return copy;
}

BufferView resident_on(OpenDevice& device, Stream& stream, const Tensor& bytes, Resident& copy) {
  if (on_host(device)) return {bytes.data(), bytes.size_bytes()};
  if (!copy.buffer || copy.there.failed()) {
    copy.buffer = put_value(device, stream, bytes.data(), bytes.shape(), BufferUse::Weights);
    copy.there = stream.record();
  } else {  // another instance's stream may still be copying it
    wait_behind(stream, copy.there);
  }
  return {*copy.buffer, 0, bytes.size_bytes()};
}

Tensor value_on(OpenDevice& device, const Tensor& here) {
  if (on_host(device)) return here;
  const std::shared_ptr<Stream> stream = device.stream();
  std::shared_ptr<Buffer> there = put_value(device, *stream, here.data(), here.shape(), BufferUse::Values);
  there->set_written(stream->record());
  return Tensor::on_device(std::move(there), here.shape());
}

std::vector<Tensor> run_once(OpenDevice& device, Stream& stream, const Executable& code,
                             std::span<const Tensor> inputs) {
  const LirModule& program = code.lir();
  std::vector<std::shared_ptr<Buffer>> buffers;
  const auto take = [&](std::size_t bytes, BufferUse use) {
    buffers.push_back(device.allocate(std::max<std::size_t>(64, bytes), use));
    return BufferView(*buffers.back(), 0, bytes);
  };
  const auto room = [&](std::size_t bytes) {
    return device.memory_model() == MemoryModel::Arena ? take(bytes, BufferUse::Slots) : BufferView();
  };
  std::vector<BufferView> arenas;
  for (std::size_t bytes : program.plan.arenas) arenas.push_back(take(bytes, BufferUse::Arena));
  std::vector<Tensor> results;
  std::vector<RunSlot> in, out;
  std::vector<std::shared_ptr<Buffer>> held(inputs.size() + program.graph.outputs().size());
  for (Value v : program.graph.outputs()) results.push_back(Tensor::uninitialized(program.graph.shape(v)));
  for (const Tensor& t : inputs)
    in.push_back(input_slot(device, stream, t.view(), t.shape(), room(t.size_bytes()), held[in.size()]));
  for (Tensor& t : results)
    out.push_back(
        output_slot(device, t.mutable_data(), t.size_bytes(), room(t.size_bytes()), held[inputs.size() + out.size()]));
  const std::unique_ptr<Instance> bound = code.bind(device, program, arenas);
  RunArguments run;
  run.inputs = in, run.outputs = out;
  Fetching fetching(stream);
  (void)bound->submit(run, stream);
  for (std::size_t i = 0; i < results.size(); ++i)
    fetch_output(device, stream, out[i], results[i].shape(), results[i].mutable_data(), nullptr);
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
      alignment_(on_host(*device_) ? alignment : 1),  // other devices align their own allocations
      spare_(alignment_ > 64 ? alignment_ : 0) {}

template <class F>
void RunMemory::each_arena(const Compilation& c, F f) const {
  const LirBufferPlan& plan = c.executable->lir().plan;
  std::size_t n = 0;
  for (std::size_t a = 0; a < plan.arenas.size(); ++a, ++n) {
    const std::uint32_t d = plan.arena_device(a);
    if (a != 0 && plan.arena_device(a - 1) != d) {  // plans keep the arenas of one device adjacent
      n = 0;
      for (std::size_t before = 0; before < a; ++before) n += plan.arena_device(before) == d ? 1 : 0;
    }
    f(c.devices[d], n, plan.arenas[a]);
  }
}

bool RunMemory::fits(const Compilation& c) const {
  if (!results_ || results_->bytes() < c.slot_bytes + spare_) return false;
  bool there = true;
  each_arena(c, [&](const std::shared_ptr<OpenDevice>& device, std::size_t n, std::size_t bytes) {
    const auto known = arenas_.find(device);
    there = there && known != arenas_.end() && n < known->second.size() && known->second[n]->bytes() >= bytes + spare_;
  });
  if (!there) return false;
  if (device_->memory_model() != MemoryModel::Arena) return true;
  const auto holds = [](const Buffers& list, const std::vector<std::size_t>& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
      if (i >= list.size() || list[i]->bytes() < bytes[i]) return false;
    return true;
  };
  return holds(inputs_, c.input_bytes) && holds(outputs_, c.output_bytes);
}

namespace {

// Host memory that work of a device writes to. Releasing it does not wait: the bytes stay until that work
// (`Buffer::written`) is done.
std::shared_ptr<Buffer> outliving_work(std::shared_ptr<Buffer> memory) {
  Buffer* const raw = memory.get();
  return {raw, [held = std::move(memory)](Buffer*) {
            static auto& mutex = *new ProcessMutex;
            static auto& busy = *new std::vector<std::shared_ptr<Buffer>>;
            std::lock_guard lock(mutex);
            std::erase_if(busy, [](const auto& b) { return b->written().ready(); });
            if (held->written().ready()) return;
            try {
              busy.push_back(held);
            } catch (const std::bad_alloc&) {  // no memory to keep it in the list
              wait_quietly(held->written());
            }
          }};
}

}  // namespace

std::shared_ptr<Buffer> RunMemory::take(std::size_t bytes, BufferUse use) const {
  const std::size_t wanted = std::max<std::size_t>(64, bytes) + spare_;
  // On a device without parts of buffers, results for the host lie in host memory.
  if (opaque(*device_)) return outliving_work(open_host_device(device_->id())->allocate(wanted, use));
  return device_->allocate(wanted, use);
}

std::size_t RunMemory::start(const Buffer& b) const {
  return (alignment_ - reinterpret_cast<std::uintptr_t>(b.host()) % alignment_) % alignment_;
}

void RunMemory::reserve(const Compilation& c, const std::string& graph) {
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
    each_arena(c, [&](const std::shared_ptr<OpenDevice>& on, std::size_t n, std::size_t bytes) {
      Buffers& list = grown.arenas_[on];
      list.resize(std::max(list.size(), n + 1));
      wanted = bytes;
      if (list[n] && list[n]->bytes() >= bytes + spare_) return;
      list[n] = on == device_ ? take(bytes, BufferUse::Arena)
                              : on->allocate(std::max<std::size_t>(64, bytes) + spare_, BufferUse::Arena);
    });
    if (device_->memory_model() == MemoryModel::Arena) {
      grow(grown.inputs_, c.input_bytes, BufferUse::Slots);
      grow(grown.outputs_, c.output_bytes, BufferUse::Slots);
    }
    wanted = c.slot_bytes;
    if (!results_ || results_->bytes() < c.slot_bytes + spare_)
      grown.results_ = take(c.slot_bytes, BufferUse::Readback);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::OutOfMemory) throw;
    if (on_host(*device_)) throw_no_room(graph, "the values of a run", wanted);
    Diagnostic d = e.diagnostic();  // names the use of the device's memory
    d.message = concat_text("graph '", graph, "': ", d.message);
    throw Error(std::move(d));
  } catch (const std::bad_alloc&) {
    throw_no_room(graph, "the values of a run", wanted);
  }
  grown.results_at_ = grown.results_->host() + start(*grown.results_);
  *this = std::move(grown);
}

std::vector<BufferView> RunMemory::arenas(const Compilation& c) const {
  std::vector<BufferView> views;
  each_arena(c, [&](const std::shared_ptr<OpenDevice>& device, std::size_t n, std::size_t) {
    Buffer& b = *arenas_.at(device)[n];
    const std::size_t at = start(b);
    views.emplace_back(b, at, b.bytes() - at);
  });
  return views;
}

bool RunMemory::reads_inputs_in_place() const { return on_host(*device_); }

bool RunMemory::in_arenas(const void* data, std::size_t bytes) const {
  const auto known = arenas_.find(device_);
  if (known == arenas_.end()) return false;
  return std::any_of(known->second.begin(), known->second.end(), [&](const auto& b) { return meets(data, bytes, *b); });
}

bool RunMemory::in_results(const void* data, std::size_t bytes) const {
  return results_ && meets(data, bytes, *results_);
}

void throw_no_room(const std::string& graph, const std::string& what, std::size_t bytes) {
  throw Error(ErrorCode::OutOfMemory,
              concat_text("graph '", graph, "': there is no memory for ", what, " (", bytes, " bytes)"),
              "run it with smaller dimensions, or on a machine with more memory");
}

}  // namespace rlx
