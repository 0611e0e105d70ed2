// The part of the C interface of wgpu-native 29 that this backend calls. It is declared here, so a build needs none of
// the library's headers. tests/unit/wgpu/abi_test.cpp compares layouts and values with the headers where these are
// installed. Names are the interface's, without the prefix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rlx::wgpu::abi {

using Flags = std::uint64_t;
using Bool = std::uint32_t;

using Instance = struct InstanceObject*;
using Adapter = struct AdapterObject*;
using Device = struct DeviceObject*;
using Queue = struct QueueObject*;
using Buffer = struct BufferObject*;
using ShaderModule = struct ShaderModuleObject*;
using BindGroupLayout = struct BindGroupLayoutObject*;
using PipelineLayout = struct PipelineLayoutObject*;
using ComputePipeline = struct ComputePipelineObject*;
using BindGroup = struct BindGroupObject*;
using CommandEncoder = struct CommandEncoderObject*;
using CommandBuffer = struct CommandBufferObject*;
using ComputePassEncoder = struct ComputePassEncoderObject*;
using QuerySet = struct QuerySetObject*;

/// As the length of a StringView: the text ends with a zero byte.
inline constexpr std::size_t kZeroEnded = ~std::size_t{0};
/// The only major version with these layouts.
inline constexpr std::uint32_t kMajorVersion = 29;

