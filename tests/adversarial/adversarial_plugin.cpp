// The plug-in table's functions over the worker that arena mode uses too. Errors cross the table as codes and texts.
#include "tests/adversarial/adversarial_plugin.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rlx/device/device.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/serial/serialize.h"
#include "tests/adversarial/adversarial_queue.h"

namespace rlx::test {
namespace {

struct DeviceState {
  std::shared_ptr<AdversarialQueue> queue;
  std::array<std::shared_ptr<std::atomic<std::size_t>>, RLX_PLUGIN_USES> in_use;
  std::size_t limit = 0;
  std::string name;
  std::mutex mutex;  // guards the members below
  int fail_after = -1;
  std::string why;
  std::mt19937_64 random;
  std::thread worker;

  ~DeviceState() {
    queue->close();
    if (worker.joinable()) worker.join();
  }
  std::size_t used() const {
    std::size_t sum = 0;
    for (const auto& n : in_use) sum += *n;
    return sum;
  }
  void check_step() {
    std::lock_guard lock(mutex);
    if (fail_after < 0 || fail_after-- > 0) return;
    throw Error(ErrorCode::Internal, why);
  }
  std::uint64_t draw() {
    std::lock_guard lock(mutex);
    return random();
  }
};

/// The current state of the plug-in.
struct PluginState {
  std::mutex mutex;
  AdversarialOptions options;
  std::map<int, std::weak_ptr<DeviceState>> devices;
  std::atomic<std::uint64_t> steps{0}, runs{0}, compiles{0}, puts{0}, gets{0}, reordered{0}, late{0}, taken{0};
};
PluginState& state() {
  static PluginState s;
  return s;
}

void fill(char* to, std::size_t capacity, std::string_view text) {
  const std::size_t n = std::min(capacity - 1, text.size());
  std::memcpy(to, text.data(), n);
  to[n] = 0;
}

rlx_code code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument: return RLX_PLUGIN_INVALID_ARGUMENT;
    case ErrorCode::Unsupported: return RLX_PLUGIN_UNSUPPORTED;
    case ErrorCode::OutOfMemory: return RLX_PLUGIN_OUT_OF_MEMORY;
    case ErrorCode::DeviceLost: return RLX_PLUGIN_DEVICE_LOST;
    case ErrorCode::DeviceUnavailable: return RLX_PLUGIN_UNAVAILABLE;
    default: return RLX_PLUGIN_INTERNAL;
  }
}

// No exception may leave the table.
template <class F>
rlx_code guarded(rlx_error* error, F&& f) {
  try {
    f();
    return RLX_PLUGIN_OK;
  } catch (const Error& e) {
    fill(error->message, sizeof error->message, e.diagnostic().message);
    fill(error->hint, sizeof error->hint, e.diagnostic().hint);
    return code_of(e.code());
  } catch (const std::bad_alloc&) {
    fill(error->message, sizeof error->message, "the host has no memory");
    return RLX_PLUGIN_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    fill(error->message, sizeof error->message, e.what());
    return RLX_PLUGIN_INTERNAL;
  }
}

Graph read_graph(const rlx_graph* g) {
  return from_bytes({static_cast<const std::byte*>(g->bytes), g->size}, "the graph given to the plug-in");
}

}  // namespace
}  // namespace rlx::test

// The table's handles.
struct rlx_device {
  std::shared_ptr<rlx::test::DeviceState> state;
};
struct rlx_stream {
  std::shared_ptr<rlx::test::DeviceState> device;
  std::shared_ptr<rlx::test::AdversarialLane> lane;
};
struct rlx_event {
  rlx::Event event;
};
struct rlx_buffer {
  std::shared_ptr<rlx::test::AdversarialBytes> bytes;
};

namespace rlx::test {
namespace {

using Bytes = std::shared_ptr<AdversarialBytes>;

Bytes allocate(DeviceState& device, std::size_t bytes, std::size_t use) {
  if (device.used() + bytes > device.limit)
    throw Error(ErrorCode::OutOfMemory,
                concat_text(bytes, " bytes are wanted, ", device.used(), " of ", device.limit, " are in use"));
  return std::make_shared<AdversarialBytes>(bytes, false, 256, device.in_use[use]);
}

Tensor load(const AdversarialBytes& bytes, const Shape& shape) { return Tensor::copy_of(bytes.worker(), shape); }

/// The values of one run, held while it waits.
struct RunValues {
  // new_states: null where the graph keeps the old one
  std::vector<Bytes> inputs, outputs, weights, states, new_states;
  std::vector<Bytes> taken;  // donated; never read again
};

}  // namespace
}  // namespace rlx::test

