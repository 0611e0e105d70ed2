// Conversion tables between DLPack's names and ours, and the checks of imported tensors.
#include "rlx/runtime/dlpack.h"

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rlx/device/registry.h"
#include "rlx/error.h"

namespace rlx {
namespace {

using dlpack::Code;
using dlpack::DeviceType;

struct TypePair {
  DType ours;
  Code code;
  std::uint8_t bits;
};
constexpr TypePair kTypes[] = {
    {DType::Bool, Code::Bool, 8},         {DType::I8, Code::Int, 8},
    {DType::I16, Code::Int, 16},          {DType::I32, Code::Int, 32},
    {DType::I64, Code::Int, 64},          {DType::U8, Code::UInt, 8},
    {DType::U16, Code::UInt, 16},         {DType::U32, Code::UInt, 32},
    {DType::U64, Code::UInt, 64},         {DType::BF16, Code::Bfloat, 16},
    {DType::F16, Code::Float, 16},        {DType::F32, Code::Float, 32},
    {DType::F64, Code::Float, 64},        {DType::C64, Code::Complex, 64},
    {DType::C128, Code::Complex, 128},    {DType::F8E4M3, Code::Float8E4M3Fn, 8},
    {DType::F8E5M2, Code::Float8E5M2, 8}, {DType::I4, Code::Int, 4},
    {DType::U4, Code::UInt, 4},           {DType::F4E2M1, Code::Float4E2M1Fn, 4},
};
static_assert(sizeof kTypes / sizeof kTypes[0] == kNumDTypes);

struct DevicePair {
  Device ours;
  DeviceType theirs;
};
constexpr DevicePair kDevices[] = {
    {Device::Cuda, DeviceType::Cuda},     {Device::Rocm, DeviceType::Rocm},     {Device::Metal, DeviceType::Metal},
    {Device::Vulkan, DeviceType::Vulkan}, {Device::WebGpu, DeviceType::WebGpu},
};

bool on_host(DeviceType t) {
  return t == DeviceType::Cpu || t == DeviceType::CudaHost || t == DeviceType::RocmHost || t == DeviceType::CudaManaged;
}

[[noreturn]] void refuse(ErrorCode code, std::string why, std::string hint) {
  throw Error(code, concat_text("adopt: a DLPack tensor ", why), std::move(hint));
}

DType dtype_of(const dlpack::Managed& m) {
  const dlpack::ElementType& t = m.tensor.dtype;
  if (t.lanes != 1)
    refuse(ErrorCode::DTypeMismatch, concat_text("has elements with ", t.lanes, " lanes"),
           "make the lanes a dimension");
  for (const TypePair& p : kTypes)
    if (p.code == t.code && p.bits == t.bits) {
      if (p.bits < 8 && (m.flags & dlpack::kSubBytePadded) != 0)
        refuse(ErrorCode::Unsupported, concat_text("pads each ", dtype_name(p.ours), " to a byte"),
               "pack two elements per byte, or pass i8 values");
      return p.ours;
    }
  refuse(ErrorCode::DTypeMismatch,
         concat_text("has elements of type code ", static_cast<int>(t.code), " with ", static_cast<int>(t.bits),
                     " bits, which no rlx dtype matches"),
         "cast it in the library that made it");
}

Shape shape_of(const dlpack::Managed& m) {
  const dlpack::Array& t = m.tensor;
  if (t.ndim < 0 || (t.ndim > 0 && !t.shape))
    refuse(ErrorCode::InvalidArgument, concat_text("of ", t.ndim, " dimensions has no shape"), {});
  Dims dims;
  for (std::int32_t i = 0; i < t.ndim; ++i) {
    if (t.shape[i] < 0)
      refuse(ErrorCode::InvalidArgument, concat_text("has ", t.shape[i], " elements along axis ", i), {});
    dims.push_back(Dim(t.shape[i]));
  }
  const Shape shape(std::move(dims), dtype_of(m));
  (void)shape.size_bytes();  // throws when they cannot be counted
  return shape;
}

bool dense(const dlpack::Array& t) {
  if (!t.strides) return true;
  std::int64_t step = 1;
  for (std::int32_t i = t.ndim; i-- > 0;) {
    if (t.shape[i] == 0) return true;
    if (t.shape[i] != 1 && t.strides[i] != step) return false;
    step *= t.shape[i];
  }
  return true;
}

// Copies elements with any strides to row-major order.
Tensor gathered(const dlpack::Array& t, const Shape& shape, const std::byte* first) {
  const std::size_t element = size_bytes(shape.dtype());
  if (element == 0)
    refuse(ErrorCode::Unsupported, concat_text("of ", dtype_name(shape.dtype()), " is not dense"),
           "make it contiguous in the library that made it");
  Tensor out = Tensor::uninitialized(shape);
  std::byte* to = out.mutable_data();
  std::vector<std::int64_t> at(static_cast<std::size_t>(t.ndim), 0);
  for (std::int64_t n = shape.num_elements(); n-- > 0; to += element) {
    std::int64_t offset = 0;
    for (std::size_t a = 0; a < at.size(); ++a) offset += at[a] * t.strides[a];
    std::memcpy(to, first + offset * static_cast<std::int64_t>(element), element);
    for (std::size_t a = at.size(); a-- > 0;) {
      if (++at[a] < t.shape[a]) break;
      at[a] = 0;
    }
  }
  return out;
}

// Calls the deleter when the last owner is gone.
std::shared_ptr<const void> owner_of(dlpack::Managed* managed) {
  return {managed, [](dlpack::Managed* m) {
            if (m->deleter) m->deleter(m);
          }};
}

Tensor adopt_on_host(dlpack::Managed* managed, const Shape& shape) {
  const dlpack::Array& t = managed->tensor;
  if (t.byte_offset > ~std::uint64_t{0} - reinterpret_cast<std::uintptr_t>(t.data))
    refuse(ErrorCode::InvalidArgument, concat_text("has the byte offset ", t.byte_offset, ", beyond all memory"), {});
  const auto* const first = static_cast<const std::byte*>(t.data) + t.byte_offset;
  const bool aligned = reinterpret_cast<std::uintptr_t>(first) % alignment_of(shape.dtype()) == 0;
  if (shape.size_bytes() != 0 && dense(t) && aligned) {
    const std::shared_ptr<const void> owner = owner_of(managed);
    return Tensor::borrowed(first, shape, owner);
  }
  Tensor copy = shape.size_bytes() == 0 ? Tensor::zeros(shape)
                : dense(t)              ? Tensor::copy_of(first, shape)
                                        : gathered(t, shape, first);
  (void)owner_of(managed);  // its bytes are no longer needed
  return copy;
}

Tensor adopt_on_device(dlpack::Managed* managed, const Shape& shape) {
  const dlpack::Array& t = managed->tensor;
  const DevicePair* pair = nullptr;
  for (const DevicePair& p : kDevices)
    if (p.theirs == t.device.type) pair = &p;
  if (!pair)
    refuse(ErrorCode::Unsupported,
           concat_text("lies on a device of type ", static_cast<int>(t.device.type), ", which rlx does not know"),
           "copy it to the host first");
  const DeviceId id{pair->ours, t.device.id};
  if (!dense(t))
    refuse(ErrorCode::Unsupported, concat_text("on ", device_text(id), " is not dense"),
           "make it contiguous in the library that made it");
  const std::shared_ptr<OpenDevice> device = open_device(require_backend(id.kind), id);
  // The owner receives `managed` only once the buffer exists. After an error the caller still owns it.
  struct Owner {
    dlpack::Managed* managed = nullptr;
    ~Owner() {
      if (managed && managed->deleter) managed->deleter(managed);
    }
  };
  const auto owner = std::make_shared<Owner>();
  std::shared_ptr<Buffer> buffer =
      device->adopt(reinterpret_cast<std::uintptr_t>(t.data) + t.byte_offset, shape, owner, Event());
  if (!buffer)
    refuse(ErrorCode::Unsupported,
           concat_text("on ", device_text(id),
                       " cannot be shared: the device does not adopt memory of other libraries, or not this kind"),
           "copy it to the host first");
  Tensor out = Tensor::on_device(std::move(buffer), shape);
  owner->managed = managed;
  return out;
}

}  // namespace

Tensor adopt(dlpack::Managed* managed) {
  if (!managed) throw Error(ErrorCode::InvalidArgument, "adopt: no DLPack tensor was given (a null pointer)");
  if (managed->version.major != dlpack::kMajor)
    refuse(ErrorCode::Unsupported,
           concat_text("has version ", managed->version.major, ".", managed->version.minor, ", but this rlx reads ",
                       dlpack::kMajor, ".x"),
           "use a library that writes DLPack 1");
  const Shape shape = shape_of(*managed);
  if (!managed->tensor.data && shape.size_bytes() != 0)
    refuse(ErrorCode::InvalidArgument, concat_text("of ", shape, " has no data"), {});
  return on_host(managed->tensor.device.type) ? adopt_on_host(managed, shape) : adopt_on_device(managed, shape);
}

dlpack::Managed* to_dlpack(const Tensor& value) {
  if (value.empty())
    throw Error(ErrorCode::InvalidArgument, "to_dlpack: an empty tensor was given",
                "the tensor was never given a value, or was moved from");
  // One allocation: the struct, the tensor that keeps the bytes, its dims and strides.
  struct Export {
    dlpack::Managed managed{};
    Tensor tensor;
    std::vector<std::int64_t> dims, strides;
  };
  auto out = std::make_unique<Export>();
  out->tensor = value;
  out->dims = value.dims();
  out->strides.assign(out->dims.size(), 1);
  for (std::size_t i = out->dims.size(); i-- > 1;) out->strides[i - 1] = out->strides[i] * out->dims[i];
  dlpack::Array& t = out->managed.tensor;
  if (const std::shared_ptr<Buffer>& buffer = value.buffer()) {
    buffer->written().wait();
    const DevicePair* pair = nullptr;
    for (const DevicePair& p : kDevices)
      if (p.ours == value.device().kind) pair = &p;
    if (!pair || buffer->native() == 0)
      throw Error(
          ErrorCode::Unsupported,
          concat_text("to_dlpack: a tensor on ", device_text(value.device()),
                      pair ? ", whose driver has no handle for its memory" : ", a device without a DLPack type"),
          "copy it to the host first: value.to_host()");
    t.device = {pair->theirs, value.device().ordinal};
    t.data = reinterpret_cast<void*>(buffer->native());
  } else {
    t.device = {DeviceType::Cpu, 0};
    t.data = const_cast<std::byte*>(value.data());  // NOLINT(const-cast): the flag says that it is read only
  }
  t.ndim = static_cast<std::int32_t>(out->dims.size());
  for (const TypePair& p : kTypes)
    if (p.ours == value.dtype()) t.dtype = {p.code, p.bits, 1};
  t.shape = out->dims.data();
  t.strides = out->strides.data();
  out->managed.version = {dlpack::kMajor, dlpack::kMinor};
  out->managed.flags = dlpack::kReadOnly;
  out->managed.manager_ctx = out.get();
  out->managed.deleter = [](dlpack::Managed* self) { delete static_cast<Export*>(self->manager_ctx); };
  return &out.release()->managed;
}

}  // namespace rlx
