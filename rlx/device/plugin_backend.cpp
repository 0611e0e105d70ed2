// A plug-in as a backend. Its target asks for the claims of a whole graph at once, and its programs are whole graphs.
#include "rlx/device/plugin_backend.h"

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "rlx/device/plugin_device.h"
#include "rlx/device/registry.h"
#include "rlx/error.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/serial/serialize.h"

namespace rlx {
namespace {

rlx_graph graph_of(const std::vector<std::byte>& bytes) { return {sizeof(rlx_graph), bytes.data(), bytes.size()}; }

class TextSink final : public ByteSink {
 public:
  void write(const void* data, std::size_t size) override { text.append(static_cast<const char*>(data), size); }
  std::string text;
};

/// Asks for the claims of a whole graph at once, and caches them by everything an answer may depend on. Passes and
/// legalization ask node by node, about graphs that differ in a few nodes.
class PluginTarget final : public Target {
 public:
  PluginTarget(std::shared_ptr<const PluginTable> table, Device device, DeviceOptions options)
      : table_(std::move(table)), device_(device), options_(std::move(options)) {
    const PluginOptions given(options_);
    char text[256] = {};
    call("target_name", [&](rlx_error* e) { return table_->api().target_name(given.get(), text, sizeof text, e); });
    text[sizeof text - 1] = 0;
    name_ = text;
    const char* kinds = nullptr;
    call("claimed_kinds", [&](rlx_error* e) { return table_->api().claimed_kinds(given.get(), &kinds, e); });
    if (!kinds) table_->broke(device_info(device_).id, "claimed_kinds", "returned no text");
    read_kinds(kinds);
  }
  std::string_view name() const override { return name_; }
  Device device() const override { return device_; }
  bool opaque() const override { return true; }
  bool runtime_symbols() const override { return true; }  // code is compiled when extents are bound
  const OpSet& kinds() const override { return kinds_; }
  const char* refuses(const Graph& g, NodeId id) const override {
    const Node& n = g.node(id);
    if (op_def(n.kind()).is_leaf()) return nullptr;
    if (!has(n.kind())) return "the plug-in does not claim the op";
    const std::string key = key_of(g, n);
    std::lock_guard lock(mutex_);
    if (const auto known = answers_.find(key); known != answers_.end()) return known->second;
    ask(g);
    return answers_.at(key);
  }

 private:
  template <class F>
  void call(std::string_view what, F&& f) const {
    table_->call(device_info(device_).id, what, f);
  }
  void read_kinds(std::string_view left) {
    std::vector<std::string> names;
    for (const OpDef* def : all_op_defs()) names.emplace_back(def->name);
    while (!left.empty()) {
      const std::size_t end = std::min(left.find(' '), left.size());
      const std::string word(left.substr(0, end));
      left.remove_prefix(std::min(end + 1, left.size()));
      if (word.empty()) continue;
      const auto it = std::find(names.begin(), names.end(), word);
      if (it == names.end())
        throw Error(ErrorCode::NotFound,
                    concat_text("device ", device_info(device_).id, ", ", table_->text(), ": it claims '", word,
                                "', which is not an op"),
                    did_you_mean(word, names, "`rlx ops` lists them"));
      kinds_.add(all_op_defs()[static_cast<std::size_t>(it - names.begin())]->kind);
    }
  }
  static std::string key_of(const Graph& g, const Node& n) {
    TextSink sink;
    encode_node(n, sink);
    for (Value v : n.inputs) sink.text += concat_text(";", op_text_name(g.node(v.node).op), " ", g.shape(v));
    return std::move(sink.text);
  }
  void ask(const Graph& g) const {
    const std::vector<std::byte> bytes = to_bytes(g);
    const rlx_graph graph = graph_of(bytes);
    std::vector<const char*> reasons(g.num_nodes(), nullptr);
    const PluginOptions given(options_);
    call("claims",
         [&](rlx_error* e) { return table_->api().claims(given.get(), &graph, reasons.data(), reasons.size(), e); });
    for (std::uint32_t i = 0; i < g.num_nodes(); ++i)
      if (const Node& n = g.nodes()[i]; !op_def(n.kind()).is_leaf())
        answers_.insert_or_assign(key_of(g, n), reasons[i]);
  }