struct rlx_program {
  rlx::Graph graph;
  std::vector<rlx_alias> aliases;
  std::vector<std::optional<rlx::Value>> updates;  // per state

  void run(rlx::test::DeviceState& device, const rlx::test::RunValues& v) const;
};

// Runs the steps in a random order that the graph allows, drawn anew for each run.
void rlx_program::run(rlx::test::DeviceState& device, const rlx::test::RunValues& v) const {
  using namespace rlx;
  using namespace rlx::test;
  ++state().runs;
  const std::size_t n = graph.num_nodes();
  std::vector<std::vector<Tensor>> values(n);
  std::vector<int> waits(n, 0);
  std::vector<std::vector<std::size_t>> behind(n);
  std::vector<std::size_t> ready;
  std::size_t next_input = 0, next_param = 0, next_state = 0, done = 0, most = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    const Node& node = graph.nodes()[i];
    switch (node.kind()) {
      case OpKind::Input: values[i].push_back(load(*v.inputs.at(next_input++), node.shape())); break;
      case OpKind::Param: values[i].push_back(load(*v.weights.at(next_param++), node.shape())); break;
      case OpKind::State: values[i].push_back(load(*v.states.at(next_state++), node.shape())); break;
      case OpKind::Constant: values[i].push_back(node.op.as<ops::Constant>().value); break;
      default: break;
    }
    for (Value operand : node.inputs) behind[operand.node.index].push_back(i), ++waits[i];
    if (node.inputs.empty()) ready.push_back(i);
  }
  for (; !ready.empty(); ++done) {
    std::swap(ready[device.draw() % ready.size()], ready.back());
    const std::size_t i = ready.back();
    ready.pop_back();
    if (i < most) ++state().reordered;
    most = std::max(most, i);
    if (values[i].empty()) {
      const Node& node = graph.nodes()[i];
      device.check_step();
      std::vector<Tensor> operands;
      for (Value operand : node.inputs) operands.push_back(values[operand.node.index].at(operand.result));
      values[i] = evaluate_op(node.op, operands);
      ++state().steps;
    }
    for (std::size_t k : behind[i])
      if (--waits[k] == 0) ready.push_back(k);
  }
  check(done == n, "a graph that runs in a circle");
  const auto store = [&](Value from, const AdversarialBytes& to) {
    const Tensor& t = values[from.node.index].at(from.result);
    check(t.size_bytes() == to.bytes(), "a buffer of another size than its value");
    if (t.size_bytes() != 0) std::memcpy(to.worker(), t.data(), t.size_bytes());
  };
  // A later read of a donated value finds NaN.
  for (const Bytes& t : v.taken) std::memset(t->worker(), 0xff, t->bytes());
  for (std::size_t o = 0; o < v.outputs.size(); ++o) store(graph.outputs()[o], *v.outputs[o]);
  for (std::size_t s = 0; s < v.new_states.size(); ++s)
    if (v.new_states[s]) store(*updates[s], *v.new_states[s]);
}

