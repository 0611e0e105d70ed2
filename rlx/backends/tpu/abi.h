// The part of the PJRT C interface that this backend uses: argument structs, positions of functions in a plug-in's
// table, and constants. These are own declarations; tests/unit/tpu/abi_check.cpp compares each with the real header
// where it is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlx::tpu::abi {

// Opaque objects of a plug-in.
struct Failure;  // an error value, which the receiver destroys
struct Point;    // an event
struct Client;
struct Device;
struct DeviceDescription;
struct Memory;
struct Topology;
struct Executable;
struct LoadedExecutable;
struct Buffer;
struct SerializedExecutable;
struct ExecuteContext;

/// Error codes.
enum class Code : int {
  Ok = 0,
  Cancelled = 1,
  Unknown = 2,
  InvalidArgument = 3,
  DeadlineExceeded = 4,
  NotFound = 5,
  AlreadyExists = 6,
  PermissionDenied = 7,
  ResourceExhausted = 8,
  FailedPrecondition = 9,
  Aborted = 10,
  OutOfRange = 11,
  Unimplemented = 12,
  Internal = 13,
  Unavailable = 14,
  DataLoss = 15,
  Unauthenticated = 16,
};

/// Element types.
enum class Element : int {
  Invalid = 0,
  Pred = 1,
  S8 = 2,
  S16 = 3,
  S32 = 4,
  S64 = 5,
  U8 = 6,
  U16 = 7,
  U32 = 8,
  U64 = 9,
  F16 = 10,
  F32 = 11,
  F64 = 12,
  BF16 = 13,
  C64 = 14,
  C128 = 15,
  F8E5M2 = 16,
  F8E4M3FN = 17,
  S4 = 21,
  U4 = 22,
};

/// How long and how a plug-in may use host bytes that it is given.
enum class HostBytes : int {
  ReadDuringCall = 0,  // it reads them before the call returns
  InPlace = 2,         // it may use them in place, and never writes to them
};

enum class LayoutKind : int { Tiled = 0 };
enum class ValueKind : int { Text = 0, Int64 = 1, Int64List = 2, Float = 3, Bool = 4 };

// Every struct begins with its size and an extension list, which is null here.

struct Version {
  std::size_t struct_size;
  void* extension_start;
  int major_version;
  int minor_version;
};

using Function = void (*)();

/// The result of GetPjrtApi. The functions follow, as many as fit in `struct_size`. New functions are only appended.
struct Api {
  std::size_t struct_size;
  void* extension_start;
  Version pjrt_api_version;
};

struct NamedValue {
  std::size_t struct_size;
  void* extension_start;
  const char* name;
  std::size_t name_size;
  ValueKind type;
  union {
    const char* string_value;
    std::int64_t int64_value;
    const std::int64_t* int64_array_value;
    float float_value;
    bool bool_value;
  };
  std::size_t value_size;
};

struct Program {
  std::size_t struct_size;
  void* extension_start;
  char* code;
  std::size_t code_size;
  const char* format;
  std::size_t format_size;
};

struct TiledLayout {
  std::size_t struct_size;
  void* extension_start;
  const std::int64_t* minor_to_major;
  std::size_t minor_to_major_size;
  const std::int64_t* tile_dims;
  const std::size_t* tile_dim_sizes;
  std::size_t num_tiles;
};

struct Layout {
  std::size_t struct_size;
  void* extension_start;
  TiledLayout tiled;  // the larger member of a union
  LayoutKind type;
};

struct ExecuteOptions {
  std::size_t struct_size;
  void* extension_start;
  void** send_callbacks;
  void** recv_callbacks;
  std::size_t num_send_ops;
  std::size_t num_recv_ops;
  int launch_id;
  const std::int64_t* non_donatable_input_indices;
  std::size_t num_non_donatable_input_indices;
  ExecuteContext* context;
  const char* call_location;
  std::size_t num_tasks;
  int* task_ids;
  std::int64_t* incarnation_ids;
};

/// The table position and name of the function that takes arguments of type `A`, and the size of `A` up to its last
/// member.
template <class A>
struct Call;

// RLX_PJRT_CALL(struct, table position, function name without PJRT_, last member).
#define RLX_PJRT_CALL(type, place, text, last)                                                            \
  template <>                                                                                             \
  struct Call<type> {                                                                                     \
    static constexpr std::size_t index = place;                                                           \
    static constexpr const char* name = "PJRT_" #text;                                                    \
    static constexpr std::size_t size = offsetof(type, last) + sizeof(static_cast<type*>(nullptr)->last); \
  };