struct StringView {
  const char* data = nullptr;
  std::size_t length = 0;
};
inline StringView view(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view text(StringView s) {
  if (!s.data) return {};
  return s.length == kZeroEnded ? std::string_view(s.data) : std::string_view(s.data, s.length);
}

enum class SType : std::uint32_t { ShaderSourceWgsl = 2, InstanceExtras = 0x00030004 };
struct Chain {
  Chain* next = nullptr;
  SType type{};
};

// -- instance and adapters --

namespace backends {
inline constexpr Flags kAll = 0, kVulkan = 1, kGl = 2, kDx12 = 8;
}
struct NativeDisplayHandle {
  std::uint32_t type = 0;
  void* display = nullptr;
  int screen = 0;
};
struct InstanceExtras {
  Chain chain{nullptr, SType::InstanceExtras};
  Flags backends = backends::kAll;
  Flags flags = 0;
  std::uint32_t dx12_shader_compiler = 0;
  std::uint32_t gles3_minor_version = 0;
  std::uint32_t gl_fence_behaviour = 0;
  StringView dxc_path{};
  std::uint32_t dxc_max_shader_model = 0;
  std::uint32_t dx12_presentation_system = 0;
  const std::uint8_t* budget_for_device_creation = nullptr;
  const std::uint8_t* budget_for_device_loss = nullptr;
  NativeDisplayHandle display_handle{};
};
struct InstanceDescriptor {
  Chain* next = nullptr;
  std::size_t feature_count = 0;
  const std::uint32_t* features = nullptr;
  const void* limits = nullptr;
};

enum class BackendType : std::uint32_t {
  Undefined = 0,
  Null = 1,
  WebGpu = 2,
  D3d11 = 3,
  D3d12 = 4,
  Metal = 5,
  Vulkan = 6,
  OpenGl = 7,
  OpenGlEs = 8,
};
enum class AdapterType : std::uint32_t { DiscreteGpu = 1, IntegratedGpu = 2, Cpu = 3, Unknown = 4 };
struct AdapterInfo {
  Chain* next = nullptr;
  StringView vendor{}, architecture{}, device{}, description{};
  BackendType backend{};
  AdapterType type{};
  std::uint32_t vendor_id = 0, device_id = 0, subgroup_min_size = 0, subgroup_max_size = 0;
};
struct Limits {
  Chain* next = nullptr;
  std::uint32_t texture_dimension_1d = 0, texture_dimension_2d = 0, texture_dimension_3d = 0, texture_array_layers = 0;
  std::uint32_t bind_groups = 0, bind_groups_plus_vertex_buffers = 0, bindings_per_bind_group = 0;
  std::uint32_t dynamic_uniform_buffers_per_layout = 0, dynamic_storage_buffers_per_layout = 0;
  std::uint32_t sampled_textures_per_stage = 0, samplers_per_stage = 0, storage_buffers_per_stage = 0;
  std::uint32_t storage_textures_per_stage = 0, uniform_buffers_per_stage = 0;
  std::uint64_t uniform_buffer_binding_size = 0, storage_buffer_binding_size = 0;
  std::uint32_t uniform_buffer_offset_alignment = 0, storage_buffer_offset_alignment = 0, vertex_buffers = 0;
  std::uint64_t buffer_size = 0;
  std::uint32_t vertex_attributes = 0, vertex_buffer_array_stride = 0, inter_stage_shader_variables = 0;
  std::uint32_t color_attachments = 0, color_attachment_bytes_per_sample = 0;
  std::uint32_t workgroup_storage_size = 0, invocations_per_workgroup = 0;
  std::uint32_t workgroup_size_x = 0, workgroup_size_y = 0, workgroup_size_z = 0, workgroups_per_dimension = 0;
  std::uint32_t immediate_size = 0;
};
enum class Feature : std::uint32_t { TimestampQuery = 9 };
enum class Status : std::uint32_t { Success = 1, Error = 2 };

// -- callbacks --

struct Future {
  std::uint64_t id = 0;
};
enum class CallbackMode : std::uint32_t { AllowSpontaneous = 3 };
enum class ErrorType : std::uint32_t { NoError = 1, Validation = 2, OutOfMemory = 3, Internal = 4, Unknown = 5 };
enum class LostReason : std::uint32_t { Unknown = 1, Destroyed = 2, CallbackCancelled = 3, FailedCreation = 4 };
enum class RequestDeviceStatus : std::uint32_t { Success = 1, CallbackCancelled = 2, Error = 3 };
enum class MapStatus : std::uint32_t { Success = 1, CallbackCancelled = 2, Error = 3, Aborted = 4 };
enum class WorkDoneStatus : std::uint32_t { Success = 1, CallbackCancelled = 2, Error = 3 };

template <class F>
struct CallbackInfo {
  Chain* next = nullptr;
  CallbackMode mode = CallbackMode::AllowSpontaneous;
  F callback = nullptr;
  void* userdata1 = nullptr;
  void* userdata2 = nullptr;
};
using RequestDeviceCallback = void (*)(RequestDeviceStatus, Device, StringView message, void*, void*);
using DeviceLostCallback = void (*)(const Device*, LostReason, StringView message, void*, void*);
using ErrorCallback = void (*)(const Device*, ErrorType, StringView message, void*, void*);
using MapCallback = void (*)(MapStatus, StringView message, void*, void*);
using WorkDoneCallback = void (*)(WorkDoneStatus, StringView message, void*, void*);

struct ErrorCallbackInfo {  // the one callback struct without a mode
  Chain* next = nullptr;
  ErrorCallback callback = nullptr;
  void* userdata1 = nullptr;
  void* userdata2 = nullptr;
};
struct QueueDescriptor {
  Chain* next = nullptr;
  StringView label{};
};
struct DeviceDescriptor {
  Chain* next = nullptr;
  StringView label{};
  std::size_t feature_count = 0;
  const Feature* features = nullptr;
  const Limits* limits = nullptr;
  QueueDescriptor queue{};
  CallbackInfo<DeviceLostCallback> lost{};
  ErrorCallbackInfo error{};
};

// -- resources --

namespace usage {
inline constexpr Flags kMapRead = 1, kCopySource = 4, kCopyTarget = 8, kUniform = 0x40, kStorage = 0x80,
                       kQueryResolve = 0x200;
}
struct BufferDescriptor {
  Chain* next = nullptr;
  StringView label{};
  Flags usage = 0;
  std::uint64_t size = 0;
  Bool mapped = 0;
};
inline constexpr Flags kMapModeRead = 1;

struct ShaderSourceWgsl {
  Chain chain{nullptr, SType::ShaderSourceWgsl};
  StringView code{};
};
struct LabelDescriptor {  // of shader modules, encoders and command buffers
  Chain* next = nullptr;
  StringView label{};
};

enum class BufferBinding : std::uint32_t { NotUsed = 0, Undefined = 1, Uniform = 2, Storage = 3, ReadOnlyStorage = 4 };
struct BufferBindingLayout {
  Chain* next = nullptr;
  BufferBinding type = BufferBinding::NotUsed;
  Bool dynamic_offset = 0;
  std::uint64_t min_size = 0;
};
struct SamplerBindingLayout {
  Chain* next = nullptr;
  std::uint32_t type = 0;
};
struct TextureBindingLayout {
  Chain* next = nullptr;
  std::uint32_t sample_type = 0, dimension = 0;
  Bool multisampled = 0;
};
struct StorageTextureBindingLayout {
  Chain* next = nullptr;
  std::uint32_t access = 0, format = 0, dimension = 0;
};
inline constexpr Flags kStageCompute = 4;
struct BindGroupLayoutEntry {
  Chain* next = nullptr;
  std::uint32_t binding = 0;
  Flags visibility = kStageCompute;
  std::uint32_t array_size = 0;
  BufferBindingLayout buffer{};
  SamplerBindingLayout sampler{};
  TextureBindingLayout texture{};
  StorageTextureBindingLayout storage_texture{};
};
struct BindGroupLayoutDescriptor {
  Chain* next = nullptr;
  StringView label{};
  std::size_t count = 0;
  const BindGroupLayoutEntry* entries = nullptr;
};
struct PipelineLayoutDescriptor {
  Chain* next = nullptr;
  StringView label{};
  std::size_t count = 0;
  const BindGroupLayout* layouts = nullptr;
  std::uint32_t immediate_size = 0;
};
struct ComputeState {
  Chain* next = nullptr;
  ShaderModule module = nullptr;
  StringView entry_point{};
  std::size_t constant_count = 0;
  const void* constants = nullptr;
};
struct ComputePipelineDescriptor {
  Chain* next = nullptr;
  StringView label{};
  PipelineLayout layout = nullptr;
  ComputeState compute{};
};
struct BindGroupEntry {
  Chain* next = nullptr;
  std::uint32_t binding = 0;
  Buffer buffer = nullptr;
  std::uint64_t offset = 0, size = 0;
  void* sampler = nullptr;
  void* texture_view = nullptr;
};
struct BindGroupDescriptor {
  Chain* next = nullptr;
  StringView label{};
  BindGroupLayout layout = nullptr;
  std::size_t count = 0;
  const BindGroupEntry* entries = nullptr;
};

// -- commands --

enum class QueryType : std::uint32_t { Timestamp = 2 };
struct QuerySetDescriptor {
  Chain* next = nullptr;
  StringView label{};
  QueryType type = QueryType::Timestamp;
  std::uint32_t count = 0;
};
struct PassTimestampWrites {
  Chain* next = nullptr;
  QuerySet set = nullptr;
  std::uint32_t begin_index = 0, end_index = 0;
};
struct ComputePassDescriptor {
  Chain* next = nullptr;
  StringView label{};
  const PassTimestampWrites* timestamps = nullptr;
};

/// X(name, type) for every function: X(GetVersion, std::uint32_t()). `DevicePoll` returns one byte, unlike in the
/// header.
#define RLX_WGPU_FUNCTIONS(X)                                                                                          \
  X(GetVersion, std::uint32_t())                                                                                       \
  X(CreateInstance, Instance(const InstanceDescriptor*))                                                               \
  X(InstanceEnumerateAdapters, std::size_t(Instance, const void*, Adapter*))                                           \
  X(AdapterGetInfo, Status(Adapter, AdapterInfo*))                                                                     \
  X(AdapterInfoFreeMembers, void(AdapterInfo))                                                                         \
  X(AdapterGetLimits, Status(Adapter, Limits*))                                                                        \
  X(AdapterHasFeature, Bool(Adapter, Feature))                                                                         \
  X(AdapterRequestDevice, Future(Adapter, const DeviceDescriptor*, CallbackInfo<RequestDeviceCallback>))               \
  X(AdapterRelease, void(Adapter))                                                                                     \
  X(DeviceGetQueue, Queue(Device))                                                                                     \
  X(DeviceGetLimits, Status(Device, Limits*))                                                                          \
  X(DeviceCreateBuffer, Buffer(Device, const BufferDescriptor*))                                                       \
  X(DeviceCreateShaderModule, ShaderModule(Device, const LabelDescriptor*))                                            \
  X(DeviceCreateBindGroupLayout, BindGroupLayout(Device, const BindGroupLayoutDescriptor*))                            \
  X(DeviceCreatePipelineLayout, PipelineLayout(Device, const PipelineLayoutDescriptor*))                               \
  X(DeviceCreateComputePipeline, ComputePipeline(Device, const ComputePipelineDescriptor*))                            \
  X(DeviceCreateBindGroup, BindGroup(Device, const BindGroupDescriptor*))                                              \
  X(DeviceCreateCommandEncoder, CommandEncoder(Device, const LabelDescriptor*))                                        \
  X(DeviceCreateQuerySet, QuerySet(Device, const QuerySetDescriptor*))                                                 \
  X(DevicePoll, bool(Device, Bool wait, const std::uint64_t* submission))                                              \
  X(DeviceDestroy, void(Device))                                                                                       \
  X(DeviceRelease, void(Device))                                                                                       \
  X(QueueWriteBuffer, void(Queue, Buffer, std::uint64_t offset, const void*, std::size_t))                             \
  X(QueueSubmitForIndex, std::uint64_t(Queue, std::size_t, const CommandBuffer*))                                      \
  X(QueueOnSubmittedWorkDone, Future(Queue, CallbackInfo<WorkDoneCallback>))                                           \
  X(QueueGetTimestampPeriod, float(Queue))                                                                             \
  X(QueueRelease, void(Queue))                                                                                         \
  X(BufferMapAsync, Future(Buffer, Flags mode, std::size_t offset, std::size_t size, CallbackInfo<MapCallback>))       \
  X(BufferGetConstMappedRange, const void*(Buffer, std::size_t offset, std::size_t size))                              \
  X(BufferUnmap, void(Buffer))                                                                                         \
  X(BufferRelease, void(Buffer))                                                                                       \
  X(ShaderModuleRelease, void(ShaderModule))                                                                           \
  X(BindGroupLayoutRelease, void(BindGroupLayout))                                                                     \
  X(PipelineLayoutRelease, void(PipelineLayout))                                                                       \
  X(ComputePipelineRelease, void(ComputePipeline))                                                                     \
  X(BindGroupRelease, void(BindGroup))                                                                                 \
  X(QuerySetRelease, void(QuerySet))                                                                                   \
  X(CommandEncoderBeginComputePass, ComputePassEncoder(CommandEncoder, const ComputePassDescriptor*))                  \
  X(CommandEncoderCopyBufferToBuffer,                                                                                  \
    void(CommandEncoder, Buffer from, std::uint64_t offset, Buffer to, std::uint64_t to_offset, std::uint64_t bytes))  \
  X(CommandEncoderResolveQuerySet,                                                                                     \
    void(CommandEncoder, QuerySet, std::uint32_t first, std::uint32_t count, Buffer to, std::uint64_t offset))         \
  X(CommandEncoderFinish, CommandBuffer(CommandEncoder, const LabelDescriptor*))                                       \
  X(CommandEncoderRelease, void(CommandEncoder))                                                                       \
  X(CommandBufferRelease, void(CommandBuffer))                                                                         \
  X(ComputePassEncoderSetPipeline, void(ComputePassEncoder, ComputePipeline))                                          \
  X(ComputePassEncoderSetBindGroup,                                                                                    \
    void(ComputePassEncoder, std::uint32_t group, BindGroup, std::size_t, const std::uint32_t* offsets))               \
  X(ComputePassEncoderDispatchWorkgroups, void(ComputePassEncoder, std::uint32_t x, std::uint32_t y, std::uint32_t z)) \
  X(ComputePassEncoderEnd, void(ComputePassEncoder))                                                                   \
  X(ComputePassEncoderRelease, void(ComputePassEncoder))

/// The functions of an opened library, by name: api.GetVersion().
struct Api {
#define RLX_WGPU_MEMBER(name, ...)    \
  using name##Function = __VA_ARGS__; \
  name##Function* name = nullptr;
  RLX_WGPU_FUNCTIONS(RLX_WGPU_MEMBER)
#undef RLX_WGPU_MEMBER
};

}  // namespace rlx::wgpu::abi
