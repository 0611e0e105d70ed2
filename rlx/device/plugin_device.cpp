// Owners of plug-in handles: the last owner releases each handle once.
#include "rlx/device/plugin_device.h"

#include <utility>

#include "rlx/error.h"

namespace rlx {
namespace {

[[noreturn]] void refuse_bytes(const PluginDevice& device, std::string_view what) {
  throw Error(ErrorCode::Unsupported,
              concat_text("device ", device.text(), ", ", device.table().text(), ": ", what,
                          " addresses bytes of a buffer, but the device transfers whole values only"),
              "use put and get");
}

std::string place_of(const PluginDevice& device) {
  return concat_text("device ", device.text(), ", ", device.table().text());
}

[[noreturn]] void refuse_foreign(const PluginDevice& device, std::string_view what, std::string_view object,
                                 const PluginDevice& other, std::string hint) {
  const std::string here = place_of(device), there = place_of(other);
  const std::string_view apart = here != there  ? ""
                                 : other.lost() ? ", made before the device was lost"
                                                : ", opened with other options";
  throw Error(ErrorCode::InvalidArgument, concat_text(here, ": ", what, " was given a ", object, " of ", there, apart),
              std::move(hint));
}

}  // namespace

PluginDevice::PluginDevice(std::shared_ptr<const PluginTable> table, DeviceId id, const DeviceOptions& options)
    : table_(std::move(table)), id_(id), text_(device_text(id)) {
  const std::string kind(device_info(id.kind).id);
  const PluginOptions given(options);
  table_->note_open();
  call("device_open",
       [&](rlx_error* e) { return api().device_open(kind.c_str(), id.ordinal, given.get(), &handle_, e); });
  if (!handle_) table_->broke(text_, "device_open", "returned no device");
}

PluginDevice::~PluginDevice() {
  table_->give_back("device_destroy", [&] { api().device_destroy(handle_); });
}

DeviceMemory PluginDevice::memory() const {
  static_assert(kNumBufferUses == RLX_PLUGIN_USES);
  rlx_memory m{};
  m.struct_size = sizeof m;
  call("device_memory", [&](rlx_error* e) { return api().device_memory(handle_, &m, e); });
  DeviceMemory out;
  out.total = m.total;
  for (std::size_t i = 0; i < out.in_use.size(); ++i) out.in_use[i] = m.in_use[i];
  return out;
}

bool PluginDevice::lost() const {
  return lost_ || table_->forked() || ask("device_lost", [&] { return api().device_lost(handle_); }) != 0;
}

void PluginDevice::note_loss() const noexcept {
  try {
    if (lost()) lost_ = true;
  } catch (...) {  // the current error says more
  }
}

std::shared_ptr<Stream> PluginDevice::stream(std::uintptr_t native) {
  const auto owner = std::make_shared<PluginStream>(self());
  rlx_stream* made = nullptr;
  call("stream_create", [&](rlx_error* e) { return api().stream_create(handle_, native, &made, e); });
  if (!made) table_->broke(text_, "stream_create", "returned no stream");
  owner->own(made);
  return owner;
}

std::shared_ptr<Buffer> PluginDevice::put(const TensorView& value, const std::shared_ptr<const void>&, BufferUse use,
                                          Stream& stream) {
  (void)buffer_use_name(use);
  if (value.data == nullptr && value.size_bytes != 0)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("put: the pointer to a value of ", value.size_bytes, " bytes is null"));
  const std::string dtype(dtype_name(value.dtype));
  const rlx_value v{sizeof v, dtype.c_str(), value.dims.size(), value.dims.data(), value.data, value.size_bytes};
  rlx_stream* const on = plugin_stream(*this, stream, "put").handle();
  const auto owner = std::make_shared<PluginBuffer>(self(), value.size_bytes);
  rlx_buffer* made = nullptr;
  try {
    call("put", [&](rlx_error* e) { return api().put(handle_, on, &v, static_cast<std::uint32_t>(use), &made, e); });
  } catch (const Error& e) {
    if (e.code() != ErrorCode::OutOfMemory) throw;
    Diagnostic d = e.diagnostic();
    d.message = concat_text("device ", text_, " has no memory for ", value.size_bytes, " bytes of ",
                            buffer_use_name(use), ": ", d.message);
    throw Error(std::move(d));
  }
  if (!made) table_->broke(text_, "put", "returned no buffer");
  if (!owner->own(made)) table_->broke(text_, "put", "returned the buffer of another value");
  return owner;
}

void PluginDevice::get(Buffer& buffer, const MutableTensorView& to, Stream& stream) {
  rlx_buffer* const from = plugin_buffer(*this, &buffer, "get").handle();
  if (to.size_bytes != buffer.bytes())
    throw Error(ErrorCode::ShapeMismatch,
                concat_text("cannot read a value of ", to.size_bytes, " bytes from a buffer of ", buffer.bytes(),
                            " bytes on ", text_, ", which transfers whole values only"));
  rlx_stream* const on = plugin_stream(*this, stream, "get").handle();
  call("get", [&](rlx_error* e) { return api().get(on, from, to.data, to.size_bytes, e); });
}

void PluginDevice::drain() {
  call("device_drain", [&](rlx_error* e) { return api().device_drain(handle_, e); });
}

PluginPoint::~PluginPoint() {
  if (handle_) device_->table().give_back("event_destroy", [&] { device_->api().event_destroy(handle_); });
}