// -- errors and events --

struct ErrorDestroy {  // returns nothing
  std::size_t struct_size;
  void* extension_start;
  Failure* error;
};
RLX_PJRT_CALL(ErrorDestroy, 0, Error_Destroy, error)

struct ErrorMessage {  // gives nothing back
  std::size_t struct_size;
  void* extension_start;
  const Failure* error;
  const char* message;
  std::size_t message_size;
};
RLX_PJRT_CALL(ErrorMessage, 1, Error_Message, message_size)

struct ErrorGetCode {
  std::size_t struct_size;
  void* extension_start;
  const Failure* error;
  Code code;
};
RLX_PJRT_CALL(ErrorGetCode, 2, Error_GetCode, code)

struct PluginInitialize {
  std::size_t struct_size;
  void* extension_start;
};
RLX_PJRT_CALL(PluginInitialize, 3, Plugin_Initialize, extension_start)

struct EventDestroy {
  std::size_t struct_size;
  void* extension_start;
  Point* event;
};
RLX_PJRT_CALL(EventDestroy, 5, Event_Destroy, event)

struct EventIsReady {
  std::size_t struct_size;
  void* extension_start;
  Point* event;
  bool is_ready;
};
RLX_PJRT_CALL(EventIsReady, 6, Event_IsReady, is_ready)

struct EventAwait {
  std::size_t struct_size;
  void* extension_start;
  Point* event;
};
RLX_PJRT_CALL(EventAwait, 8, Event_Await, event)

struct EventOnReady {
  std::size_t struct_size;
  void* extension_start;
  Point* event;
  void (*callback)(Failure* error, void* user_arg);
  void* user_arg;
};
RLX_PJRT_CALL(EventOnReady, 9, Event_OnReady, user_arg)

// -- the client and its devices --

struct ClientCreate {
  std::size_t struct_size;
  void* extension_start;
  const NamedValue* create_options;
  std::size_t num_options;
  void* kv_get_callback;
  void* kv_get_user_arg;
  void* kv_put_callback;
  void* kv_put_user_arg;
  Client* client;
  void* kv_try_get_callback;
  void* kv_try_get_user_arg;
};
RLX_PJRT_CALL(ClientCreate, 10, Client_Create, kv_try_get_user_arg)

struct ClientDestroy {
  std::size_t struct_size;
  void* extension_start;
  Client* client;
};
RLX_PJRT_CALL(ClientDestroy, 11, Client_Destroy, client)

struct ClientPlatformName {
  std::size_t struct_size;
  void* extension_start;
  Client* client;
  const char* platform_name;
  std::size_t platform_name_size;
};
RLX_PJRT_CALL(ClientPlatformName, 12, Client_PlatformName, platform_name_size)

struct ClientPlatformVersion {
  std::size_t struct_size;
  void* extension_start;
  Client* client;
  const char* platform_version;
  std::size_t platform_version_size;
};
RLX_PJRT_CALL(ClientPlatformVersion, 14, Client_PlatformVersion, platform_version_size)

struct ClientAddressableDevices {
  std::size_t struct_size;
  void* extension_start;
  Client* client;
  Device* const* addressable_devices;
  std::size_t num_addressable_devices;
};
RLX_PJRT_CALL(ClientAddressableDevices, 16, Client_AddressableDevices, num_addressable_devices)

struct ClientCompile {
  std::size_t struct_size;
  void* extension_start;
  Client* client;
  const Program* program;
  const char* compile_options;
  std::size_t compile_options_size;
  LoadedExecutable* executable;
};
RLX_PJRT_CALL(ClientCompile, 20, Client_Compile, executable)

struct ClientBufferFromHostBuffer {
  std::size_t struct_size;
  void* extension_start;
  Client* client;
  const void* data;
  Element type;
  const std::int64_t* dims;
  std::size_t num_dims;
  const std::int64_t* byte_strides;
  std::size_t num_byte_strides;
  HostBytes host_buffer_semantics;
  Device* device;
  Memory* memory;
  Layout* device_layout;
  Point* done_with_host_buffer;
  Buffer* buffer;
};
RLX_PJRT_CALL(ClientBufferFromHostBuffer, 22, Client_BufferFromHostBuffer, buffer)

