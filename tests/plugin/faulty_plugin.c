/* Plug-ins in C, each with one fault: a table of another version, one with a null member, one whose calls all fail, and
 * a library without the entry function. */
#include <rlx/device/plugin.h>
#include <string.h>

static rlx_code fail(rlx_error* e) {
  strcpy(e->message, "nothing works here");
  strcpy(e->hint, "try another day");
  return RLX_PLUGIN_INTERNAL;
}

static rlx_code probe(const char* device, int32_t* count, rlx_error* e) {
  (void)device;
  (void)e;
  *count = 1;
  return RLX_PLUGIN_OK;
}
static rlx_code option_infos(const rlx_option_info** list, size_t* count, rlx_error* e) {
  (void)list;
  (void)count;
  return fail(e);
}
static rlx_code target_name(const rlx_options* o, char* text, size_t n, rlx_error* e) {
  (void)o;
  (void)text;
  (void)n;
  return fail(e);
}
static rlx_code claimed_kinds(const rlx_options* o, const char** kinds, rlx_error* e) {
  (void)o;
  (void)kinds;
  return fail(e);
}
static rlx_code claims(const rlx_options* o, const rlx_graph* g, const char** reasons, size_t n, rlx_error* e) {
  (void)o;
  (void)g;
  (void)reasons;
  (void)n;
  return fail(e);
}
static rlx_code compile(const rlx_options* o, const rlx_graph* g, const rlx_alias* a, size_t n, rlx_program** p,
                        rlx_error* e) {
  (void)o;
  (void)g;
  (void)a;
  (void)n;
  (void)p;
  return fail(e);
}
static void program_destroy(rlx_program* p) { (void)p; }
static rlx_code device_open(const char* kind, int32_t ordinal, const rlx_options* o, rlx_device** d, rlx_error* e) {
  (void)kind;
  (void)ordinal;
  (void)o;
  (void)d;
  return fail(e);
}
static void device_destroy(rlx_device* d) { (void)d; }
static rlx_code device_memory(rlx_device* d, rlx_memory* m, rlx_error* e) {
  (void)d;
  (void)m;
  return fail(e);
}
static int32_t device_lost(rlx_device* d) {
  (void)d;
  return 0;
}
static rlx_code device_drain(rlx_device* d, rlx_error* e) {
  (void)d;
  return fail(e);
}
static rlx_code stream_create(rlx_device* d, uintptr_t native, rlx_stream** s, rlx_error* e) {
  (void)d;
  (void)native;
  (void)s;
  return fail(e);
}
static void stream_destroy(rlx_stream* s) { (void)s; }
static rlx_code stream_record(rlx_stream* s, rlx_event** made, rlx_error* e) {
  (void)s;
  (void)made;
  return fail(e);
}
static rlx_code stream_wait(rlx_stream* s, rlx_event* on, int32_t order_only, rlx_error* e) {
  (void)s;
  (void)on;
  (void)order_only;
  return fail(e);
}
static int32_t event_ready(rlx_event* event) {
  (void)event;
  return 1;
}
static int32_t event_failed(rlx_event* event) {
  (void)event;
  return 1;
}
static rlx_code event_wait(rlx_event* event, rlx_error* e) {
  (void)event;
  return fail(e);
}
static void event_destroy(rlx_event* event) { (void)event; }
static rlx_code put(rlx_device* d, rlx_stream* s, const rlx_value* v, uint32_t use, rlx_buffer** b, rlx_error* e) {
  (void)d;
  (void)s;
  (void)v;
  (void)use;
  (void)b;
  return fail(e);
}
static rlx_code get(rlx_stream* s, rlx_buffer* b, void* to, size_t bytes, rlx_error* e) {
  (void)s;
  (void)b;
  (void)to;
  (void)bytes;
  return fail(e);
}
static uintptr_t buffer_native(rlx_buffer* b) {
  (void)b;
  return 0;
}
static void buffer_destroy(rlx_buffer* b) { (void)b; }
static rlx_code run(rlx_program* p, rlx_device* d, rlx_stream* s, rlx_run* r, rlx_event** done, rlx_error* e) {
  (void)p;
  (void)d;
  (void)s;
  (void)r;
  (void)done;
  return fail(e);
}

static const rlx_plugin table = {sizeof(rlx_plugin),
#ifdef FAULT_VERSION
                                 RLX_PLUGIN_ABI_MAJOR + 1,
#else
                                  RLX_PLUGIN_ABI_MAJOR,
#endif
                                 RLX_PLUGIN_ABI_MINOR,
                                 RLX_PLUGIN_GRAPH_VERSION,
                                 "faulty",
                                 "rocm",
                                 probe,
                                 option_infos,
                                 target_name,
                                 claimed_kinds,
                                 claims,
#ifdef FAULT_NULL
                                 NULL,
#else
                                  compile,
#endif
                                 program_destroy,
                                 device_open,
                                 device_destroy,
                                 device_memory,
                                 device_lost,
                                 device_drain,
                                 stream_create,
                                 stream_destroy,
                                 stream_record,
                                 stream_wait,
                                 event_ready,
                                 event_failed,
                                 event_wait,
                                 event_destroy,
                                 put,
                                 get,
                                 buffer_native,
                                 buffer_destroy,
                                 run};

#ifdef FAULT_NOENTRY
const rlx_plugin* another_name(uint32_t major, uint32_t minor);
const rlx_plugin* another_name(uint32_t major, uint32_t minor) {
#else
const rlx_plugin* rlx_plugin_entry(uint32_t major, uint32_t minor);
const rlx_plugin* rlx_plugin_entry(uint32_t major, uint32_t minor) {
#endif
  (void)major;
  (void)minor;
  return &table;
}
