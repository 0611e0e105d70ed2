// Memory of one runner on its device: arenas, and the places that inputs and outputs of the host pass through.
// Internal.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlx/driver/backend.h"

namespace rlx {

struct Code;

// -- host values on a device. Only these know whether kernels reach memory of the host. --

/// Where a run finds an input of the host: its own bytes where kernels reach them, else a copy in `room`.
BufferView input_on(OpenDevice& device, Stream& stream, const void* data, std::size_t bytes, const BufferView& room);
/// Where a run leaves an output for the host.
BufferView output_on(OpenDevice& device, void* data, std::size_t bytes, const BufferView& room);
/// Brings an output from there to the host's bytes, which may be those of a read-back buffer.
void fetch_output(OpenDevice& device, Stream& stream, const BufferView& from, void* data, Buffer* readback);

/// The copy on a device of bytes that do not change while it is there.
struct Resident {
  std::shared_ptr<Buffer> buffer;
  Event there{};  // when it holds them
};
/// Where kernels read `bytes`: there where they reach them, else in the copy, which is made now when there is none.
BufferView resident_on(OpenDevice& device, Stream& stream, const Tensor& bytes, Resident& copy);

/// While work writes to memory of a caller: lets nobody leave before it is done, however they leave.
class Fetching {
 public:
  explicit Fetching(Stream& stream) : stream_(&stream) {}
  Fetching(const Fetching&) = delete;
  Fetching& operator=(const Fetching&) = delete;
  ~Fetching() {
    if (!stream_) return;
    try {
      stream_->record().wait();
    } catch (...) {  // what failed is reported by whoever throws
    }
  }
  /// Waits for all so far; throws what failed.
  void finish(const Event& done) {
    done.wait();
    stream_ = nullptr;
  }

 private:
  Stream* stream_;
};

/// Runs a static program without params or states once on values of the host.
std::vector<Tensor> run_once(OpenDevice& device, Stream& stream, const ExecutableGraph& code,
                             std::span<const Tensor> inputs);

/// Grows to the largest program used so far; what it holds stays where it is until then.
class RunMemory {
 public:
  RunMemory(std::shared_ptr<OpenDevice> device, std::size_t alignment);
  bool fits(const Code& c) const;
  /// Takes room for `c`, as far as there is too little. OutOfMemory names `graph`; then nothing has changed.
  void reserve(const Code& c, const std::string& graph);
  std::span<const BufferView> arenas() const { return arena_views_; }
  /// Where run_slots leaves outputs, by `Code::slot_offsets`: memory that the host reaches.
  std::byte* results() const { return results_at_; }
  Buffer* results_buffer() const { return results_.get(); }
  /// Room for an input or output on the device; empty where kernels reach the host's memory.
  BufferView input_room(std::size_t i) const { return room(inputs_, i); }
  BufferView output_room(std::size_t o) const { return room(outputs_, o); }
  /// True when the host's bytes lie in the arenas, which runs write, or in the results.
  bool in_arenas(const void* data, std::size_t bytes) const;
  bool in_results(const void* data, std::size_t bytes) const;

 private:
  using Buffers = std::vector<std::shared_ptr<Buffer>>;
  static BufferView room(const Buffers& list, std::size_t i) {
    return i < list.size() && list[i] ? BufferView(*list[i], 0, list[i]->bytes()) : BufferView();
  }
  std::shared_ptr<Buffer> take(std::size_t bytes, BufferUse use) const;
  std::size_t start(const Buffer& b) const;

  std::shared_ptr<OpenDevice> device_;
  std::size_t alignment_, spare_;
  Buffers arenas_, inputs_, outputs_;
  std::vector<BufferView> arena_views_;
  std::shared_ptr<Buffer> results_;
  std::byte* results_at_ = nullptr;
};

/// The error of a machine without memory for `what` of a graph.
[[noreturn]] void throw_no_room(const std::string& graph, const std::string& what, std::size_t bytes);

}  // namespace rlx
