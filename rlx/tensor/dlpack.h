// The structs of DLPack 1.x, which exchange tensors between libraries, in their public layout. A
// `DLManagedTensorVersioned*` of another header may be cast to `dlpack::Managed*`.
#pragma once

#include <cstdint>

namespace rlx::dlpack {

inline constexpr std::uint32_t kMajor = 1, kMinor = 1;

/// DLDeviceType.
enum class DeviceType : std::int32_t {
  Cpu = 1,
  Cuda = 2,
  CudaHost = 3,
  OpenCl = 4,
  Vulkan = 7,
  Metal = 8,
  Vpi = 9,
  Rocm = 10,
  RocmHost = 11,
  ExtDev = 12,
  CudaManaged = 13,
  OneApi = 14,
  WebGpu = 15,
  Hexagon = 16,
  Maia = 17,
};

/// DLDataTypeCode.
enum class Code : std::uint8_t {
  Int = 0,
  UInt = 1,
  Float = 2,
  OpaqueHandle = 3,
  Bfloat = 4,
  Complex = 5,
  Bool = 6,
  Float8E4M3Fn = 10,
  Float8E5M2 = 12,
  Float4E2M1Fn = 17,
};

/// DLPackVersion.
struct Version {
  std::uint32_t major, minor;
};
/// DLDevice.
struct DeviceRef {
  DeviceType type;
  std::int32_t id;
};
/// DLDataType.
struct ElementType {
  Code code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
/// DLTensor.
struct Array {
  void* data;
  DeviceRef device;
  std::int32_t ndim;
  ElementType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: dense row-major
  std::uint64_t byte_offset;
};

inline constexpr std::uint64_t kReadOnly = 1, kCopied = 2, kSubBytePadded = 4;

/// DLManagedTensorVersioned. Its owner calls the deleter once, or passes the ownership on.
struct Managed {
  Version version;
  void* manager_ctx;
  void (*deleter)(Managed* self);
  std::uint64_t flags;
  Array tensor;
};

static_assert(sizeof(void*) != 8 || (sizeof(Array) == 48 && sizeof(Managed) == 80), "the layout of DLPack 1.x");

}  // namespace rlx::dlpack