struct DeviceDescriptionId {
  std::size_t struct_size;
  void* extension_start;
  DeviceDescription* device_description;
  int id;
};
RLX_PJRT_CALL(DeviceDescriptionId, 23, DeviceDescription_Id, id)

struct DeviceDescriptionKind {
  std::size_t struct_size;
  void* extension_start;
  DeviceDescription* device_description;
  const char* device_kind;
  std::size_t device_kind_size;
};
RLX_PJRT_CALL(DeviceDescriptionKind, 26, DeviceDescription_Kind, device_kind_size)

struct DeviceGetDescription {
  std::size_t struct_size;
  void* extension_start;
  Device* device;
  DeviceDescription* device_description;
};
RLX_PJRT_CALL(DeviceGetDescription, 29, Device_GetDescription, device_description)

struct DeviceMemoryStats {
  std::size_t struct_size;
  void* extension_start;
  Device* device;
  std::int64_t bytes_in_use;
  std::int64_t peak_bytes_in_use;
  bool peak_bytes_in_use_is_set;
  std::int64_t num_allocs;
  bool num_allocs_is_set;
  std::int64_t largest_alloc_size;
  bool largest_alloc_size_is_set;
  std::int64_t bytes_limit;
  bool bytes_limit_is_set;
  std::int64_t bytes_reserved;
  bool bytes_reserved_is_set;
  std::int64_t peak_bytes_reserved;
  bool peak_bytes_reserved_is_set;
  std::int64_t bytes_reservable_limit;
  bool bytes_reservable_limit_is_set;
  std::int64_t largest_free_block_bytes;
  bool largest_free_block_bytes_is_set;
  std::int64_t pool_bytes;
  bool pool_bytes_is_set;
  std::int64_t peak_pool_bytes;
  bool peak_pool_bytes_is_set;
};
RLX_PJRT_CALL(DeviceMemoryStats, 34, Device_MemoryStats, peak_pool_bytes_is_set)

// -- executables --

struct ExecutableDestroy {
  std::size_t struct_size;
  void* extension_start;
  Executable* executable;
};
RLX_PJRT_CALL(ExecutableDestroy, 40, Executable_Destroy, executable)

struct ExecutableGetCostAnalysis {
  std::size_t struct_size;
  void* extension_start;
  Executable* executable;
  std::size_t num_properties;
  const NamedValue* properties;
};
RLX_PJRT_CALL(ExecutableGetCostAnalysis, 46, Executable_GetCostAnalysis, properties)

struct ExecutableSerialize {
  std::size_t struct_size;
  void* extension_start;
  const Executable* executable;
  const char* serialized_bytes;
  std::size_t serialized_bytes_size;
  SerializedExecutable* serialized_executable;
  void (*serialized_executable_deleter)(SerializedExecutable* executable);
};
RLX_PJRT_CALL(ExecutableSerialize, 49, Executable_Serialize, serialized_executable_deleter)

struct LoadedExecutableDestroy {
  std::size_t struct_size;
  void* extension_start;
  LoadedExecutable* executable;
};
RLX_PJRT_CALL(LoadedExecutableDestroy, 50, LoadedExecutable_Destroy, executable)

struct LoadedExecutableGetExecutable {
  std::size_t struct_size;
  void* extension_start;
  LoadedExecutable* loaded_executable;
  Executable* executable;
};
RLX_PJRT_CALL(LoadedExecutableGetExecutable, 51, LoadedExecutable_GetExecutable, executable)

struct LoadedExecutableExecute {
  std::size_t struct_size;
  void* extension_start;
  LoadedExecutable* executable;
  ExecuteOptions* options;
  Buffer* const* const* argument_lists;
  std::size_t num_devices;
  std::size_t num_args;
  Buffer** const* output_lists;
  Point** device_complete_events;
  Device* execute_device;
};
RLX_PJRT_CALL(LoadedExecutableExecute, 55, LoadedExecutable_Execute, execute_device)

struct ExecutableDeserializeAndLoad {
  std::size_t struct_size;
  void* extension_start;
  Client* client;
  const char* serialized_executable;
  std::size_t serialized_executable_size;
  LoadedExecutable* loaded_executable;
  const char* overridden_serialized_compile_options;
  std::size_t overridden_serialized_compile_options_size;
};
RLX_PJRT_CALL(ExecutableDeserializeAndLoad, 56, Executable_DeserializeAndLoad,
              overridden_serialized_compile_options_size)

