// Our declarations of wgpu-native against its headers, if this build has them (RLX_WGPU_DIR).
#include <doctest/doctest.h>

#include "rlx/backends/wgpu/abi.h"

#ifdef RLX_WGPU_HEADERS
#include <webgpu.h>
#include <wgpu.h>

#include <type_traits>

namespace rlx::wgpu::abi {

// The sizes and offsets of the members that this backend writes or reads.
#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs))
#define SAME_PLACE(ours, a, theirs, b)                     \
  static_assert(offsetof(ours, a) == offsetof(theirs, b)); \
  static_assert(sizeof(decltype(ours::a)) == sizeof(decltype(theirs::b)))
#define SAME_VALUE(ours, theirs) static_assert(static_cast<std::uint64_t>(ours) == static_cast<std::uint64_t>(theirs))

SAME_SIZE(StringView, WGPUStringView);
SAME_PLACE(StringView, data, WGPUStringView, data);
SAME_PLACE(StringView, length, WGPUStringView, length);
SAME_SIZE(Chain, WGPUChainedStruct);
SAME_PLACE(Chain, next, WGPUChainedStruct, next);
SAME_PLACE(Chain, type, WGPUChainedStruct, sType);

SAME_SIZE(InstanceDescriptor, WGPUInstanceDescriptor);
SAME_SIZE(InstanceExtras, WGPUInstanceExtras);
SAME_PLACE(InstanceExtras, backends, WGPUInstanceExtras, backends);
SAME_PLACE(InstanceExtras, flags, WGPUInstanceExtras, flags);
SAME_PLACE(InstanceExtras, gl_fence_behaviour, WGPUInstanceExtras, glFenceBehaviour);
SAME_PLACE(InstanceExtras, dxc_path, WGPUInstanceExtras, dxcPath);
SAME_PLACE(InstanceExtras, budget_for_device_creation, WGPUInstanceExtras, budgetForDeviceCreation);
SAME_PLACE(InstanceExtras, display_handle, WGPUInstanceExtras, displayHandle);

SAME_SIZE(AdapterInfo, WGPUAdapterInfo);
SAME_PLACE(AdapterInfo, device, WGPUAdapterInfo, device);
SAME_PLACE(AdapterInfo, description, WGPUAdapterInfo, description);
SAME_PLACE(AdapterInfo, backend, WGPUAdapterInfo, backendType);
SAME_PLACE(AdapterInfo, type, WGPUAdapterInfo, adapterType);
SAME_SIZE(Limits, WGPULimits);
SAME_PLACE(Limits, bind_groups, WGPULimits, maxBindGroups);
SAME_PLACE(Limits, storage_buffers_per_stage, WGPULimits, maxStorageBuffersPerShaderStage);
SAME_PLACE(Limits, uniform_buffer_binding_size, WGPULimits, maxUniformBufferBindingSize);
SAME_PLACE(Limits, storage_buffer_binding_size, WGPULimits, maxStorageBufferBindingSize);
SAME_PLACE(Limits, uniform_buffer_offset_alignment, WGPULimits, minUniformBufferOffsetAlignment);
SAME_PLACE(Limits, storage_buffer_offset_alignment, WGPULimits, minStorageBufferOffsetAlignment);
SAME_PLACE(Limits, buffer_size, WGPULimits, maxBufferSize);
SAME_PLACE(Limits, workgroup_storage_size, WGPULimits, maxComputeWorkgroupStorageSize);
SAME_PLACE(Limits, workgroup_size_z, WGPULimits, maxComputeWorkgroupSizeZ);
SAME_PLACE(Limits, workgroups_per_dimension, WGPULimits, maxComputeWorkgroupsPerDimension);
SAME_PLACE(Limits, immediate_size, WGPULimits, maxImmediateSize);

SAME_SIZE(Future, WGPUFuture);
SAME_SIZE(CallbackInfo<MapCallback>, WGPUBufferMapCallbackInfo);
SAME_PLACE(CallbackInfo<MapCallback>, mode, WGPUBufferMapCallbackInfo, mode);
SAME_PLACE(CallbackInfo<MapCallback>, callback, WGPUBufferMapCallbackInfo, callback);
SAME_PLACE(CallbackInfo<MapCallback>, userdata1, WGPUBufferMapCallbackInfo, userdata1);
SAME_SIZE(CallbackInfo<WorkDoneCallback>, WGPUQueueWorkDoneCallbackInfo);
SAME_SIZE(CallbackInfo<DeviceLostCallback>, WGPUDeviceLostCallbackInfo);
SAME_SIZE(CallbackInfo<RequestDeviceCallback>, WGPURequestDeviceCallbackInfo);
SAME_SIZE(ErrorCallbackInfo, WGPUUncapturedErrorCallbackInfo);
SAME_PLACE(ErrorCallbackInfo, callback, WGPUUncapturedErrorCallbackInfo, callback);
SAME_SIZE(DeviceDescriptor, WGPUDeviceDescriptor);
SAME_PLACE(DeviceDescriptor, feature_count, WGPUDeviceDescriptor, requiredFeatureCount);
SAME_PLACE(DeviceDescriptor, features, WGPUDeviceDescriptor, requiredFeatures);
SAME_PLACE(DeviceDescriptor, limits, WGPUDeviceDescriptor, requiredLimits);
SAME_PLACE(DeviceDescriptor, lost, WGPUDeviceDescriptor, deviceLostCallbackInfo);
SAME_PLACE(DeviceDescriptor, error, WGPUDeviceDescriptor, uncapturedErrorCallbackInfo);

SAME_SIZE(BufferDescriptor, WGPUBufferDescriptor);
SAME_PLACE(BufferDescriptor, usage, WGPUBufferDescriptor, usage);
SAME_PLACE(BufferDescriptor, size, WGPUBufferDescriptor, size);
SAME_SIZE(LabelDescriptor, WGPUShaderModuleDescriptor);
SAME_SIZE(LabelDescriptor, WGPUCommandEncoderDescriptor);
SAME_SIZE(LabelDescriptor, WGPUCommandBufferDescriptor);
SAME_SIZE(ShaderSourceWgsl, WGPUShaderSourceWGSL);
SAME_PLACE(ShaderSourceWgsl, code, WGPUShaderSourceWGSL, code);
SAME_SIZE(BufferBindingLayout, WGPUBufferBindingLayout);
SAME_PLACE(BufferBindingLayout, dynamic_offset, WGPUBufferBindingLayout, hasDynamicOffset);
SAME_PLACE(BufferBindingLayout, min_size, WGPUBufferBindingLayout, minBindingSize);
SAME_SIZE(BindGroupLayoutEntry, WGPUBindGroupLayoutEntry);
SAME_PLACE(BindGroupLayoutEntry, binding, WGPUBindGroupLayoutEntry, binding);
SAME_PLACE(BindGroupLayoutEntry, visibility, WGPUBindGroupLayoutEntry, visibility);
SAME_PLACE(BindGroupLayoutEntry, array_size, WGPUBindGroupLayoutEntry, bindingArraySize);
SAME_PLACE(BindGroupLayoutEntry, buffer, WGPUBindGroupLayoutEntry, buffer);
SAME_PLACE(BindGroupLayoutEntry, sampler, WGPUBindGroupLayoutEntry, sampler);
SAME_PLACE(BindGroupLayoutEntry, texture, WGPUBindGroupLayoutEntry, texture);
SAME_PLACE(BindGroupLayoutEntry, storage_texture, WGPUBindGroupLayoutEntry, storageTexture);
SAME_SIZE(BindGroupLayoutDescriptor, WGPUBindGroupLayoutDescriptor);
SAME_PLACE(BindGroupLayoutDescriptor, entries, WGPUBindGroupLayoutDescriptor, entries);
SAME_SIZE(PipelineLayoutDescriptor, WGPUPipelineLayoutDescriptor);
SAME_PLACE(PipelineLayoutDescriptor, layouts, WGPUPipelineLayoutDescriptor, bindGroupLayouts);
SAME_PLACE(PipelineLayoutDescriptor, immediate_size, WGPUPipelineLayoutDescriptor, immediateSize);
SAME_SIZE(ComputePipelineDescriptor, WGPUComputePipelineDescriptor);
SAME_PLACE(ComputePipelineDescriptor, layout, WGPUComputePipelineDescriptor, layout);
SAME_PLACE(ComputePipelineDescriptor, compute, WGPUComputePipelineDescriptor, compute);
SAME_SIZE(ComputeState, WGPUComputeState);
SAME_PLACE(ComputeState, module, WGPUComputeState, module);
SAME_PLACE(ComputeState, entry_point, WGPUComputeState, entryPoint);
SAME_PLACE(ComputeState, constants, WGPUComputeState, constants);
SAME_SIZE(BindGroupEntry, WGPUBindGroupEntry);
SAME_PLACE(BindGroupEntry, binding, WGPUBindGroupEntry, binding);
SAME_PLACE(BindGroupEntry, buffer, WGPUBindGroupEntry, buffer);
SAME_PLACE(BindGroupEntry, offset, WGPUBindGroupEntry, offset);
SAME_PLACE(BindGroupEntry, size, WGPUBindGroupEntry, size);
SAME_SIZE(BindGroupDescriptor, WGPUBindGroupDescriptor);
SAME_PLACE(BindGroupDescriptor, layout, WGPUBindGroupDescriptor, layout);
SAME_PLACE(BindGroupDescriptor, entries, WGPUBindGroupDescriptor, entries);
SAME_SIZE(QuerySetDescriptor, WGPUQuerySetDescriptor);
SAME_PLACE(QuerySetDescriptor, type, WGPUQuerySetDescriptor, type);
SAME_PLACE(QuerySetDescriptor, count, WGPUQuerySetDescriptor, count);
SAME_SIZE(PassTimestampWrites, WGPUPassTimestampWrites);
SAME_PLACE(PassTimestampWrites, set, WGPUPassTimestampWrites, querySet);
SAME_PLACE(PassTimestampWrites, end_index, WGPUPassTimestampWrites, endOfPassWriteIndex);
SAME_SIZE(ComputePassDescriptor, WGPUComputePassDescriptor);
SAME_PLACE(ComputePassDescriptor, timestamps, WGPUComputePassDescriptor, timestampWrites);

SAME_VALUE(kZeroEnded, WGPU_STRLEN);
SAME_VALUE(SType::ShaderSourceWgsl, WGPUSType_ShaderSourceWGSL);
SAME_VALUE(SType::InstanceExtras, WGPUSType_InstanceExtras);
SAME_VALUE(backends::kAll, 0);
SAME_VALUE(BackendType::D3d12, WGPUBackendType_D3D12);
SAME_VALUE(BackendType::Metal, WGPUBackendType_Metal);
SAME_VALUE(BackendType::Vulkan, WGPUBackendType_Vulkan);
SAME_VALUE(BackendType::OpenGl, WGPUBackendType_OpenGL);
SAME_VALUE(BackendType::OpenGlEs, WGPUBackendType_OpenGLES);
SAME_VALUE(AdapterType::DiscreteGpu, WGPUAdapterType_DiscreteGPU);
SAME_VALUE(AdapterType::IntegratedGpu, WGPUAdapterType_IntegratedGPU);
SAME_VALUE(AdapterType::Cpu, WGPUAdapterType_CPU);
SAME_VALUE(Feature::TimestampQuery, WGPUFeatureName_TimestampQuery);
SAME_VALUE(Status::Success, WGPUStatus_Success);
SAME_VALUE(CallbackMode::AllowSpontaneous, WGPUCallbackMode_AllowSpontaneous);
SAME_VALUE(ErrorType::Validation, WGPUErrorType_Validation);
SAME_VALUE(ErrorType::OutOfMemory, WGPUErrorType_OutOfMemory);
SAME_VALUE(ErrorType::Internal, WGPUErrorType_Internal);
SAME_VALUE(LostReason::Destroyed, WGPUDeviceLostReason_Destroyed);
SAME_VALUE(RequestDeviceStatus::Success, WGPURequestDeviceStatus_Success);
SAME_VALUE(MapStatus::Success, WGPUMapAsyncStatus_Success);
SAME_VALUE(WorkDoneStatus::Success, WGPUQueueWorkDoneStatus_Success);
SAME_VALUE(BufferBinding::NotUsed, WGPUBufferBindingType_BindingNotUsed);
SAME_VALUE(BufferBinding::Uniform, WGPUBufferBindingType_Uniform);
SAME_VALUE(BufferBinding::Storage, WGPUBufferBindingType_Storage);
SAME_VALUE(QueryType::Timestamp, WGPUQueryType_Timestamp);

// Flag constants are not constant expressions in the header.
TEST_CASE("wgpu: our declarations are those of the headers") {
  CHECK(backends::kVulkan == WGPUInstanceBackend_Vulkan);
  CHECK(backends::kGl == WGPUInstanceBackend_GL);
  CHECK(backends::kDx12 == WGPUInstanceBackend_DX12);
  CHECK(usage::kMapRead == WGPUBufferUsage_MapRead);
  CHECK(usage::kCopySource == WGPUBufferUsage_CopySrc);
  CHECK(usage::kCopyTarget == WGPUBufferUsage_CopyDst);
  CHECK(usage::kUniform == WGPUBufferUsage_Uniform);
  CHECK(usage::kStorage == WGPUBufferUsage_Storage);
  CHECK(usage::kQueryResolve == WGPUBufferUsage_QueryResolve);
  CHECK(kMapModeRead == WGPUMapMode_Read);
  CHECK(kStageCompute == WGPUShaderStage_Compute);
}

// Equal numbers of parameters with equal sizes. Pointers and handles are interchangeable in a call.
template <class A, class B>
constexpr bool same_parameter = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
                                std::is_floating_point_v<A> == std::is_floating_point_v<B>;
template <class Ours, class Theirs>
constexpr bool same_call = false;
template <class R, class... A, class S, class... B>
constexpr bool same_call<R(A...), S(B...)> = [] {
  if constexpr (sizeof...(A) != sizeof...(B))
    return false;
  else
    return (same_parameter<A, B> && ...) && std::is_void_v<R> == std::is_void_v<S>;
}();
#define SAME_CALL(name, ...) static_assert(same_call<Api::name##Function, decltype(::wgpu##name)>);
RLX_WGPU_FUNCTIONS(SAME_CALL)

}  // namespace rlx::wgpu::abi
#endif
