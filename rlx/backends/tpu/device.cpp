// Transfers of values to and from a plug-in's device.
#include "rlx/backends/tpu/device.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "rlx/device/device.h"
#include "rlx/exec/fetching.h"

namespace rlx::tpu {

ElementOf element_of(DType t) {
  using E = abi::Element;
  switch (checked_dtype(t)) {
    case DType::Bool: return {E::Pred};
    case DType::I8: return {E::S8};
    case DType::I16: return {E::S16};
    case DType::I32: return {E::S32};
    case DType::I64: return {E::S64};
    case DType::U8: return {E::U8};
    case DType::U16: return {E::U16};
    case DType::U32: return {E::U32};
    case DType::U64: return {E::U64};
    case DType::BF16: return {E::BF16};
    case DType::F16: return {E::F16};
    case DType::F32: return {E::F32};
    case DType::F64: return {E::F64};
    case DType::C64: return {E::C64};
    case DType::C128: return {E::C128};
    case DType::F8E4M3: return {E::F8E4M3FN};
    case DType::F8E5M2: return {E::F8E5M2};
    case DType::I4:
    case DType::U4:
    case DType::F4E2M1: return {E::U8, true};
  }
  check(false, "a dtype has no PJRT element type");
  return {E::Invalid};
}

namespace {

// Row-major layout for any rank: the plug-in reads one number per dimension. Usual ranks allocate nothing.
struct RowMajor {
  explicit RowMajor(std::size_t rank) {
    layout.struct_size = abi::kLayoutSize;
    layout.tiled.struct_size = sizeof(abi::TiledLayout);
    layout.tiled.minor_to_major = kDescending.data() + kDescending.size() - std::min(rank, kDescending.size());
    layout.tiled.minor_to_major_size = rank;
    layout.type = abi::LayoutKind::Tiled;
    if (rank <= kDescending.size()) return;
    many.resize(rank);
    std::iota(many.rbegin(), many.rend(), std::int64_t{0});
    layout.tiled.minor_to_major = many.data();
  }
  RowMajor(const RowMajor&) = delete;
  RowMajor& operator=(const RowMajor&) = delete;
  static constexpr auto kDescending = [] {
    std::array<std::int64_t, 16> axes{};
    for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(axes.size() - 1 - i);
    return axes;
  }();
  std::vector<std::int64_t> many;
  abi::Layout layout{};
};

// An owner of bytes that a plug-in uses in place. The library outlives it, as plug-ins are never unloaded.
struct Lent {
  const Library& library;
  std::shared_ptr<const void> owner;
};
void end_of_loan(abi::Failure* failure, void* lent) {
  const std::unique_ptr<Lent> ended(static_cast<Lent*>(lent));
  ended->library.drop(failure);
}
void end_of_view(void*, void* lent) { delete static_cast<Lent*>(lent); }

// Values are checked before they are passed to a plug-in, which may end the process on invalid ones.
void require_value(const std::string& device, std::string_view what, const void* data, std::size_t bytes) {
  if (data == nullptr && bytes != 0)
    throw Error(ErrorCode::InvalidArgument,
                concat_text(device, ": ", what, ": the pointer to a value of ", bytes, " bytes is null"));
}

// None if an extent is negative or the byte count overflows.
std::optional<std::size_t> bytes_of(std::span<const std::int64_t> dims, std::size_t element) {
  std::size_t n = element;
  bool fits = true;
  for (const std::int64_t d : dims) fits = fits && d >= 0 && !__builtin_mul_overflow(n, d, &n);
  return fits ? std::optional(n) : std::nullopt;
}

}  // namespace

TpuDevice::TpuDevice(std::shared_ptr<const Client> client, DeviceId id)
    : place_(std::make_shared<const OnDevice>(std::move(client), concat_text("device ", device_text(id)))), id_(id) {
  const auto devices = this->client()->devices();
  if (id.ordinal < 0 || static_cast<std::size_t>(id.ordinal) >= devices.size())
    throw Error(ErrorCode::DeviceUnavailable,
                concat_text("there is no ", text(), ": the plug-in ", library().path(), " has ", devices.size()));
  handle_ = devices[static_cast<std::size_t>(id.ordinal)];
  // A stream that finds all work done allocates a Work; this warms the pool, so that runs allocate nothing.
  (void)make_pooled<Work>(place_->works, place_, nullptr, std::array<Work::Dependency, 2>{});
}

void TpuDevice::require_alive() const {
  if (library().forked()) library().throw_forked(text());
  if (lost())
    throw Error(ErrorCode::DeviceLost, concat_text(text(), " was lost, and its values with it"),
                "make a new Session, which reopens the device");
}

DeviceMemory TpuDevice::memory() const {
  DeviceMemory out;
  for (std::size_t i = 0; i < out.in_use.size(); ++i) out.in_use[i] = place_->in_use[i];
  if (lost() || !library().has<abi::DeviceMemoryStats>()) return out;
  auto stats = abi::arguments<abi::DeviceMemoryStats>();
  stats.device = handle_;
  if (abi::Failure* failure = library().attempt(text(), stats))
    library().drop(failure);  // a CPU plug-in has no limit
  else if (stats.bytes_limit_is_set && stats.bytes_limit > 0)
    out.total = static_cast<std::size_t>(stats.bytes_limit);
  return out;
}

void TpuDevice::throw_failed(std::string_view what, abi::Failure* failure, std::size_t bytes, BufferUse use) const {
  Diagnostic d = library().diagnostic(text(), what, failure);
  if (d.code == ErrorCode::DeviceLost) lose();
  if (d.code != ErrorCode::OutOfMemory) throw Error(std::move(d));
  try {
    throw_no_memory(bytes, use, memory().total);
  } catch (const Error& e) {
    Diagnostic ours = e.diagnostic();
    ours.message = concat_text(ours.message, " (", d.message, ")");
    throw Error(std::move(ours));
  }
}

std::shared_ptr<Stream> TpuDevice::stream(std::uintptr_t native) {
  require_alive();
  if (native != 0)
    throw Error(ErrorCode::Unsupported, concat_text(text(), ": a PJRT plug-in does not accept a stream of the caller"),
                "make one with OpenDevice::stream()");
  auto made = std::make_shared<TpuStream>(self());
  std::lock_guard lock(mutex_);
  std::erase_if(streams_, [](const auto& s) { return s.expired(); });
  streams_.push_back(made);
  return made;
}

std::shared_ptr<Buffer> TpuDevice::put(const TensorView& value, const std::shared_ptr<const void>& owner, BufferUse use,
                                       Stream& stream) {
  (void)buffer_use_name(use);
  require_value(text(), "put", value.data, value.size_bytes);
  TpuStream& on = tpu_stream(*this, stream, "put");
  on.begin();
  const auto made = new_buffer(value.size_bytes, use);
  const ElementOf element = element_of(value.dtype);
  const auto bytes = static_cast<std::int64_t>(value.size_bytes);
  const std::span<const std::int64_t> dims = element.packed ? std::span(&bytes, 1) : value.dims;
  if (!element.packed && bytes_of(dims, size_bytes(value.dtype)) != value.size_bytes)
    throw Error(ErrorCode::InvalidArgument,
                concat_text(text(), ": put was given ", value.size_bytes, " bytes for a value ", dims_text(dims), " ",
                            dtype_name(value.dtype)),
                "pass the dims of the value");
  static constexpr std::byte kNothing[16]{};
  auto a = abi::arguments<abi::ClientBufferFromHostBuffer>();
  a.client = client()->handle();
  a.data = value.data ? value.data : kNothing;
  a.type = element.type;
  a.dims = dims.data();
  a.num_dims = dims.size();
  a.host_buffer_semantics = owner ? abi::HostBytes::InPlace : abi::HostBytes::ReadDuringCall;
  a.device = handle_;
  if (abi::Failure* failure = library().attempt(text(), a))
    throw_failed("PJRT_Client_BufferFromHostBuffer", failure, value.size_bytes, use);
  if (!a.buffer) {
    library().destroy(a.done_with_host_buffer);
    library().broke(text(), "PJRT_Client_BufferFromHostBuffer", "returned no buffer");
  }
  made->own(a.buffer, dims.size());
  if (owner) made->lend();
  hold_until(a.done_with_host_buffer, owner);
  auto ready = abi::arguments<abi::BufferReadyEvent>();
  ready.buffer = a.buffer;
  library().call(text(), ready);
  on.add(ready.event);
  return made;
}

void TpuDevice::hold_until(abi::Point* event, const std::shared_ptr<const void>& owner) const {
  struct Destroy {
    const Library& library;
    abi::Point* event;
    ~Destroy() { library.destroy(event); }
  } const destroy{library(), event};
  if (!owner || !event) return;
  auto lent = std::make_unique<Lent>(Lent{library(), owner});
  auto a = abi::arguments<abi::EventOnReady>();
  a.event = event;
  a.callback = end_of_loan;
  a.user_arg = lent.get();
  library().call(text(), a);
  (void)lent.release();
}

std::shared_ptr<Buffer> TpuDevice::adopt(std::uintptr_t native, const Shape& shape, std::shared_ptr<const void> owner,
                                         const Event& written) {
  if (!library().has<abi::ClientCreateViewOfDeviceBuffer>()) return nullptr;
  require_value(text(), "adopt", reinterpret_cast<const void*>(native), shape.size_bytes());
  require_alive();
  written.wait();
  const auto made = new_buffer(shape.size_bytes(), BufferUse::Values);
  const ElementOf element = element_of(shape.dtype());
  const std::vector<std::int64_t> dims =
      element.packed ? std::vector{static_cast<std::int64_t>(shape.size_bytes())} : shape.static_dims();
  auto lent = std::make_unique<Lent>(Lent{library(), std::move(owner)});
  const RowMajor order(dims.size());
  auto a = abi::arguments<abi::ClientCreateViewOfDeviceBuffer>();
  a.client = client()->handle();
  a.device_buffer_ptr = reinterpret_cast<void*>(native);
  a.dims = dims.data();
  a.num_dims = dims.size();
  a.element_type = element.type;
  a.layout = const_cast<abi::Layout*>(&order.layout);  // not written
  a.device = handle_;
  a.on_delete_callback = end_of_view;
  a.on_delete_callback_arg = lent.get();
  library().call(text(), a);
  if (!a.buffer) library().broke(text(), "PJRT_Client_CreateViewOfDeviceBuffer", "returned no buffer");
  (void)lent.release();
  made->own(a.buffer, dims.size());
  made->lend();
  return made;
}

void TpuDevice::get(Buffer& buffer, const MutableTensorView& to, Stream& stream) {
  const TpuBuffer& from = tpu_buffer(*this, &buffer, "get");
  if (to.size_bytes != buffer.bytes())
    throw Error(ErrorCode::ShapeMismatch,
                concat_text("cannot read a value of ", to.size_bytes, " bytes from a buffer of ", buffer.bytes(),
                            " bytes on ", text(), ", which transfers whole values only"));
  require_value(text(), "get", to.data, to.size_bytes);
  TpuStream& on = tpu_stream(*this, stream, "get");
  on.begin();
  if (to.size_bytes == 0) return;
  on.wait_for_fetches(to.data, to.size_bytes);
  on.add(from.fetch(to.data, to.size_bytes));
  on.note_fetch(to.data, to.size_bytes);
}

std::shared_ptr<TpuBuffer> TpuDevice::new_buffer(std::size_t bytes, BufferUse use) {
  return make_pooled<TpuBuffer>(place_->buffers, self(), bytes, use);
}

void TpuDevice::keep(std::shared_ptr<Work> work) {
  std::lock_guard lock(mutex_);
  std::erase_if(left_, [](const auto& w) { return w->ready(); });
  left_.push_back(std::move(work));
}

void TpuDevice::drain() {
  std::vector<Event> ends;
  std::vector<std::shared_ptr<TpuStream>> streams;  // which may be destroyed here and leave work behind
  {
    std::lock_guard lock(mutex_);
    for (const auto& s : streams_)
      if (auto stream = s.lock()) streams.push_back(std::move(stream));
    for (auto& w : left_) ends.emplace_back(std::move(w));
    left_.clear();
  }
  for (const auto& stream : streams) ends.push_back(stream->record());
  for (const Event& e : ends)
    while (!e.ready()) wait_quietly(e);
}

TpuBuffer::TpuBuffer(std::shared_ptr<TpuDevice> device, std::size_t bytes, BufferUse use)
    : Buffer(device->id(), bytes, nullptr), device_(std::move(device)), use_(use) {
  device_->account(use_, bytes, true);
}

TpuBuffer::~TpuBuffer() {
  device_->library().destroy(handle_);
  device_->account(use_, bytes(), false);
}

std::uintptr_t TpuBuffer::native() const {
  const Library& library = device_->library();
  if (!handle_ || !library.has<abi::BufferOpaquePointer>()) return 0;
  auto a = abi::arguments<abi::BufferOpaquePointer>();
  a.buffer = handle_;
  if (abi::Failure* failure = library.attempt(device_->text(), a)) return library.drop(failure), 0;
  return reinterpret_cast<std::uintptr_t>(a.device_memory_ptr);
}

bool TpuBuffer::taken() const {
  if (!handle_ || !device_->library().has<abi::BufferIsDeleted>()) return !handle_;
  auto a = abi::arguments<abi::BufferIsDeleted>();
  a.buffer = handle_;
  if (abi::Failure* failure = device_->library().attempt(device_->text(), a))
    return device_->library().drop(failure), true;
  return a.is_deleted;
}

abi::Point* TpuBuffer::fetch(void* to, std::size_t bytes) const {
  RowMajor order(rank_);
  auto a = abi::arguments<abi::BufferToHostBuffer>();
  a.src = handle_;
  a.host_layout = &order.layout;
  a.dst = to;
  a.dst_size = bytes;
  if (abi::Failure* failure = device_->library().attempt(device_->text(), a))
    device_->throw_failed("PJRT_Buffer_ToHostBuffer", failure, bytes, BufferUse::Readback);
  if (!a.event) device_->library().broke(device_->text(), "PJRT_Buffer_ToHostBuffer", "returned no event");
  return a.event;
}

void TpuBuffer::read(std::span<std::byte> to) const {
  if (to.empty()) return;
  if (to.size() != bytes())
    throw Error(ErrorCode::Unsupported,
                concat_text(device_->text(), ": a read asks for ", to.size(), " of ", bytes(),
                            " bytes of a buffer, but the device transfers whole values only"),
                "read the whole value");
  device_->require_alive();
  written().wait();
  Work(device_->place(), fetch(to.data(), to.size()), {}).wait();
}

TpuBuffer& tpu_buffer(const TpuDevice& device, Buffer* buffer, std::string_view what) {
  auto* const ours = dynamic_cast<TpuBuffer*>(buffer);
  static constexpr const char* way = "copy it there with rlx::to(tensor, device)";
  if (!ours || &ours->on() != &device)
    throw Error(ErrorCode::InvalidArgument,
                concat_text(device.text(), ": ", what, " was given ",
                            !buffer ? std::string("no buffer")
                            : ours && ours->device() == device.id()
                                ? concat_text("a buffer of ", ours->on().text(),
                                              ours->on().lost() ? ", made before the device was lost"
                                                                : ", opened with other options")
                                : concat_text("a buffer of device ", device_text(buffer->device()))),
                way);
  if (!ours->handle())
    throw Error(ErrorCode::InvalidArgument, concat_text(device.text(), ": ", what, " was given an empty buffer"), way);
  return *ours;
}

TpuStream& tpu_stream(const TpuDevice& device, Stream& stream, std::string_view what) {
  auto* const ours = dynamic_cast<TpuStream*>(&stream);
  if (!ours || &ours->on() != &device)
    throw Error(ErrorCode::InvalidArgument,
                concat_text(device.text(), ": ", what, " was given a stream of another device"),
                "make one with OpenDevice::stream of that device");
  return *ours;
}

}  // namespace rlx::tpu