struct ExecutableGetCompiledMemoryStats {
  std::size_t struct_size;
  void* extension_start;
  Executable* executable;
  std::int64_t generated_code_size_in_bytes;
  std::int64_t argument_size_in_bytes;
  std::int64_t output_size_in_bytes;
  std::int64_t alias_size_in_bytes;
  std::int64_t temp_size_in_bytes;
  std::int64_t host_generated_code_size_in_bytes;
  std::int64_t host_argument_size_in_bytes;
  std::int64_t host_output_size_in_bytes;
  std::int64_t host_alias_size_in_bytes;
  std::int64_t host_temp_size_in_bytes;
  std::int64_t peak_memory_in_bytes;
};
RLX_PJRT_CALL(ExecutableGetCompiledMemoryStats, 96, Executable_GetCompiledMemoryStats, peak_memory_in_bytes)

// -- buffers --

struct BufferDestroy {
  std::size_t struct_size;
  void* extension_start;
  Buffer* buffer;
};
RLX_PJRT_CALL(BufferDestroy, 58, Buffer_Destroy, buffer)

struct BufferIsDeleted {
  std::size_t struct_size;
  void* extension_start;
  Buffer* buffer;
  bool is_deleted;
};
RLX_PJRT_CALL(BufferIsDeleted, 68, Buffer_IsDeleted, is_deleted)

struct BufferToHostBuffer {
  std::size_t struct_size;
  void* extension_start;
  Buffer* src;
  Layout* host_layout;
  void* dst;
  std::size_t dst_size;
  Point* event;
};
RLX_PJRT_CALL(BufferToHostBuffer, 70, Buffer_ToHostBuffer, event)

struct BufferReadyEvent {
  std::size_t struct_size;
  void* extension_start;
  Buffer* buffer;
  Point* event;
};
RLX_PJRT_CALL(BufferReadyEvent, 72, Buffer_ReadyEvent, event)

struct BufferOpaquePointer {
  std::size_t struct_size;
  void* extension_start;
  Buffer* buffer;
  void* device_memory_ptr;
};
RLX_PJRT_CALL(BufferOpaquePointer, 76, Buffer_OpaqueDeviceMemoryDataPointer, device_memory_ptr)

struct ClientCreateViewOfDeviceBuffer {
  std::size_t struct_size;
  void* extension_start;
  Client* client;
  void* device_buffer_ptr;
  const std::int64_t* dims;
  std::size_t num_dims;
  Element element_type;
  Layout* layout;
  Device* device;
  void (*on_delete_callback)(void* device_buffer_ptr, void* user_arg);
  void* on_delete_callback_arg;
  std::intptr_t stream;
  Buffer* buffer;
  Memory* memory;
};
RLX_PJRT_CALL(ClientCreateViewOfDeviceBuffer, 93, Client_CreateViewOfDeviceBuffer, memory)

// -- compiles for devices that are not there --

struct TopologyCreate {
  std::size_t struct_size;
  void* extension_start;
  const char* topology_name;
  std::size_t topology_name_size;
  const NamedValue* create_options;
  std::size_t num_options;
  Topology* topology;
};
RLX_PJRT_CALL(TopologyCreate, 82, TopologyDescription_Create, topology)

struct TopologyDestroy {
  std::size_t struct_size;
  void* extension_start;
  Topology* topology;
};
RLX_PJRT_CALL(TopologyDestroy, 83, TopologyDescription_Destroy, topology)

struct Compile {
  std::size_t struct_size;
  void* extension_start;
  const Topology* topology;
  const Program* program;
  const char* compile_options;
  std::size_t compile_options_size;
  Client* client;
  Executable* executable;
};
RLX_PJRT_CALL(Compile, 89, Compile, executable)

#undef RLX_PJRT_CALL

/// The size of a layout up to its last member; the other structs end with theirs.
inline constexpr std::size_t kLayoutSize = offsetof(Layout, type) + sizeof(LayoutKind);

/// The arguments of a call, zero-initialized, with their size set.
template <class A>
A arguments() {
  A a{};
  a.struct_size = Call<A>::size;
  return a;
}

/// CompileOptionsProto with executable_build_options {num_replicas = 1, num_partitions = 1}. Plug-ins abort the process
/// when these are missing.
inline constexpr char kCompileOptions[] = {0x1a, 0x04, 0x20, 0x01, 0x28, 0x01};

}  // namespace rlx::tpu::abi
