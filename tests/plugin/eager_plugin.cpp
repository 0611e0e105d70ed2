// A whole backend of another project: values are tensors, a run is done when it returns. Read it beside
// rlx/device/plugin.h to start one.
#include <rlx/device/plugin.h>
#include <rlx/ir/evaluate.h>
#include <rlx/ir/op_def.h>
#include <rlx/ir/ops/leaves.h>
#include <rlx/ir/serial/serialize.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

using namespace rlx;

namespace {
using Uses = std::array<std::atomic<std::uint64_t>, RLX_PLUGIN_USES>;
constexpr std::size_t kStates = 2, kValues = 5;  // places in rlx_memory::in_use
}  // namespace

struct rlx_device {
  std::shared_ptr<Uses> uses = std::make_shared<Uses>();
};
struct rlx_stream {
  std::shared_ptr<Uses> uses;
};
struct rlx_event {};  // all work is done when it is recorded
struct rlx_buffer {
  Tensor value;
  std::size_t use;
  std::shared_ptr<Uses> uses;
  rlx_buffer(Tensor v, std::size_t u, std::shared_ptr<Uses> all) : value(std::move(v)), use(u), uses(std::move(all)) {
    (*uses)[use] += value.size_bytes();
  }
  ~rlx_buffer() { (*uses)[use] -= value.size_bytes(); }
};
struct rlx_program {
  Graph graph;
};

