/* Backends of other repositories: the table of C functions through which rlx loads one. Version 1, for opaque devices:
 * whole typed values, whole graphs.
 *
 * A plug-in is a shared library with the function `rlx_plugin_entry`, which returns its table, or a table of the
 * program itself (`rlx::load_plugin` and `rlx::register_plugin`). What a table must keep to:
 *
 *  - Every struct that rlx fills or reads begins with its size in bytes. Members are only ever added at the end; a
 *    reader takes those that the size covers. A table of another major version is refused.
 *  - A call returns RLX_PLUGIN_OK, or a code with a text in `error`. No exception leaves it. What a call that failed
 *    was to make is not made, and what it was to take is not taken.
 *  - Handles (devices, streams, events, buffers, programs) belong to the plug-in; rlx gives each back once, by its
 *    destroy function, which does not block: work under way goes on with what it needs. A buffer's handle is that of
 *    one value until then.
 *  - Calls of one stream come from one thread at a time, all others from any, those of one program too.
 *  - Calls may use rlx themselves, but for what they are to answer: `device_open` any device but the one that it
 *    opens (that is an error); `option_infos`, `target_name`, `claimed_kinds` and `claims` nothing of devices that the
 *    plug-in serves, and `rlx_plugin_entry` nothing that loads plug-ins, as a Session does: those would wait for ever.
 *  - A library that was loaded stays loaded.
 *  - From the first device that it opens a plug-in belongs to this process: in one that is forked from it nothing of
 *    it is called, and whoever asks is told so.
 */
#ifndef RLX_DRIVER_PLUGIN_H
#define RLX_DRIVER_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RLX_PLUGIN_ABI_MAJOR 1u
#define RLX_PLUGIN_ABI_MINOR 0u
/* The version of the serialised graphs (rlx/ir/serial/serialize.h) that this version of the table hands over. */
#define RLX_PLUGIN_GRAPH_VERSION 2u

typedef int32_t rlx_code;
enum {
  RLX_PLUGIN_OK = 0,
  RLX_PLUGIN_INVALID_ARGUMENT = 1,
  RLX_PLUGIN_UNSUPPORTED = 2,
  RLX_PLUGIN_OUT_OF_MEMORY = 3,
  RLX_PLUGIN_DEVICE_LOST = 4,
  RLX_PLUGIN_UNAVAILABLE = 5,
  RLX_PLUGIN_INTERNAL = 6
};

/* What went wrong, and the way out; both end in 0. */
typedef struct rlx_error {
  size_t struct_size;
  char message[1024];
  char hint[512];
} rlx_error;

typedef struct rlx_device rlx_device;
typedef struct rlx_stream rlx_stream;
typedef struct rlx_event rlx_event;
typedef struct rlx_buffer rlx_buffer;
typedef struct rlx_program rlx_program;

/* One option of a device, key = value. */
typedef struct rlx_option {
  const char* key;
  const char* value;
} rlx_option;

typedef struct rlx_options {
  size_t struct_size;
  size_t count;
  const rlx_option* list;
} rlx_options;

/* An option that the plug-in takes; `at_open`: it acts when the device is opened, else at each compile. */
typedef struct rlx_option_info {
  const char* name;
  const char* what;
  int32_t at_open;
} rlx_option_info;

/* A graph in its serialised form, read during the call only. The bytes are written and read by rlx's own C++:
 * `from_bytes` of rlx/ir/serial/serialize.h, so a plug-in that looks into a graph links its own copy of the library
 * rlx::core, built as position independent code (CONTRIBUTING.md). There is no other description of them. */
typedef struct rlx_graph {
  size_t struct_size;
  const void* bytes;
  size_t size;
} rlx_graph;

/* One pair of a compile: the run may make output `output` in the memory of input `input`. */
typedef struct rlx_alias {
  uint32_t input;
  uint32_t output;
} rlx_alias;

/* Dense row-major elements of the host; `dtype` is rlx's name of the type ("f32"). */
typedef struct rlx_value {
  size_t struct_size;
  const char* dtype;
  size_t rank;
  const int64_t* dims;
  const void* data;
  size_t bytes;
} rlx_value;

/* What memory is taken for, in this order:
 * 0 values of runs, 1 weights and what is prepared of them, 2 states, 3 inputs and outputs on their way, 4 results that
 * the host reads, 5 device tensors of callers. */
#define RLX_PLUGIN_USES 6
typedef struct rlx_memory {
  size_t struct_size;
  uint64_t total;                    /* bytes of the device; 0: not known */
  uint64_t in_use[RLX_PLUGIN_USES];  /* by use */
} rlx_memory;

/* A value of a run. Inputs and states come with their buffer; outputs, and states that the graph replaces, leave with
 * a new one, which is rlx's from then on and no other value's. `given` != 0: the buffer is the run's from now on, to
 * write over or to destroy; for an input the run then sets `buffer` to null. A buffer that is not given stays as it
 * is. */
typedef struct rlx_slot {
  rlx_buffer* buffer;
  int32_t given;
} rlx_slot;

