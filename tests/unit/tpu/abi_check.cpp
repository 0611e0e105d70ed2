// Our declarations of the PJRT C API against the real header, if a build has one (RLX_PJRT_HEADER_DIR).
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "rlx/backends/tpu/abi.h"

#ifdef RLX_PJRT_HEADER
#include <pjrt_c_api.h>

namespace rlx::tpu::abi {
namespace {

// Checks the offset and size of one member.
#define RLX_SAME(ours, theirs, member)                                                                        \
  static_assert(offsetof(ours, member) == offsetof(theirs, member), #theirs "." #member " moved");            \
  static_assert(sizeof(static_cast<ours*>(nullptr)->member) == sizeof(static_cast<theirs*>(nullptr)->member), \
                #theirs "." #member " has another size");
// Checks the size of a struct, its members, and the position of its function.
#define RLX_SAME_STRUCT(ours, theirs)                                                \
  static_assert(sizeof(ours) == sizeof(theirs), #theirs " has another size");        \
  static_assert(alignof(ours) == alignof(theirs), #theirs " has another alignment"); \
  RLX_SAME(ours, theirs, struct_size)                                                \
  RLX_SAME(ours, theirs, extension_start)
#define RLX_SAME_CALL(ours, text)                                                                      \
  RLX_SAME_STRUCT(ours, PJRT_##text##_Args)                                                            \
  static_assert(Call<ours>::size == PJRT_##text##_Args_STRUCT_SIZE, #text ": another last member");    \
  static_assert(sizeof(Api) + Call<ours>::index * sizeof(Function) == offsetof(PJRT_Api, PJRT_##text), \
                "PJRT_" #text " has another place");
#define RLX_M1(o, t, a) RLX_SAME(o, PJRT_##t##_Args, a)
#define RLX_M2(o, t, a, ...) RLX_M1(o, t, a) RLX_M1(o, t, __VA_ARGS__)
#define RLX_M3(o, t, a, ...) RLX_M1(o, t, a) RLX_M2(o, t, __VA_ARGS__)
#define RLX_M4(o, t, a, ...) RLX_M1(o, t, a) RLX_M3(o, t, __VA_ARGS__)
#define RLX_M5(o, t, a, ...) RLX_M1(o, t, a) RLX_M4(o, t, __VA_ARGS__)
#define RLX_M6(o, t, a, ...) RLX_M1(o, t, a) RLX_M5(o, t, __VA_ARGS__)

static_assert(sizeof(Version) == sizeof(PJRT_Api_Version));
RLX_SAME(Version, PJRT_Api_Version, major_version)
RLX_SAME(Version, PJRT_Api_Version, minor_version)
RLX_SAME(Api, PJRT_Api, struct_size)
RLX_SAME(Api, PJRT_Api, pjrt_api_version)
static_assert(sizeof(Api) == offsetof(PJRT_Api, PJRT_Error_Destroy));
static_assert(PJRT_API_MAJOR == 0);

RLX_SAME_STRUCT(NamedValue, PJRT_NamedValue)
RLX_SAME(NamedValue, PJRT_NamedValue, name)
RLX_SAME(NamedValue, PJRT_NamedValue, name_size)
RLX_SAME(NamedValue, PJRT_NamedValue, type)
RLX_SAME(NamedValue, PJRT_NamedValue, string_value)
RLX_SAME(NamedValue, PJRT_NamedValue, int64_value)
RLX_SAME(NamedValue, PJRT_NamedValue, float_value)
RLX_SAME(NamedValue, PJRT_NamedValue, bool_value)
RLX_SAME(NamedValue, PJRT_NamedValue, value_size)
RLX_SAME_STRUCT(Program, PJRT_Program)
RLX_SAME(Program, PJRT_Program, code)
RLX_SAME(Program, PJRT_Program, code_size)
RLX_SAME(Program, PJRT_Program, format)
RLX_SAME(Program, PJRT_Program, format_size)
RLX_SAME_STRUCT(TiledLayout, PJRT_Buffer_MemoryLayout_Tiled)
RLX_SAME(TiledLayout, PJRT_Buffer_MemoryLayout_Tiled, minor_to_major)
RLX_SAME(TiledLayout, PJRT_Buffer_MemoryLayout_Tiled, minor_to_major_size)
RLX_SAME(TiledLayout, PJRT_Buffer_MemoryLayout_Tiled, tile_dims)
RLX_SAME(TiledLayout, PJRT_Buffer_MemoryLayout_Tiled, tile_dim_sizes)
RLX_SAME(TiledLayout, PJRT_Buffer_MemoryLayout_Tiled, num_tiles)
RLX_SAME_STRUCT(Layout, PJRT_Buffer_MemoryLayout)
RLX_SAME(Layout, PJRT_Buffer_MemoryLayout, tiled)
RLX_SAME(Layout, PJRT_Buffer_MemoryLayout, type)
static_assert(kLayoutSize == PJRT_Buffer_MemoryLayout_STRUCT_SIZE);
RLX_SAME_STRUCT(ExecuteOptions, PJRT_ExecuteOptions)
RLX_SAME(ExecuteOptions, PJRT_ExecuteOptions, send_callbacks)
RLX_SAME(ExecuteOptions, PJRT_ExecuteOptions, num_recv_ops)
RLX_SAME(ExecuteOptions, PJRT_ExecuteOptions, launch_id)
RLX_SAME(ExecuteOptions, PJRT_ExecuteOptions, non_donatable_input_indices)
RLX_SAME(ExecuteOptions, PJRT_ExecuteOptions, num_non_donatable_input_indices)
RLX_SAME(ExecuteOptions, PJRT_ExecuteOptions, context)
RLX_SAME(ExecuteOptions, PJRT_ExecuteOptions, call_location)
RLX_SAME(ExecuteOptions, PJRT_ExecuteOptions, num_tasks)
RLX_SAME(ExecuteOptions, PJRT_ExecuteOptions, incarnation_ids)

RLX_SAME_CALL(ErrorDestroy, Error_Destroy)
RLX_M1(ErrorDestroy, Error_Destroy, error)
RLX_SAME_CALL(ErrorMessage, Error_Message)
RLX_M3(ErrorMessage, Error_Message, error, message, message_size)
RLX_SAME_CALL(ErrorGetCode, Error_GetCode)
RLX_M2(ErrorGetCode, Error_GetCode, error, code)
RLX_SAME_CALL(PluginInitialize, Plugin_Initialize)
RLX_SAME_CALL(EventDestroy, Event_Destroy)
RLX_M1(EventDestroy, Event_Destroy, event)
RLX_SAME_CALL(EventIsReady, Event_IsReady)
RLX_M2(EventIsReady, Event_IsReady, event, is_ready)
RLX_SAME_CALL(EventAwait, Event_Await)
RLX_M1(EventAwait, Event_Await, event)
RLX_SAME_CALL(EventOnReady, Event_OnReady)
RLX_M3(EventOnReady, Event_OnReady, event, callback, user_arg)
RLX_SAME_CALL(ClientCreate, Client_Create)
RLX_M6(ClientCreate, Client_Create, create_options, num_options, kv_get_callback, kv_put_callback, client,
       kv_try_get_callback)
RLX_SAME_CALL(ClientDestroy, Client_Destroy)
RLX_M1(ClientDestroy, Client_Destroy, client)
RLX_SAME_CALL(ClientPlatformName, Client_PlatformName)
RLX_M3(ClientPlatformName, Client_PlatformName, client, platform_name, platform_name_size)
RLX_SAME_CALL(ClientPlatformVersion, Client_PlatformVersion)
RLX_M3(ClientPlatformVersion, Client_PlatformVersion, client, platform_version, platform_version_size)
RLX_SAME_CALL(ClientAddressableDevices, Client_AddressableDevices)
RLX_M3(ClientAddressableDevices, Client_AddressableDevices, client, addressable_devices, num_addressable_devices)
RLX_SAME_CALL(ClientCompile, Client_Compile)
RLX_M5(ClientCompile, Client_Compile, client, program, compile_options, compile_options_size, executable)
RLX_SAME_CALL(ClientBufferFromHostBuffer, Client_BufferFromHostBuffer)
RLX_M6(ClientBufferFromHostBuffer, Client_BufferFromHostBuffer, client, data, type, dims, num_dims, byte_strides)
RLX_M6(ClientBufferFromHostBuffer, Client_BufferFromHostBuffer, num_byte_strides, host_buffer_semantics, device, memory,
       device_layout, done_with_host_buffer)
RLX_M1(ClientBufferFromHostBuffer, Client_BufferFromHostBuffer, buffer)
RLX_SAME_CALL(DeviceDescriptionId, DeviceDescription_Id)
RLX_M2(DeviceDescriptionId, DeviceDescription_Id, device_description, id)
RLX_SAME_CALL(DeviceDescriptionKind, DeviceDescription_Kind)
RLX_M3(DeviceDescriptionKind, DeviceDescription_Kind, device_description, device_kind, device_kind_size)
RLX_SAME_CALL(DeviceGetDescription, Device_GetDescription)
RLX_M2(DeviceGetDescription, Device_GetDescription, device, device_description)
RLX_SAME_CALL(DeviceMemoryStats, Device_MemoryStats)
RLX_M4(DeviceMemoryStats, Device_MemoryStats, device, bytes_in_use, bytes_limit, bytes_limit_is_set)
RLX_SAME_CALL(ExecutableDestroy, Executable_Destroy)
RLX_M1(ExecutableDestroy, Executable_Destroy, executable)
RLX_SAME_CALL(ExecutableGetCostAnalysis, Executable_GetCostAnalysis)
RLX_M3(ExecutableGetCostAnalysis, Executable_GetCostAnalysis, executable, num_properties, properties)
RLX_SAME_CALL(ExecutableSerialize, Executable_Serialize)
RLX_M5(ExecutableSerialize, Executable_Serialize, executable, serialized_bytes, serialized_bytes_size,
       serialized_executable, serialized_executable_deleter)
RLX_SAME_CALL(LoadedExecutableDestroy, LoadedExecutable_Destroy)
RLX_M1(LoadedExecutableDestroy, LoadedExecutable_Destroy, executable)
RLX_SAME_CALL(LoadedExecutableGetExecutable, LoadedExecutable_GetExecutable)
RLX_M2(LoadedExecutableGetExecutable, LoadedExecutable_GetExecutable, loaded_executable, executable)
RLX_SAME_CALL(LoadedExecutableExecute, LoadedExecutable_Execute)
RLX_M6(LoadedExecutableExecute, LoadedExecutable_Execute, executable, options, argument_lists, num_devices, num_args,
       output_lists)
RLX_M2(LoadedExecutableExecute, LoadedExecutable_Execute, device_complete_events, execute_device)
RLX_SAME_CALL(ExecutableDeserializeAndLoad, Executable_DeserializeAndLoad)
RLX_M4(ExecutableDeserializeAndLoad, Executable_DeserializeAndLoad, client, serialized_executable,
       serialized_executable_size, loaded_executable)
RLX_SAME_CALL(ExecutableGetCompiledMemoryStats, Executable_GetCompiledMemoryStats)
RLX_M6(ExecutableGetCompiledMemoryStats, Executable_GetCompiledMemoryStats, executable, generated_code_size_in_bytes,
       argument_size_in_bytes, output_size_in_bytes, alias_size_in_bytes, temp_size_in_bytes)
RLX_M1(ExecutableGetCompiledMemoryStats, Executable_GetCompiledMemoryStats, peak_memory_in_bytes)
RLX_SAME_CALL(BufferDestroy, Buffer_Destroy)
RLX_M1(BufferDestroy, Buffer_Destroy, buffer)
RLX_SAME_CALL(BufferIsDeleted, Buffer_IsDeleted)
RLX_M2(BufferIsDeleted, Buffer_IsDeleted, buffer, is_deleted)
RLX_SAME_CALL(BufferToHostBuffer, Buffer_ToHostBuffer)
RLX_M5(BufferToHostBuffer, Buffer_ToHostBuffer, src, host_layout, dst, dst_size, event)
RLX_SAME_CALL(BufferReadyEvent, Buffer_ReadyEvent)
RLX_M2(BufferReadyEvent, Buffer_ReadyEvent, buffer, event)
RLX_SAME_CALL(BufferOpaquePointer, Buffer_OpaqueDeviceMemoryDataPointer)
RLX_M2(BufferOpaquePointer, Buffer_OpaqueDeviceMemoryDataPointer, buffer, device_memory_ptr)
RLX_SAME_CALL(ClientCreateViewOfDeviceBuffer, Client_CreateViewOfDeviceBuffer)
RLX_M6(ClientCreateViewOfDeviceBuffer, Client_CreateViewOfDeviceBuffer, client, device_buffer_ptr, dims, num_dims,
       element_type, layout)
RLX_M6(ClientCreateViewOfDeviceBuffer, Client_CreateViewOfDeviceBuffer, device, on_delete_callback,
       on_delete_callback_arg, stream, buffer, memory)
RLX_SAME_CALL(TopologyCreate, TopologyDescription_Create)
RLX_M5(TopologyCreate, TopologyDescription_Create, topology_name, topology_name_size, create_options, num_options,
       topology)
RLX_SAME_CALL(TopologyDestroy, TopologyDescription_Destroy)
RLX_M1(TopologyDestroy, TopologyDescription_Destroy, topology)
static_assert(sizeof(Compile) == sizeof(PJRT_Compile_Args) && Call<Compile>::size == PJRT_Compile_Args_STRUCT_SIZE);
static_assert(sizeof(Api) + Call<Compile>::index * sizeof(Function) == offsetof(PJRT_Api, PJRT_Compile));
RLX_SAME(Compile, PJRT_Compile_Args, topology)
RLX_SAME(Compile, PJRT_Compile_Args, client)
RLX_SAME(Compile, PJRT_Compile_Args, executable)

#define RLX_VALUE(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs));
RLX_VALUE(Element::Pred, PJRT_Buffer_Type_PRED)
RLX_VALUE(Element::S8, PJRT_Buffer_Type_S8)
RLX_VALUE(Element::S16, PJRT_Buffer_Type_S16)
RLX_VALUE(Element::S32, PJRT_Buffer_Type_S32)
RLX_VALUE(Element::S64, PJRT_Buffer_Type_S64)
RLX_VALUE(Element::U8, PJRT_Buffer_Type_U8)
RLX_VALUE(Element::U16, PJRT_Buffer_Type_U16)
RLX_VALUE(Element::U32, PJRT_Buffer_Type_U32)
RLX_VALUE(Element::U64, PJRT_Buffer_Type_U64)
RLX_VALUE(Element::F16, PJRT_Buffer_Type_F16)
RLX_VALUE(Element::F32, PJRT_Buffer_Type_F32)
RLX_VALUE(Element::F64, PJRT_Buffer_Type_F64)
RLX_VALUE(Element::BF16, PJRT_Buffer_Type_BF16)
RLX_VALUE(Element::C64, PJRT_Buffer_Type_C64)
RLX_VALUE(Element::C128, PJRT_Buffer_Type_C128)
RLX_VALUE(Element::F8E5M2, PJRT_Buffer_Type_F8E5M2)
RLX_VALUE(Element::F8E4M3FN, PJRT_Buffer_Type_F8E4M3FN)
RLX_VALUE(HostBytes::ReadDuringCall, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall)
RLX_VALUE(HostBytes::InPlace, PJRT_HostBufferSemantics_kImmutableZeroCopy)
RLX_VALUE(LayoutKind::Tiled, PJRT_Buffer_MemoryLayout_Type_Tiled)
RLX_VALUE(ValueKind::Text, PJRT_NamedValue_kString)
RLX_VALUE(ValueKind::Int64, PJRT_NamedValue_kInt64)
RLX_VALUE(ValueKind::Float, PJRT_NamedValue_kFloat)
RLX_VALUE(ValueKind::Bool, PJRT_NamedValue_kBool)
RLX_VALUE(Code::ResourceExhausted, PJRT_Error_Code_RESOURCE_EXHAUSTED)
RLX_VALUE(Code::Unavailable, PJRT_Error_Code_UNAVAILABLE)
RLX_VALUE(Code::Unimplemented, PJRT_Error_Code_UNIMPLEMENTED)

}  // namespace
}  // namespace rlx::tpu::abi

TEST_CASE("tpu: our declarations of PJRT are those of the real header") { CHECK(PJRT_API_MINOR >= 81); }

#else

TEST_CASE("tpu: our declarations of PJRT are those of the real header") {
  const char* const list = std::getenv("RLX_REQUIRE_DEVICES");
  const std::string text = "this build had no pjrt_c_api.h to compare with (RLX_PJRT_HEADER_DIR): nothing was compared";
  if (list && std::string(list).find("tpu") != std::string::npos)
    FAIL(text);
  else
    MESSAGE(text);
}

#endif