  std::shared_ptr<const PluginTable> table_;
  Device device_;
  DeviceOptions options_;
  std::string name_;
  OpSet kinds_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, const char*> answers_;
};

/// Code of one graph.
class PluginProgram {
 public:
  PluginProgram(std::shared_ptr<const PluginTable> table, std::string_view device, const DeviceOptions& options,
                const LirModule& lir)
      : table_(std::move(table)) {
    const std::vector<std::byte> bytes = to_bytes(lir.graph);
    const rlx_graph graph = graph_of(bytes);
    std::vector<rlx_alias> aliases;
    for (const LirAlias& a : lir.plan.aliases)
      if (a.refused.empty()) aliases.push_back({a.input, a.output});
    const PluginOptions given(options);
    table_->call(device, "compile", [&](rlx_error* e) {
      return table_->api().compile(given.get(), &graph, aliases.data(), aliases.size(), &handle_, e);
    });
    if (!handle_) table_->broke(device, "compile", "returned no program");
  }
  ~PluginProgram() {
    table_->give_back("program_destroy", [&] { table_->api().program_destroy(handle_); });
  }
  PluginProgram(const PluginProgram&) = delete;
  PluginProgram& operator=(const PluginProgram&) = delete;
  rlx_program* handle() const { return handle_; }

 private:
  std::shared_ptr<const PluginTable> table_;
  rlx_program* handle_ = nullptr;
};

class PluginInstance final : public Instance {
 public:
  PluginInstance(std::shared_ptr<PluginDevice> device, std::shared_ptr<const PluginProgram> program, const Graph& g)
      : device_(std::move(device)), program_(std::move(program)) {
    for (Value v : g.outputs()) made_.push_back({g.shape(v).size_bytes(), nullptr});
    for (NodeId id : g.leaves(OpKind::State)) renewed_.push_back({g.shape(id).size_bytes(), nullptr});
  }

  // A run that fails in the plug-in changes nothing here. After a run that succeeds, nothing allocates memory.
  Event submit(const RunArguments& a, Stream& stream) override {
    fill(inputs_, a.inputs, "the input of a run");
    fill(states_, a.states, "the state of a run");
    outputs_.assign(a.outputs.size(), {});
    weights_.clear();
    for (const BufferView& w : a.weights)
      weights_.push_back(plugin_buffer(*device_, w.buffer, "the weight of a run").handle());
    if (a.times) a.times->assign(1, {NodeId{}, 0});
    for (auto* list : {&made_, &renewed_})
      for (Result& r : *list)
        if (!r.owner) r.owner = std::make_shared<PluginBuffer>(device_, r.bytes);
    auto end = std::make_shared<PluginPoint>(device_);
    rlx_run run{
        sizeof run,     inputs_.size(),  outputs_.size(), states_.size(),  weights_.size(),
        inputs_.data(), outputs_.data(), states_.data(),  weights_.data(), a.times ? &a.times->front().ns : nullptr};
    rlx_event* done = nullptr;
    rlx_stream* const on = plugin_stream(*device_, stream, "run").handle();
    each(a, true, [&](PluginBuffer& b) { b.follow_readers(stream); });
    each(a, false, [](PluginBuffer& b) { b.expect_reader(); });
    each(a, true, [](PluginBuffer& b) { b.give(); });
    try {
      device_->call("run", [&](rlx_error* e) {
        return device_->api().run(program_->handle(), device_->handle(), on, &run, &done, e);
      });
    } catch (...) {
      each(a, true, [](PluginBuffer& b) { b.take_back(); });
      each(a, false, [](PluginBuffer& b) { b.add_reader({}); });
      throw;
    }
    // Everything that came back gets an owner first. Errors are reported after that.
    if (done) end->own(done);
    const Event ended(done ? end : nullptr);
    each(a, false, [&](PluginBuffer& b) { b.add_reader(ended); });
    Complaint broken;
    if (!done) broken.how = "returned no event for its end";
    // Handles that the run left unchanged come first. A new value must not have the same handle.
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!a.inputs[i].donated) continue;
      if (inputs_[i].buffer) {
        broken = {"left input ", i, ", which was donated, with the caller"};
        buffer_of(a.inputs[i]).take_back();
        continue;
      }
      buffer_of(a.inputs[i]).release();
      a.inputs[i].buffer_slot->reset();
    }
    const auto renews = [&](std::size_t s) { return states_[s].buffer != buffer_of(a.states[s]).handle(); };
    for (std::size_t s = 0; s < states_.size(); ++s)
      if (a.states[s].donated && !renews(s)) buffer_of(a.states[s]).take_back();
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      if (!outputs_[o].buffer)
        broken = {"returned no buffer for output ", o};
      else if (!made_[o].owner->own(outputs_[o].buffer))
        broken = {"returned for output ", o, " the buffer of another value"};
      else
        *a.outputs[o].buffer_slot = std::move(made_[o].owner);
    }
    for (std::size_t s = 0; s < states_.size(); ++s) {
      if (!renews(s)) continue;
      std::shared_ptr<Buffer>& slot = *a.states[s].buffer_slot;
      if (a.states[s].donated) buffer_of(a.states[s]).release(), slot.reset();
      if (!states_[s].buffer)
        broken = {"left state ", s, " without a buffer"};
      else if (!renewed_[s].owner->own(states_[s].buffer))
        broken = {"returned for state ", s, " the buffer of another value"};
      else
        slot = std::move(renewed_[s].owner);
    }
    if (!broken.how.empty())
      device_->table().broke(device_->text(), "run",
                             broken.which ? concat_text(broken.how, *broken.which, broken.more) : broken.how);
    return Event(std::move(end));
  }

 private:
  /// A buffer of the next run. The run may leave it unchanged.
  struct Result {
    std::size_t bytes = 0;
    std::shared_ptr<PluginBuffer> owner;
  };
  struct Complaint {
    std::string_view how{};
    std::optional<std::size_t> which{};
    std::string_view more{};
  };
  void fill(std::vector<rlx_slot>& slots, std::span<const RunSlot> from, std::string_view what) const {
    slots.clear();
    for (const RunSlot& s : from)
      slots.push_back(
          {plugin_buffer(*device_, s.buffer_slot ? s.buffer_slot->get() : nullptr, what).handle(), s.donated ? 1 : 0});
  }
  static PluginBuffer& buffer_of(const RunSlot& s) { return static_cast<PluginBuffer&>(**s.buffer_slot); }
  template <class F>
  static void each(const RunArguments& a, bool given, F f) {
    for (std::span<const RunSlot> list : {a.inputs, a.states})
      for (const RunSlot& s : list)
        if (s.donated == given) f(buffer_of(s));
  }

  std::shared_ptr<PluginDevice> device_;
  std::shared_ptr<const PluginProgram> program_;
  std::vector<Result> made_, renewed_;  // of outputs and of states
  std::vector<rlx_slot> inputs_, outputs_, states_;
  std::vector<rlx_buffer*> weights_;
};