typedef struct rlx_run {
  size_t struct_size;
  size_t num_inputs, num_outputs, num_states, num_weights;
  rlx_slot* inputs;             /* in node order of the graph's inputs */
  rlx_slot* outputs;            /* in output order */
  rlx_slot* states;             /* in node order */
  rlx_buffer* const* weights;   /* in node order of the graph's params */
  double* ns;                   /* not null: gets the time of the run by its end, or stays as it is */
} rlx_run;

/* The table. No member is null. */
typedef struct rlx_plugin {
  size_t struct_size;
  uint32_t abi_major, abi_minor;
  uint32_t graph_version; /* RLX_PLUGIN_GRAPH_VERSION of the header that the plug-in was built with */
  const char* name;       /* "acme" */
  const char* devices;    /* the devices it serves, as rlx names them, with blanks between: "tpu" */

  /* -- without a device -- */
  /* How many devices of the kind can be used; when none, the error's message says why and the code is
   * RLX_PLUGIN_UNAVAILABLE. */
  rlx_code (*probe)(const char* device, int32_t* count, rlx_error* error);
  /* The options that open and compile take: a list that lives as long as the library. */
  rlx_code (*option_infos)(const rlx_option_info** list, size_t* count, rlx_error* error);
  /* For reports, at most `capacity` bytes with the 0 behind: "acme v2 (8 cores)". */
  rlx_code (*target_name)(const rlx_options* options, char* text, size_t capacity, rlx_error* error);
  /* The op kinds of which it runs some node, with blanks between; lives as long as the library. They are names of kinds
   * ("binary", "activation"), not of the functions that a text shows in their place ("add", "relu"). A node of
   * any other kind is decomposed or refused, whatever `claims` says of it. */
  rlx_code (*claimed_kinds)(const rlx_options* options, const char** kinds, rlx_error* error);
  /* Of each node of the graph, in node order, null or why it cannot be run: text that lives as long as the library. The
   * answer for a node depends on its op, its operands' shapes and the ops that make them. `nodes` are the graph's. */
  rlx_code (*claims)(const rlx_options* options, const rlx_graph* graph, const char** reasons, size_t nodes,
                     rlx_error* error);
  /* Code for the graph, whose shapes are numbers. */
  rlx_code (*compile)(const rlx_options* options, const rlx_graph* graph, const rlx_alias* aliases, size_t num_aliases,
                      rlx_program** program, rlx_error* error);
  void (*program_destroy)(rlx_program* program);

  /* -- a device -- */
  rlx_code (*device_open)(const char* device, int32_t ordinal, const rlx_options* options, rlx_device** opened,
                          rlx_error* error);
  void (*device_destroy)(rlx_device* device);
  rlx_code (*device_memory)(rlx_device* device, rlx_memory* memory, rlx_error* error);
  int32_t (*device_lost)(rlx_device* device); /* not 0 once it failed for good */
  rlx_code (*device_drain)(rlx_device* device, rlx_error* error); /* returns when all work is done or has failed */

  /* -- streams of work, and points of them -- */
  /* `native`: 0, or the driver's own stream to wrap. */
  rlx_code (*stream_create)(rlx_device* device, uintptr_t native, rlx_stream** stream, rlx_error* error);
  void (*stream_destroy)(rlx_stream* stream);
  rlx_code (*stream_record)(rlx_stream* stream, rlx_event** event, rlx_error* error);
  /* Work submitted from now on runs after `event`, which may be of another device of the plug-in, and fails when that
   * failed, unless `order_only`. A stream that failed waits too: its points are not ready before `event`. */
  rlx_code (*stream_wait)(rlx_stream* stream, rlx_event* event, int32_t order_only, rlx_error* error);
  /* Never block. */
  int32_t (*event_ready)(rlx_event* event);
  int32_t (*event_failed)(rlx_event* event);
  /* Blocks; its error is what failed up to here. */
  rlx_code (*event_wait)(rlx_event* event, rlx_error* error);
  void (*event_destroy)(rlx_event* event);

  /* -- values -- */
  /* The host's bytes have been read when it returns. `use` is an index of rlx_memory::in_use. */
  rlx_code (*put)(rlx_device* device, rlx_stream* stream, const rlx_value* value, uint32_t use, rlx_buffer** buffer,
                  rlx_error* error);
  /* Writes the value's bytes by the time a wait behind it returns, and not after one that failed. */
  rlx_code (*get)(rlx_stream* stream, rlx_buffer* buffer, void* to, size_t bytes, rlx_error* error);
  uintptr_t (*buffer_native)(rlx_buffer* buffer); /* the driver's own name of it, or 0 */
  void (*buffer_destroy)(rlx_buffer* buffer);

  /* -- runs -- */
  /* Starts a run behind what the stream holds; `done` is the point of its end. One that does not return RLX_PLUGIN_OK
   * has taken nothing and left nothing under way: slots and buffers are as they were. */
  rlx_code (*run)(rlx_program* program, rlx_device* device, rlx_stream* stream, rlx_run* run, rlx_event** done,
                  rlx_error* error);
} rlx_plugin;

/* What a library exports under this name. The host's version lets a plug-in refuse with a null. */
typedef const rlx_plugin* (*rlx_plugin_entry_function)(uint32_t host_abi_major, uint32_t host_abi_minor);
#define RLX_PLUGIN_ENTRY_NAME "rlx_plugin_entry"

#ifdef __cplusplus
}
#endif

#endif