namespace rlx::test {
namespace {

rlx_code probe(const char*, std::int32_t* count, rlx_error* error) {
  return guarded(error, [&] {
    std::lock_guard lock(state().mutex);
    *count = state().options.devices;
  });
}

rlx_code option_infos(const rlx_option_info** list, std::size_t* count, rlx_error*) {
  static const rlx_option_info infos[] = {{"memory", "bytes of each device", 1}, {"mode", "fast or slow", 0}};
  *list = infos, *count = std::size(infos);
  return RLX_PLUGIN_OK;
}

rlx_code target_name(const rlx_options*, char* text, std::size_t capacity, rlx_error*) {
  fill(text, capacity, "adversarial (opaque)");
  return RLX_PLUGIN_OK;
}

rlx_code claimed_kinds(const rlx_options*, const char** kinds, rlx_error* error) {
  return guarded(error, [&] {
    static const std::string all = [] {
      std::string text;
      for (const OpDef* def : all_op_defs())
        if (def->level != Level::Lir && !def->is_leaf() &&
            (def->reference.has() || def->reference.derived() || def->kind == OpKind::Custom))
          text += concat_text(def->name, " ");
      return text;
    }();
    *kinds = all.c_str();
  });
}

bool holds_refused(const Graph& g, const OpSet& refused) {
  for (const Node& n : g.nodes())
    if (refused.has(n.kind())) return true;
  return any_body(g, [&](const Graph& body) { return holds_refused(body, refused); });
}

AdversarialOptions options_now() {
  std::lock_guard lock(state().mutex);
  return state().options;
}

const char* why_refused(const Graph& g, NodeId id, const AdversarialOptions& options) {
  const Node& n = g.node(id);
  for (const Subgraph& body : body_graphs(n.op))
    if (holds_refused(*body, options.refuse)) return "its body holds what the test asks it to refuse";
  if (options.refuse.has(n.kind())) return "the test asks it to refuse";
  if (options.refuse_on_inputs.has(n.kind()))
    for (Value v : n.inputs)
      if (g.node(v.node).kind() == OpKind::Input) return "the test asks it to refuse what reads an input";
  return n.kind() != OpKind::Custom || op_def(n.op).reference.has() ? nullptr : "the op has no reference rule";
}

rlx_code claims(const rlx_options*, const rlx_graph* graph, const char** reasons, std::size_t nodes, rlx_error* error) {
  return guarded(error, [&] {
    const Graph g = read_graph(graph);
    check(g.num_nodes() == nodes, "claims of another number of nodes than the graph has");
    const AdversarialOptions options = options_now();
    for (std::uint32_t i = 0; i < nodes; ++i) reasons[i] = why_refused(g, NodeId{i}, options);
  });
}

rlx_code compile(const rlx_options*, const rlx_graph* graph, const rlx_alias* aliases, std::size_t num_aliases,
                 rlx_program** out, rlx_error* error) {
  return guarded(error, [&] {
    auto program = std::make_unique<rlx_program>(rlx_program{read_graph(graph), {aliases, aliases + num_aliases}, {}});
    check(program->graph.is_static(), "a graph with symbols to compile");
    const AdversarialOptions options = options_now();
    for (std::uint32_t i = 0; i < program->graph.num_nodes(); ++i)
      check(!why_refused(program->graph, NodeId{i}, options), "the plug-in was given what it refuses");
    for (NodeId id : program->graph.leaves(OpKind::State)) {
      program->updates.emplace_back();
      for (const Graph::StateUpdate& u : program->graph.state_updates())
        if (u.name == program->graph.leaf_name(id)) program->updates.back() = u.value;
    }
    ++state().compiles;
    *out = program.release();
  });
}

rlx_code device_open(const char* kind, std::int32_t ordinal, const rlx_options* options, rlx_device** out,
                     rlx_error* error) {
  return guarded(error, [&] {
    PluginState& s = state();
    std::lock_guard lock(s.mutex);
    auto device = std::make_shared<DeviceState>();
    device->queue = std::make_shared<AdversarialQueue>(s.options.seed + static_cast<std::uint64_t>(ordinal) * 977);
    device->limit = s.options.memory_bytes;
    for (std::size_t i = 0; i < options->count; ++i)
      if (std::string_view(options->list[i].key) == "memory") {
        const std::string text = options->list[i].value;
        if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos)
          throw Error(ErrorCode::InvalidArgument, concat_text("option memory = '", text, "' is no number of bytes"),
                      "give digits");
        device->limit = std::stoull(text);
      }
    device->name = ordinal ? concat_text(kind, ":", ordinal) : std::string(kind);
    device->random.seed(s.options.seed);
    for (auto& n : device->in_use) n = std::make_shared<std::atomic<std::size_t>>(0);
    device->worker = std::thread([queue = device->queue] { queue->work(); });
    s.devices[ordinal] = device;
    *out = new rlx_device{std::move(device)};
  });
}

rlx_code device_memory(rlx_device* device, rlx_memory* memory, rlx_error*) {
  memory->total = device->state->limit;
  for (std::size_t i = 0; i < RLX_PLUGIN_USES; ++i) memory->in_use[i] = *device->state->in_use[i];
  return RLX_PLUGIN_OK;
}

rlx_code stream_create(rlx_device* device, std::uintptr_t native, rlx_stream** out, rlx_error* error) {
  return guarded(error, [&] {
    if (native != 0) throw Error(ErrorCode::InvalidArgument, "the adversarial test device has no streams but its own");
    *out = new rlx_stream{device->state, std::make_shared<AdversarialLane>()};
  });
}

rlx_code put(rlx_device* device, rlx_stream* stream, const rlx_value* value, std::uint32_t use, rlx_buffer** out,
             rlx_error* error) {
  return guarded(error, [&] {
    const std::optional<DType> dtype = parse_dtype(value->dtype);
    check(dtype.has_value(), "a value of no dtype");
    std::int64_t elements = 1;
    for (std::size_t i = 0; i < value->rank; ++i) elements *= value->dims[i];
    check(size_bytes(*dtype, elements) == value->bytes, "a value whose dims do not say its bytes");
    const Bytes to = allocate(*device->state, value->bytes, use);
    const auto* const from = static_cast<const std::byte*>(value->data);
    std::vector<std::byte> copy(from, from + value->bytes);
    auto made = std::make_unique<rlx_buffer>(rlx_buffer{to});
    stream->device->queue->add(stream->lane,
                               [to, copy = std::move(copy)] {
                                 if (!copy.empty()) std::memcpy(to->worker(), copy.data(), copy.size());
                               },
                               {to});
    ++state().puts;
    *out = made.release();
  });
}

rlx_code get(rlx_stream* stream, rlx_buffer* buffer, void* to, std::size_t bytes, rlx_error* error) {
  return guarded(error, [&] {
    check(bytes == buffer->bytes->bytes(), "get of another size than the value has");
    const Bytes from = buffer->bytes;
    stream->device->queue->add(stream->lane,
                               [from, to, bytes] {
                                 if (bytes != 0) std::memcpy(to, from->worker(), bytes);
                               },
                               {from});
    ++state().gets;
  });
}

rlx_code run(rlx_program* program, rlx_device* device, rlx_stream* stream, rlx_run* run, rlx_event** out,
             rlx_error* error) {
  return guarded(error, [&] {
    DeviceState& on = *device->state;
    auto values = std::make_shared<RunValues>();
    const Graph& g = program->graph;
    constexpr std::size_t kStates = 2, kValues = 5;  // BufferUse
    // Everything that can fail comes first, so a failure leaves the arguments unchanged.
    for (std::size_t o = 0; o < run->num_outputs; ++o)
      values->outputs.push_back(allocate(on, g.shape(g.outputs()[o]).size_bytes(), kValues));
    for (std::size_t s = 0; s < run->num_states; ++s) {
      const Bytes& before = run->states[s].buffer->bytes;
      values->states.push_back(before);
      values->new_states.push_back(nullptr);
      if (!program->updates[s]) continue;
      // Sometimes in place, if nobody else holds it.
      const bool in_place = run->states[s].given && on.draw() % 2 == 0;
      values->new_states.back() = in_place ? before : allocate(on, before->bytes(), kStates);
    }
    for (std::size_t i = 0; i < run->num_inputs; ++i) values->inputs.push_back(run->inputs[i].buffer->bytes);
    for (std::size_t i = 0; i < run->num_weights; ++i) values->weights.push_back(run->weights[i]->bytes);
    for (std::size_t i = 0; i < run->num_inputs; ++i)
      if (run->inputs[i].given) {
        const auto aliased = std::any_of(program->aliases.begin(), program->aliases.end(),
                                         [&](const rlx_alias& a) { return a.input == i; });
        check(aliased, "an input is given to the run that no alias names");
        values->taken.push_back(values->inputs[i]);
      }
    for (std::size_t s = 0; s < run->num_states; ++s)
      if (run->states[s].given && values->new_states[s] && values->new_states[s] != values->states[s])
        values->taken.push_back(values->states[s]);
    Holds holds;
    for (const auto* list : {&values->inputs, &values->outputs, &values->weights, &values->states, &values->taken})
      holds.insert(holds.end(), list->begin(), list->end());
    auto returned = std::make_shared<std::atomic<bool>>(false);
    // A copy of the program, as rlx may release it while the run waits.
    auto code = std::make_shared<rlx_program>(*program);
    auto end = std::make_unique<rlx_event>();
    std::vector<std::unique_ptr<rlx_buffer>> outputs, states;
    for (const Bytes& b : values->outputs) outputs.push_back(std::make_unique<rlx_buffer>(rlx_buffer{b}));
    for (const Bytes& b : values->new_states) states.push_back(std::make_unique<rlx_buffer>(rlx_buffer{b}));
    end->event = stream->device->queue->add(
        stream->lane,
        [code, values, returned, device_state = device->state.get(), ns = run->ns] {
          if (*returned) ++state().late;
          code->run(*device_state, *values);
          if (ns) *ns = 1;
        },
        std::move(holds));
    *out = end.release();
    for (std::size_t i = 0; i < run->num_inputs; ++i)
      if (run->inputs[i].given) {
        delete run->inputs[i].buffer;
        run->inputs[i].buffer = nullptr;
        ++state().taken;
      }
    for (std::size_t o = 0; o < run->num_outputs; ++o) run->outputs[o].buffer = outputs[o].release();
    for (std::size_t s = 0; s < run->num_states; ++s) {
      const Bytes& now = values->new_states[s];
      if (!now || now == values->states[s]) continue;
      if (run->states[s].given) delete run->states[s].buffer;
      run->states[s].buffer = states[s].release();
    }
    *returned = true;
  });
}

class AdversarialPlugin final : public AdversarialControl {
 public:
  explicit AdversarialPlugin(const AdversarialOptions& options) {
    PluginState& s = state();
    std::lock_guard lock(s.mutex);
    s.options = options;
    s.devices.clear();
    for (auto* n : {&s.steps, &s.runs, &s.compiles, &s.puts, &s.gets, &s.reordered, &s.late, &s.taken}) *n = 0;
  }
  void fail_step(int ordinal, int n, std::string why) override {
    const auto device = opened(ordinal);
    std::lock_guard lock(device->mutex);
    device->fail_after = n;
    device->why = std::move(why);
  }
  void lose(int ordinal) override {
    const auto device = opened(ordinal);
    device->queue->lose(
        std::make_exception_ptr(Error(ErrorCode::DeviceLost, concat_text("device ", device->name, " was lost"))));
  }
  Counts counts() const override {
    const PluginState& s = state();
    Counts c;
    c.steps = s.steps, c.runs = s.runs, c.binds = s.compiles, c.uploads = s.puts, c.downloads = s.gets;
    c.reordered = s.reordered, c.late = s.late, c.taken = s.taken;
    return c;
  }