/// A graph with symbols is compiled when their values are bound.
class PluginExecutable final : public Executable {
 public:
  PluginExecutable(std::shared_ptr<const PluginTable> table, Device device, DeviceOptions options, LirModule lir)
      : table_(std::move(table)), device_(device), options_(std::move(options)), lir_(std::move(lir)) {
    if (lir_.graph.is_static()) program_ = program_of(lir_);
  }
  const LirModule& lir() const override { return lir_; }
  std::unique_ptr<Instance> bind(OpenDevice& device, const LirModule& program,
                                 std::span<const BufferView>) const override {
    auto* const ours = dynamic_cast<PluginDevice*>(&device);
    check(ours && &ours->table() == table_.get(), "a program of a plug-in was bound to a device of another backend");
    const bool whole = program_ && &program == &lir_;  // not the program that runs before a sync point
    return std::make_unique<PluginInstance>(ours->self(), whole ? program_ : program_of(program), program.graph);
  }
  std::string kernel_name(NodeId) const override { return table_->name(); }

 private:
  std::shared_ptr<const PluginProgram> program_of(const LirModule& lir) const {
    return std::make_shared<PluginProgram>(table_, device_info(device_).id, options_, lir);
  }
  std::shared_ptr<const PluginTable> table_;
  Device device_;
  DeviceOptions options_;
  LirModule lir_;
  std::shared_ptr<const PluginProgram> program_;
};