namespace {

void put_text(char* to, std::size_t room, const std::string& text) {
  const std::size_t n = std::min(room - 1, text.size());
  std::memcpy(to, text.data(), n);
  to[n] = 0;
}

// No exception may leave the table.
template <class F>
rlx_code guarded(rlx_error* e, F f) {
  try {
    f();
    return RLX_PLUGIN_OK;
  } catch (const Error& error) {
    put_text(e->message, sizeof e->message, error.diagnostic().message);
    put_text(e->hint, sizeof e->hint, error.diagnostic().hint);
    return error.code() == ErrorCode::OutOfMemory ? RLX_PLUGIN_OUT_OF_MEMORY : RLX_PLUGIN_INTERNAL;
  } catch (const std::exception& error) {
    put_text(e->message, sizeof e->message, error.what());
    return RLX_PLUGIN_INTERNAL;
  }
}

Graph graph_of(const rlx_graph* g) {
  return from_bytes({static_cast<const std::byte*>(g->bytes), g->size}, "the graph");
}

const std::string& op_names() {
  static const std::string names = [] {
    std::string text;
    for (const OpDef* def : all_op_defs())
      if (def->level != Level::Lir && !def->is_leaf() && (def->reference.has() || def->reference.derived()))
        text += std::string(def->name) + " ";
    return text;
  }();
  return names;
}

// The values of all nodes, in node order.
std::vector<std::vector<Tensor>> compute(const Graph& g, const rlx_run& run) {
  std::vector<std::vector<Tensor>> values;
  std::size_t input = 0, param = 0, state = 0;
  for (const Node& n : g.nodes()) {
    std::vector<Tensor> operands;
    for (Value v : n.inputs) operands.push_back(values[v.node.index][v.result]);
    switch (n.kind()) {
      case OpKind::Input: values.push_back({run.inputs[input++].buffer->value}); break;
      case OpKind::Param: values.push_back({run.weights[param++]->value}); break;
      case OpKind::State: values.push_back({run.states[state++].buffer->value}); break;
      case OpKind::Constant: values.push_back({n.op.as<ops::Constant>().value}); break;
      default: values.push_back(evaluate_op(n.op, operands));
    }
  }
  return values;
}

rlx_code run(rlx_program* program, rlx_device* device, rlx_stream*, rlx_run* run, rlx_event** done, rlx_error* e) {
  return guarded(e, [&] {
    const Graph& g = program->graph;
    const auto values = compute(g, *run);
    const auto at = [&](Value v) { return values[v.node.index][v.result]; };
    for (std::size_t o = 0; o < run->num_outputs; ++o)
      run->outputs[o].buffer = new rlx_buffer(at(g.outputs()[o]), kValues, device->uses);
    const std::vector<NodeId> states = g.leaves(OpKind::State);
    for (const Graph::StateUpdate& update : g.state_updates())
      for (std::size_t s = 0; s < states.size(); ++s) {
        if (g.leaf_name(states[s]) != update.name) continue;
        rlx_slot& slot = run->states[s];
        if (slot.given) delete slot.buffer;
        slot.buffer = new rlx_buffer(at(update.value), kStates, device->uses);
      }
    for (std::size_t i = 0; i < run->num_inputs; ++i)
      if (run->inputs[i].given) {
        delete run->inputs[i].buffer;
        run->inputs[i].buffer = nullptr;
      }
    *done = new rlx_event;
  });
}

rlx_plugin make_table() {
  rlx_plugin t{};
  t.struct_size = sizeof t;
  t.abi_major = RLX_PLUGIN_ABI_MAJOR;
  t.abi_minor = RLX_PLUGIN_ABI_MINOR;
  t.graph_version = RLX_PLUGIN_GRAPH_VERSION;
  t.name = "eager";
  t.devices = "tpu";
  t.probe = [](const char*, int32_t* count, rlx_error*) -> rlx_code { return *count = 2, RLX_PLUGIN_OK; };
  t.option_infos = [](const rlx_option_info** list, size_t* count, rlx_error*) -> rlx_code {
    static const rlx_option_info infos[] = {{"speed", "any word", 0}};
    return *list = infos, *count = 1, RLX_PLUGIN_OK;
  };
  t.target_name = [](const rlx_options*, char* text, size_t room, rlx_error*) -> rlx_code {
    put_text(text, room, "eager (tensors)");
    return RLX_PLUGIN_OK;
  };
  t.claimed_kinds = [](const rlx_options*, const char** kinds, rlx_error* e) {
    return guarded(e, [&] { *kinds = op_names().c_str(); });
  };
  t.claims = [](const rlx_options*, const rlx_graph*, const char** reasons, size_t nodes, rlx_error*) -> rlx_code {
    std::fill(reasons, reasons + nodes, nullptr);
    return RLX_PLUGIN_OK;
  };
  t.compile = [](const rlx_options*, const rlx_graph* g, const rlx_alias*, size_t, rlx_program** p, rlx_error* e) {
    return guarded(e, [&] { *p = new rlx_program{graph_of(g)}; });
  };
  t.program_destroy = [](rlx_program* p) { delete p; };
  t.device_open = [](const char*, int32_t, const rlx_options*, rlx_device** d, rlx_error* e) {
    return guarded(e, [&] { *d = new rlx_device; });
  };
  t.device_destroy = [](rlx_device* d) { delete d; };
  t.device_memory = [](rlx_device* d, rlx_memory* m, rlx_error*) -> rlx_code {
    for (std::size_t i = 0; i < RLX_PLUGIN_USES; ++i) m->in_use[i] = (*d->uses)[i];
    return RLX_PLUGIN_OK;
  };
  t.device_lost = [](rlx_device*) { return int32_t{0}; };
  t.device_drain = [](rlx_device*, rlx_error*) -> rlx_code { return RLX_PLUGIN_OK; };
  t.stream_create = [](rlx_device* d, uintptr_t, rlx_stream** s, rlx_error* e) {
    return guarded(e, [&] { *s = new rlx_stream{d->uses}; });
  };
  t.stream_destroy = [](rlx_stream* s) { delete s; };
  t.stream_record = [](rlx_stream*, rlx_event** made, rlx_error* e) {
    return guarded(e, [&] { *made = new rlx_event; });
  };
  t.stream_wait = [](rlx_stream*, rlx_event*, int32_t, rlx_error*) -> rlx_code { return RLX_PLUGIN_OK; };
  t.event_ready = [](rlx_event*) { return int32_t{1}; };
  t.event_failed = [](rlx_event*) { return int32_t{0}; };
  t.event_wait = [](rlx_event*, rlx_error*) -> rlx_code { return RLX_PLUGIN_OK; };
  t.event_destroy = [](rlx_event* e) { delete e; };
  t.put = [](rlx_device* d, rlx_stream*, const rlx_value* v, uint32_t use, rlx_buffer** b, rlx_error* e) {
    return guarded(e, [&] {
      const Dims dims(v->dims, v->dims + v->rank);
      *b = new rlx_buffer(Tensor::copy_of(v->data, Shape(dims, *parse_dtype(v->dtype))), use, d->uses);
    });
  };
  t.get = [](rlx_stream*, rlx_buffer* b, void* to, size_t bytes, rlx_error*) -> rlx_code {
    if (bytes != 0) std::memcpy(to, b->value.data(), bytes);
    return RLX_PLUGIN_OK;
  };
  t.buffer_native = [](rlx_buffer*) { return uintptr_t{0}; };
  t.buffer_destroy = [](rlx_buffer* b) { delete b; };
  t.run = run;
  return t;
}

}  // namespace

extern "C" const rlx_plugin* rlx_plugin_entry(uint32_t major, uint32_t) {
  static const rlx_plugin table = make_table();
  return major == RLX_PLUGIN_ABI_MAJOR ? &table : nullptr;
}