 private:
  static std::shared_ptr<DeviceState> opened(int ordinal) {
    std::lock_guard lock(state().mutex);
    auto device = state().devices[ordinal].lock();
    check(device != nullptr, "a adversarial test device that is not open");
    return device;
  }
};

}  // namespace

const rlx_plugin* adversarial_plugin_table() {
  static const rlx_plugin table = [] {
    rlx_plugin t{};
    t.struct_size = sizeof t;
    t.abi_major = RLX_PLUGIN_ABI_MAJOR, t.abi_minor = RLX_PLUGIN_ABI_MINOR;
    t.graph_version = RLX_PLUGIN_GRAPH_VERSION;
    t.name = "adversarial", t.devices = "directx";
    t.probe = probe, t.option_infos = option_infos, t.target_name = target_name, t.claimed_kinds = claimed_kinds;
    t.claims = claims, t.compile = compile;
    t.program_destroy = [](rlx_program* p) { delete p; };
    t.device_open = device_open, t.device_memory = device_memory;
    t.device_destroy = [](rlx_device* d) { delete d; };
    t.device_lost = [](rlx_device* d) -> std::int32_t { return d->state->queue->lost(); };
    t.device_drain = [](rlx_device* d, rlx_error* e) { return guarded(e, [&] { d->state->queue->drain(); }); };
    t.stream_create = stream_create;
    t.stream_destroy = [](rlx_stream* s) { delete s; };
    t.stream_record = [](rlx_stream* s, rlx_event** out, rlx_error* e) {
      return guarded(e, [&] {
        auto made = std::make_unique<rlx_event>();
        made->event = s->device->queue->record(s->lane);
        *out = made.release();
      });
    };
    t.stream_wait = [](rlx_stream* s, rlx_event* event, std::int32_t order_only, rlx_error* e) {
      return guarded(e, [&] {
        s->device->queue->add(
            s->lane, [] {}, {}, event->event, order_only != 0);
      });
    };
    t.event_ready = [](rlx_event* e) -> std::int32_t { return e->event.ready(); };
    t.event_failed = [](rlx_event* e) -> std::int32_t { return e->event.failed(); };
    t.event_wait = [](rlx_event* event, rlx_error* e) { return guarded(e, [&] { event->event.wait(); }); };
    t.event_destroy = [](rlx_event* e) { delete e; };
    t.put = put, t.get = get, t.run = run;
    t.buffer_native = [](rlx_buffer* b) { return reinterpret_cast<std::uintptr_t>(b->bytes.get()); };
    t.buffer_destroy = [](rlx_buffer* b) { delete b; };
    return t;
  }();
  return &table;
}

std::unique_ptr<AdversarialControl> adversarial_plugin(const AdversarialOptions& options) {
  return std::make_unique<AdversarialPlugin>(options);
}

}  // namespace rlx::test