class PluginBackend final : public Backend {
 public:
  PluginBackend(std::shared_ptr<const PluginTable> table, Device device) : table_(std::move(table)), device_(device) {}
  std::string_view name() const override { return table_->name(); }
  Presence probe(Device kind) const noexcept override {
    try {
      std::int32_t count = 0;
      const std::string id(device_info(kind).id);
      try {
        table_->call({}, "probe", [&](rlx_error* e) { return table_->api().probe(id.c_str(), &count, e); });
      } catch (const Error& e) {  // a reason: the caller adds the device and the alternatives
        const Diagnostic& d = e.diagnostic();
        return {0, d.hint == kPickAnother ? d.message : concat_text(d.message, " (", d.hint, ")")};
      }
      if (count > 0) return {count};
      return {0, concat_text(table_->text(), " finds no device and gives no reason")};
    } catch (const std::bad_alloc&) {
      return {0, "out of memory"};  // short enough for std::string to hold without allocating
    }
  }
  std::span<const DeviceOptionInfo> option_infos() const override {
    std::lock_guard lock(mutex_);
    if (!infos_known_) {
      const rlx_option_info* list = nullptr;
      std::size_t count = 0;
      table_->call(device_info(device_).id, "option_infos",
                   [&](rlx_error* e) { return table_->api().option_infos(&list, &count, e); });
      if (count != 0 && !list) table_->broke(device_info(device_).id, "option_infos", "returned no list");
      for (std::size_t i = 0; i < count; ++i) {
        if (!list[i].name || !list[i].what)
          table_->broke(device_info(device_).id, "option_infos", "returned an option without a name or a text");
        infos_.push_back({list[i].name, list[i].what, list[i].at_open != 0});
      }
      infos_known_ = true;
    }
    return infos_;
  }
  std::shared_ptr<OpenDevice> open(DeviceId id, const DeviceOptions& options) const override {
    return std::make_shared<PluginDevice>(table_, id, options);
  }
  std::shared_ptr<const Target> target(const BackendOptions& options) const override {
    std::lock_guard lock(mutex_);
    std::shared_ptr<const Target>& known = targets_[options.options];
    if (!known) known = std::make_shared<const PluginTarget>(table_, device_, options.options);
    return known;
  }
  std::unique_ptr<const Executable> compile_lir(LirModule lir, const BackendOptions& options) const override {
    return std::make_unique<PluginExecutable>(table_, device_, options.options, std::move(lir));
  }

 private:
  std::shared_ptr<const PluginTable> table_;
  Device device_;
  mutable std::mutex mutex_;
  mutable bool infos_known_ = false;
  mutable std::vector<DeviceOptionInfo> infos_;
  mutable std::map<DeviceOptions, std::shared_ptr<const Target>> targets_;
};

Plugin register_table(const rlx_plugin* table, const std::string& where) {
  const auto checked = std::make_shared<const PluginTable>(table, where);
  for (Device d : checked->devices()) register_backend(d, std::make_shared<const PluginBackend>(checked, d));
  return {checked->name(), where, checked->devices()};
}

}  // namespace

Plugin register_plugin(const rlx_plugin* table) { return register_table(table, "a table of this program"); }

Plugin load_plugin(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, Plugin> loaded;
  if (path.empty())  // an empty path means the program itself to the system
    throw Error(ErrorCode::InvalidArgument, "load_plugin was given an empty path",
                "pass the path of a shared library with the function " RLX_PLUGIN_ENTRY_NAME);
  std::lock_guard lock(mutex);
  if (const auto known = loaded.find(path); known != loaded.end()) return known->second;
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = ::dlerror();
    throw Error(ErrorCode::NotFound,
                concat_text("the plug-in ", path, " cannot be loaded: ", why ? why : "the system gives no reason"),
                "pass the path of a shared library with the function " RLX_PLUGIN_ENTRY_NAME);
  }
  void* const symbol = ::dlsym(library, RLX_PLUGIN_ENTRY_NAME);
  if (!symbol)
    throw Error(ErrorCode::NotFound, concat_text("the plug-in ", path, " has no function " RLX_PLUGIN_ENTRY_NAME),
                "export the function as rlx/device/plugin.h declares it");
  const auto entry = reinterpret_cast<rlx_plugin_entry_function>(symbol);
  const rlx_plugin* table = nullptr;
  try {
    table = entry(RLX_PLUGIN_ABI_MAJOR, RLX_PLUGIN_ABI_MINOR);
  } catch (...) {
    throw Error(ErrorCode::Internal,
                concat_text("the plug-in ", path, ": " RLX_PLUGIN_ENTRY_NAME " failed: ", forbidden_exception()),
                "report it to the authors of the plug-in");
  }
  return loaded.emplace(path, register_table(table, path)).first->second;
}

}  // namespace rlx