// Code that frees memory also calls it and must not get an exception. When the plug-in's function throws, this waits
// here, and `failed` and `wait` report the exception.
bool PluginPoint::ready() {
  try {
    return device_->ask("event_ready", [&] { return device_->api().event_ready(handle_); }) != 0;
  } catch (...) {
    std::lock_guard lock(mutex_);
    if (!broken_) broken_ = std::current_exception();
  }
  try {
    wait();
  } catch (...) {  // thrown again at each wait
  }
  return true;
}
bool PluginPoint::failed() {
  if (!ready()) return false;
  throw_broken();
  return device_->ask("event_failed", [&] { return device_->api().event_failed(handle_); }) != 0;
}
void PluginPoint::wait() {
  device_->call("event_wait", [&](rlx_error* e) { return device_->api().event_wait(handle_, e); });
  throw_broken();
}
void PluginPoint::throw_broken() const {
  std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
}

PluginBuffer::PluginBuffer(std::shared_ptr<PluginDevice> device, std::size_t bytes)
    : Buffer(device->id(), bytes, nullptr), device_(std::move(device)) {
  held().make_room();
}

bool PluginBuffer::own(rlx_buffer* made) {
  if (!held().add(made)) return false;
  handle_ = made;
  return true;
}

void PluginBuffer::expect_reader() {
  std::lock_guard lock(mutex_);
  std::erase_if(readers_, [](const Event& e) { return e.ready(); });
  readers_.reserve(readers_.size() + expected_ + 1);
  ++expected_;
}
void PluginBuffer::add_reader(const Event& end) noexcept {
  std::lock_guard lock(mutex_);
  --expected_;
  if (end.point()) readers_.push_back(end);
}
void PluginBuffer::follow_readers(Stream& stream) {
  std::lock_guard lock(mutex_);
  for (const Event& e : readers_)
    if (!e.ready()) stream.wait_order(e);
}

// The plug-in may reuse the handle as soon as it is released.
PluginBuffer::~PluginBuffer() {
  if (handle_) held().remove(handle_);
  held().release_room();
  if (handle_) device_->table().give_back("buffer_destroy", [&] { device_->api().buffer_destroy(handle_); });
}

std::uintptr_t PluginBuffer::native() const {
  return handle_ ? device_->ask("buffer_native", [&] { return device_->api().buffer_native(handle_); }) : 0;
}

void PluginBuffer::read(std::span<std::byte> to) const {
  if (to.empty()) return;
  if (to.size() != bytes()) refuse_bytes(*device_, "a read");
  const std::shared_ptr<Stream> stream = device_->stream(0);
  stream->wait(written());
  rlx_stream* const on = plugin_stream(*device_, *stream, "get").handle();
  device_->call("get", [&](rlx_error* e) { return device_->api().get(on, handle_, to.data(), to.size(), e); });
  stream->record().wait();
}

PluginStream::~PluginStream() {
  if (handle_) device_->table().give_back("stream_destroy", [&] { device_->api().stream_destroy(handle_); });
}
void PluginStream::upload(std::span<const std::byte>, const BufferView&) { refuse_bytes(*device_, "an upload"); }
void PluginStream::download(const BufferView&, std::span<std::byte>) { refuse_bytes(*device_, "a download"); }
void PluginStream::copy(const BufferView&, const BufferView&) { refuse_bytes(*device_, "a copy"); }

Event PluginStream::record() {
  try {
    auto owner = std::make_shared<PluginPoint>(device_);
    rlx_event* made = nullptr;
    device_->call("stream_record", [&](rlx_error* e) { return device_->api().stream_record(handle_, &made, e); });
    if (!made) device_->table().broke(device_->text(), "stream_record", "returned no event");
    owner->own(made);
    return Event(std::move(owner));
  } catch (...) {
    try {
      device_->drain();
    } catch (...) {  // the first error says more
    }
    throw;
  }
}

void PluginStream::wait(const Event& event) { wait(event, false); }
void PluginStream::wait_order(const Event& event) { wait(event, true); }

void PluginStream::wait(const Event& event, bool order_only) {
  if (!event.point()) return;
  auto* const ours = dynamic_cast<PluginPoint*>(event.point());
  // The plug-in knows the events of all its devices, but not those of this device opened with other options. For those
  // the host waits.
  const bool known = ours && &ours->on().table() == &device_->table() &&
                     (&ours->on() == device_.get() || !(ours->on().id() == device_->id()));
  if (!known) {
    if (order_only) return Stream::wait_order(event);
    return event.wait();
  }
  device_->call("stream_wait", [&](rlx_error* e) {
    return device_->api().stream_wait(handle_, ours->handle(), order_only ? 1 : 0, e);
  });
}

PluginBuffer& plugin_buffer(const PluginDevice& device, Buffer* buffer, std::string_view what) {
  auto* const ours = dynamic_cast<PluginBuffer*>(buffer);
  const std::string way = "copy it there with rlx::to(tensor, device)";
  if (!ours)
    throw Error(ErrorCode::InvalidArgument,
                concat_text(place_of(device), ": ", what, " was given ",
                            buffer ? concat_text("a buffer of device ", device_text(buffer->device()))
                                   : std::string("no buffer")),
                way);
  if (&ours->on() != &device) refuse_foreign(device, what, "buffer", ours->on(), way);
  if (!ours->handle())
    throw Error(ErrorCode::InvalidArgument,
                concat_text(place_of(device), ": ", what, " was given a buffer that was donated to a run"),
                "a run consumes a donated value: copy it first, or do not donate it");
  return *ours;
}

PluginStream& plugin_stream(const PluginDevice& device, Stream& stream, std::string_view what) {
  auto* const ours = dynamic_cast<PluginStream*>(&stream);
  const std::string way = "make one with OpenDevice::stream of that device";
  if (!ours)
    throw Error(ErrorCode::InvalidArgument,
                concat_text(place_of(device), ": ", what, " was given a stream of another backend"), way);
  if (&ours->on() != &device) refuse_foreign(device, what, "stream", ours->on(), way);
  return *ours;
}

}  // namespace rlx
