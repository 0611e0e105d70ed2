// The adversarial test device: its target, its programs as bindings of buffers, and the faults that tests request.
#include "tests/adversarial/adversarial_device.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "rlx/device/device.h"
#include "rlx/device/plugin_backend.h"
#include "rlx/exec/planned_value.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/inspect.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/leaves.h"
#include "tests/adversarial/adversarial_plugin.h"
#include "tests/adversarial/adversarial_queue.h"

namespace rlx::test {
namespace {

constexpr std::size_t kGranule = 4;

/// Threads that are joined when the backend and all devices are gone.
struct Workers {
  std::mutex mutex;
  std::vector<std::thread> threads;
  ~Workers() {
    for (std::thread& t : threads) t.join();
  }
};

struct AtomicCounts {
  std::atomic<std::uint64_t> steps{0}, runs{0}, binds{0}, uploads{0}, downloads{0}, copies{0}, allocations{0},
      reordered{0}, late{0}, peer_copies{0};
};

/// The requests of tests to one device.
struct Orders {
  std::mutex mutex;
  int fail_after = -1;
  std::string why;
  /// Throws if the next step is the one to fail.
  void check_step() {
    std::lock_guard lock(mutex);
    if (fail_after < 0 || fail_after-- > 0) return;
    throw Error(ErrorCode::Internal, why);
  }
};

class AdversarialBuffer final : public Buffer {
 public:
  AdversarialBuffer(std::shared_ptr<OpenDevice> device, std::shared_ptr<AdversarialBytes> bytes,
                    std::shared_ptr<const void> owner = nullptr)
      : Buffer(device->id(), bytes->bytes(), bytes->for_host() ? bytes->host() : nullptr),
        memory(std::move(bytes)),
        device_(std::move(device)),
        owner_(std::move(owner)) {}
  void read(std::span<std::byte> to) const override {
    const auto stream = device_->stream();
    stream->wait(written());
    stream->download(BufferView(const_cast<AdversarialBuffer&>(*this), 0, bytes()), to);  // NOLINT(const-cast): is read
    stream->record().wait();
  }
  std::uintptr_t native() const override { return reinterpret_cast<std::uintptr_t>(memory->host()); }
  const OpenDevice* opened() const override { return device_.get(); }
  const std::shared_ptr<AdversarialBytes> memory;

 private:
  std::shared_ptr<OpenDevice> device_;
  std::shared_ptr<const void> owner_;  // keeps adopted memory alive
};

/// A buffer view that keeps its memory alive for pending work.
struct Place256 {
  std::shared_ptr<AdversarialBytes> memory;
  std::size_t offset = 0, bytes = 0;
  std::byte* at() const { return memory->worker() + offset; }
};

class AdversarialDevice final : public OpenDevice {
 public:
  AdversarialDevice(DeviceId id, const AdversarialOptions& options, std::shared_ptr<Workers> workers,
                    std::shared_ptr<AtomicCounts> work_counts)
      : counts(std::move(work_counts)),
        queue(std::make_shared<AdversarialQueue>(options.seed + static_cast<std::uint64_t>(id.ordinal) * 977)),
        seed(options.seed),
        peers_(options.peers),
        id_(id),
        limit_(options.memory_bytes),
        workers_(std::move(workers)) {
    for (auto& c : in_use_) c = std::make_shared<std::atomic<std::size_t>>(0);
    std::lock_guard lock(workers_->mutex);
    workers_->threads.emplace_back([q = queue] { q->work(); });
  }
  ~AdversarialDevice() override { queue->close(); }

  DeviceId id() const override { return id_; }
  MemoryModel memory_model() const override { return MemoryModel::Arena; }
  bool lost() const override { return queue->lost(); }
  DeviceMemory memory() const override {
    DeviceMemory m;
    m.total = limit_;
    for (std::size_t i = 0; i < in_use_.size(); ++i) m.in_use[i] = *in_use_[i];
    return m;
  }
  std::shared_ptr<Stream> stream(std::uintptr_t native) override;
  std::shared_ptr<Buffer> allocate(std::size_t bytes, BufferUse use) override {
    if (memory().used() + bytes > limit_) throw_no_memory(bytes, use, limit_);
    ++counts->allocations;
    auto memory = std::make_shared<AdversarialBytes>(bytes, use == BufferUse::Readback, AdversarialBackend::kAlignment,
                                                     in_use_[static_cast<std::size_t>(use)]);
    {
      std::lock_guard lock(known_mutex_);
      std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
      known_[reinterpret_cast<std::uintptr_t>(memory->host())] = memory;
    }
    return std::make_shared<AdversarialBuffer>(shared_from_this(), std::move(memory));
  }
  /// Memory of the same driver, as another library would allocate it.
  std::shared_ptr<Buffer> adopt(std::uintptr_t native, const Shape& shape, std::shared_ptr<const void> owner,
                                const Event& written) override {
    std::lock_guard lock(known_mutex_);
    const auto it = known_.find(native);
    auto memory = it == known_.end() ? nullptr : it->second.lock();
    if (!memory || memory->bytes() < shape.size_bytes()) return nullptr;
    auto buffer = std::make_shared<AdversarialBuffer>(shared_from_this(), std::move(memory), std::move(owner));
    buffer->set_written(written);
    return buffer;
  }
  void drain() override { queue->drain(); }
  bool copies_from(const OpenDevice& other) const override {
    return peers_ && &other != this && dynamic_cast<const AdversarialDevice*>(&other) != nullptr;
  }

  /// The view with its memory held. A view of another device or outside its buffer is a fault of the runtime.
  Place256 hold(const BufferView& v) const {
    check(of_adversarial(v).device() == id_, "a adversarial test device was given memory of another one");
    return hold_any(v);
  }
  /// The same for sources of copies on its streams.
  Place256 hold_source(const BufferView& v) const { return peers_ ? hold_any(v) : hold(v); }

  const std::shared_ptr<AtomicCounts> counts;
  const std::shared_ptr<AdversarialQueue> queue;
  const std::shared_ptr<Orders> orders = std::make_shared<Orders>();
  const std::uint64_t seed;

 private:
  static const AdversarialBuffer& of_adversarial(const BufferView& v) {
    const auto* buffer = dynamic_cast<const AdversarialBuffer*>(v.buffer);
    check(buffer != nullptr, "the adversarial test device was given memory that is not its own");
    return *buffer;
  }
  static Place256 hold_any(const BufferView& v) {
    const AdversarialBuffer& buffer = of_adversarial(v);
    check(v.offset + v.bytes <= buffer.bytes(), "a view reaches past its buffer");
    return {buffer.memory, v.offset, v.bytes};
  }

  bool peers_;
  DeviceId id_;
  std::size_t limit_;
  std::mutex known_mutex_;
  std::map<std::uintptr_t, std::weak_ptr<AdversarialBytes>> known_;  // by native()
  std::shared_ptr<Workers> workers_;
  std::array<std::shared_ptr<std::atomic<std::size_t>>, kNumBufferUses> in_use_;
};

class AdversarialStream final : public Stream {
 public:
  explicit AdversarialStream(std::shared_ptr<AdversarialDevice> device)
      : device_(std::move(device)), lane_(std::make_shared<AdversarialLane>()) {}

  void upload(std::span<const std::byte> from, const BufferView& to) override {
    const Place256 p = aligned(to);
    require_place("an upload", from.size(), "to", to);
    ++device_->counts->uploads;
    std::vector<std::byte> bytes(from.begin(), from.end());
    // The copy is padded to the granule with other bytes, up to the end of the buffer.
    bytes.resize(std::min((bytes.size() + kGranule - 1) / kGranule * kGranule, p.memory->bytes() - p.offset),
                 std::byte{0xa5});
    device_->queue->add(lane_, [p, bytes = std::move(bytes)] { std::memcpy(p.at(), bytes.data(), bytes.size()); },
                        {p.memory});
  }
  void download(const BufferView& from, std::span<std::byte> to) override {
    const Place256 p = aligned(from);
    require_place("a download", to.size(), "from", from);
    ++device_->counts->downloads;
    device_->queue->add(lane_, [p, to] { std::memcpy(to.data(), p.at(), to.size()); }, {p.memory});
  }
  void copy(const BufferView& from, const BufferView& to) override {
    check(from.offset % kGranule == 0, "a copy from a place that is no multiple of the granule");
    const Place256 a = device_->hold_source(from), b = aligned(to);
    require_place("a copy", to.bytes, "from", from);
    ++device_->counts->copies;
    if (!(from.buffer->device() == device_->id())) ++device_->counts->peer_copies;
    device_->queue->add(lane_, [a, b] { std::memcpy(b.at(), a.at(), b.bytes); }, {a.memory, b.memory});
  }
  Event record() override { return device_->queue->record(lane_); }
  void wait(const Event& event) override {
    device_->queue->add(
        lane_, [] {}, {}, event);
  }
  void wait_order(const Event& event) override {
    device_->queue->add(
        lane_, [] {}, {}, event, true);
  }

  void add(std::function<void()> run, Holds holds) { device_->queue->add(lane_, std::move(run), std::move(holds)); }

 private:
  Place256 aligned(const BufferView& v) const {
    check(v.offset % kGranule == 0, "a copy from or to a place that is no multiple of the granule");
    return device_->hold(v);
  }
  std::shared_ptr<AdversarialDevice> device_;
  std::shared_ptr<AdversarialLane> lane_;
};

std::shared_ptr<Stream> AdversarialDevice::stream(std::uintptr_t native) {
  if (native != 0) throw Error(ErrorCode::InvalidArgument, "the adversarial test device has no streams but its own");
  return std::make_shared<AdversarialStream>(std::static_pointer_cast<AdversarialDevice>(shared_from_this()));
}

/// The buffers that the steps of one run are bound to.
struct Bindings {
  std::vector<Place256> inputs, outputs, states, weights;
};

/// A program for the worker. It holds everything that callers may release.
class AdversarialProgram {
 public:
  AdversarialProgram(AdversarialDevice& device, const LirModule& program, std::span<const BufferView> arenas)
      : graph_(program.graph),
        plan_(program.plan),
        counts_(device.counts),
        orders_(device.orders),
        random_(device.seed) {
    for (std::size_t i = 0; i < arenas.size(); ++i) {
      if (!arenas[i].buffer) {  // the arena of another device
        arenas_.emplace_back();
        continue;
      }
      arenas_.push_back(device.hold(arenas[i]));
      check(i >= plan_.arenas.size() || arenas[i].bytes >= plan_.arenas[i], "an arena smaller than its plan's");
    }
    for (std::uint32_t i = 0; i < graph_.num_nodes(); ++i) {
      const auto* constant = graph_.nodes()[i].op.get_if<ops::Constant>();
      if (!constant) continue;
      const Tensor& value = constant->value;
      auto bytes = std::make_shared<AdversarialBytes>(value.size_bytes(), false, AdversarialBackend::kAlignment,
                                                      std::make_shared<std::atomic<std::size_t>>(0));
      if (value.size_bytes() != 0) std::memcpy(bytes->worker(), value.data(), value.size_bytes());
      constants_.emplace(i, Place256{std::move(bytes), 0, value.size_bytes()});
    }
  }

  std::size_t steps() const { return plan_.schedule.size(); }
  Holds holds(const Bindings& b) const {
    Holds out;
    for (const auto* list : {&b.inputs, &b.outputs, &b.states, &b.weights, &arenas_})
      for (const Place256& p : *list)
        if (p.memory) out.push_back(p.memory);
    return out;
  }

  /// Runs the steps of a range in a random order that the plan's edges allow, drawn anew for each run.
  void run(const Bindings& b, const StepRange& range, std::vector<StepTime>* times) {
    const std::size_t n = plan_.schedule.size();
    if (range.begin == 0) ++counts_->runs;
    std::vector<int> waits(n, 0);
    std::vector<std::vector<std::size_t>> behind(n);
    std::vector<std::size_t> ready;
    for (std::size_t i = range.begin; i < range.end; ++i) {
      for (std::int32_t p : plan_.schedule[i].predecessors) {
        if (!range.holds(static_cast<std::size_t>(p))) continue;  // an earlier range ran it
        ++waits[i];
        behind[static_cast<std::size_t>(p)].push_back(i);
      }
      if (waits[i] == 0) ready.push_back(i);
    }
    std::size_t done = range.begin, most = 0;
    for (; !ready.empty(); ++done) {
      std::swap(ready[random_() % ready.size()], ready.back());
      const std::size_t i = ready.back();
      ready.pop_back();
      if (i < most) ++counts_->reordered;
      most = std::max(most, i);
      orders_->check_step();
      run_step(plan_.schedule[i].node, b);
      ++counts_->steps;
      if (times) times->push_back({plan_.schedule[i].node, 1});
      for (std::size_t k : behind[i])
        if (--waits[k] == 0) ready.push_back(k);
    }
    check(done == range.end, "the edges of the plan run in a circle");
    if (range.end != n) return;
    for (const LirOutputCopy& c : plan_.output_copies) {
      const Tensor t = load(c.value, b);
      if (t.size_bytes() != 0) std::memcpy(b.outputs.at(c.output).at(), t.data(), t.size_bytes());
    }
    counts_->copies += plan_.output_copies.size() + plan_.state_copies.size();
    std::vector<Tensor> states;  // all states are read before the first is written, as states may be swapped
    for (const LirStateCopy& c : plan_.state_copies) states.push_back(load(c.value, b));
    for (std::size_t i = 0; i < states.size(); ++i)
      if (states[i].size_bytes() != 0)
        std::memcpy(b.states.at(plan_.state_copies[i].state).at(), states[i].data(), states[i].size_bytes());
  }

 private:
  const Place256& home(const LirValue& w, const Bindings& b) const {
    switch (w.place) {
      case Place::Arena: return arenas_.at(w.index);
      case Place::Input: return b.inputs.at(w.index);
      case Place::Output: return b.outputs.at(w.index);
      case Place::Prepared: return b.weights.at(w.index);
      case Place::State: return b.states.at(w.index);
      case Place::Constant: return constants_.at(w.index);
      case Place::None: break;
    }
    throw Error(ErrorCode::Internal, "a value of no place");
  }
  std::byte* place(const LirValue& w, const Bindings& b) const {
    const Place256& p = home(w, b);
    check(w.offset % AdversarialBackend::kAlignment == 0, "a value is bound at an offset that is no multiple of 256");
    check(w.offset + w.bytes <= p.bytes, "a value reaches past what is bound for it");
    return p.at() + w.offset;
  }
  Tensor load(Value v, const Bindings& b) const {
    Tensor t = Tensor::zeros(graph_.shape(v));
    const LirValue& w = plan_.at(v);
    if (t.size_bytes() != 0) gather_value(t.shape(), w, place(w, b), t.mutable_data());
    return t;
  }
  void run_step(NodeId id, const Bindings& b) const {
    const Node& n = graph_.node(id);
    std::set<const AdversarialBytes*> bound;
    std::vector<Tensor> operands;
    for (Value v : n.inputs) {
      operands.push_back(load(v, b));
      bound.insert(home(plan_.at(v), b).memory.get());
    }
    const std::vector<Tensor> results = evaluate_op(n.op, operands);
    for (std::uint32_t r = 0; r < results.size(); ++r) {
      const LirValue& w = plan_.at(Value(id, r));
      bound.insert(home(w, b).memory.get());
      // An update whose result has another location copies its operand first.
      if (op_def(n.op).updates == UpdateKind::Yes && place(plan_.at(n.inputs[0]), b) != place(w, b)) ++counts_->copies;
      if (results[r].size_bytes() != 0) spread_value(results[r].shape(), w, results[r].data(), place(w, b));
    }
    // A concat copies each operand, with two bindings per copy.
    check(n.kind() == OpKind::Concat || bound.size() <= static_cast<std::size_t>(AdversarialBackend::kBindings),
          concat_text("a kernel with ", bound.size(), " bindings: ", node_text(graph_, id)));
  }

  Graph graph_;
  LirBufferPlan plan_;
  std::shared_ptr<AtomicCounts> counts_;
  std::shared_ptr<Orders> orders_;
  std::mt19937_64 random_;
  std::vector<Place256> arenas_;
  std::map<std::uint32_t, Place256> constants_;
};

class AdversarialInstance final : public Instance {
 public:
  AdversarialInstance(AdversarialDevice& device, const LirModule& program, std::span<const BufferView> arenas)
      : device_(std::static_pointer_cast<AdversarialDevice>(device.shared_from_this())),
        program_(std::make_shared<AdversarialProgram>(device, program, arenas)) {}

  Event submit(const RunArguments& a, Stream& stream) override {
    auto bindings = std::make_shared<Bindings>();
    for (const RunSlot& s : a.inputs) bindings->inputs.push_back(bound(s.view));
    for (const RunSlot& s : a.outputs) bindings->outputs.push_back(bound(s.view));
    if (a.binding_generation != binding_generation_) {  // the binding generation alone is trusted
      states_.clear(), weights_.clear();
      for (const RunSlot& s : a.states) states_.push_back(s.view.buffer ? bound(s.view) : Place256());
      for (const BufferView& w : a.weights) weights_.push_back(w.buffer ? bound(w) : Place256());
      binding_generation_ = a.binding_generation;
    }
    bindings->states = states_;
    bindings->weights = weights_;
    // Runs of one program share its arenas: the later one waits, also across streams.
    if (!last_.ready()) stream.wait(last_);
    auto& ours = dynamic_cast<AdversarialStream&>(stream);
    auto returned = std::make_shared<std::atomic<bool>>(false);
    ours.add(
        [program = program_, bindings, range = a.range.of(program_->steps()), times = a.times, returned,
         counts = device_->counts] {
          if (*returned) ++counts->late;
          program->run(*bindings, range, times);
        },
        program_->holds(*bindings));
    last_ = stream.record();
    *returned = true;
    return last_;
  }

 private:
  Place256 bound(const BufferView& v) const {
    check(v.bytes == 0 || v.offset % AdversarialBackend::kAlignment == 0, "a view is bound at no multiple of 256");
    return device_->hold(v);
  }
  std::shared_ptr<AdversarialDevice> device_;
  std::shared_ptr<AdversarialProgram> program_;
  std::vector<Place256> states_, weights_;
  std::uint64_t binding_generation_ = ~std::uint64_t{0};
  Event last_;
};

class AdversarialExecutable final : public Executable {
 public:
  AdversarialExecutable(LirModule lir, const Target& target) : lir_(std::move(lir)) {
    const auto compiled = [&](std::size_t i) {
      return lir_.ranges.empty() ||
             std::any_of(lir_.ranges.begin(), lir_.ranges.end(), [&](const StepRange& r) { return r.holds(i); });
    };
    for (std::size_t i = 0; i < lir_.plan.schedule.size(); ++i)
      if (const char* why = compiled(i) ? target.refuses(lir_.graph, lir_.plan.schedule[i].node) : nullptr)
        throw Error(Diagnostic{ErrorCode::Internal,
                               concat_text("the adversarial test device was given what it refuses: ", why),
                               node_where(lir_.graph, lir_.plan.schedule[i].node),
                               {}});
  }
  const LirModule& lir() const override { return lir_; }
  std::unique_ptr<Instance> bind(OpenDevice& device, const LirModule& program,
                                 std::span<const BufferView> arenas) const override {
    auto& ours = dynamic_cast<AdversarialDevice&>(device);
    ++ours.counts->binds;
    return std::make_unique<AdversarialInstance>(ours, program, arenas);
  }
  std::string kernel_name(NodeId node) const override {
    return concat_text(op_text_name(lir_.graph.node(node).op), " (adversary)");
  }

 private:
  LirModule lir_;
};

/// Claims every op with a reference rule whose values fit in the bindings.
class AdversarialTarget final : public Target {
 public:
  explicit AdversarialTarget(const OpSet& refused) : refused_(refused) {}
  std::string_view name() const override { return "adversarial (arena)"; }
  Device device() const override { return AdversarialScope::kDevice; }
  bool runtime_symbols() const override { return true; }
  TargetLimits limits() const override {
    TargetLimits l;
    l.alignment = l.view_alignment = AdversarialBackend::kAlignment;
    l.copy_granule = kGranule;
    l.max_arena_bytes = AdversarialBackend::kArenaBytes;
    l.max_bindings = AdversarialBackend::kBindings;
    return l;
  }
  RegionLimits region_limits() const override { return {AdversarialBackend::kBindings - 1, 0}; }
  const OpSet& kinds() const override { return kinds_; }
  const char* refuses(const Graph& g, NodeId id) const override {
    const Node& n = g.node(id);
    if (refused_.has(n.kind())) return "the test asks it to refuse";
    if (!has(n.kind()) || (n.kind() == OpKind::Custom && !op_def(n.op).reference.has()))
      return "the op has no reference rule";
    std::vector<Value> operands = n.inputs;
    std::sort(operands.begin(), operands.end());
    const auto distinct = static_cast<std::size_t>(std::unique(operands.begin(), operands.end()) - operands.begin());
    if (n.kind() != OpKind::Concat &&
        distinct + n.num_results() > static_cast<std::size_t>(AdversarialBackend::kBindings))
      return "it has more operands and results than a kernel has bindings";
    return nullptr;
  }
  bool reads_strided(const Graph& g, NodeId id, int) const override {
    const OpKind k = g.node(id).kind();
    return k == OpKind::Binary || k == OpKind::Activation || k == OpKind::DotGeneral || k == OpKind::Reduce;
  }
  bool in_place(const Graph& g, NodeId id, int operand, int result) const override {
    const Node& n = g.node(id);
    const OpKind k = n.kind();
    return result == 0 && (k == OpKind::Binary || k == OpKind::Activation || k == OpKind::DynamicUpdateSlice) &&
           g.shape(n.inputs[static_cast<std::size_t>(operand)]) == n.shape() &&
           (k != OpKind::DynamicUpdateSlice || operand == 0);
  }

 private:
  OpSet kinds_of_rules() const {
    OpSet set;
    for (const OpDef* def : all_op_defs())
      if (def->level != Level::Lir && !refused_.has(def->kind) &&
          (def->is_leaf() || def->reference.has() || def->reference.derived() || def->kind == OpKind::Custom))
        set.add(def->kind);
    return set;
  }
  OpSet refused_, kinds_ = kinds_of_rules();
};

class AdversarialDeviceBackend final : public AdversarialBackend {
 public:
  explicit AdversarialDeviceBackend(const AdversarialOptions& options) : options_(options) {}
  std::string_view name() const override { return "adversarial"; }
  Presence probe(Device) const noexcept override { return {options_.devices}; }
  std::shared_ptr<OpenDevice> open(DeviceId id, const DeviceOptions&) const override {
    auto device = std::make_shared<AdversarialDevice>(id, options_, workers_, counts_);
    std::lock_guard lock(mutex_);
    devices_[id.ordinal] = device;
    return device;
  }
  std::shared_ptr<const Target> target(const BackendOptions&) const override {
    return std::make_shared<const AdversarialTarget>(options_.refuse);
  }
  std::unique_ptr<const Executable> compile_lir(LirModule lir, const BackendOptions&) const override {
    return std::make_unique<AdversarialExecutable>(std::move(lir), AdversarialTarget(options_.refuse));
  }

  void fail_step(int ordinal, int n, std::string why) override {
    const auto device = opened(ordinal);
    std::lock_guard lock(device->orders->mutex);
    device->orders->fail_after = n;
    device->orders->why = std::move(why);
  }
  void lose(int ordinal) override {
    const auto device = opened(ordinal);
    device->queue->lose(std::make_exception_ptr(Error(ErrorCode::DeviceLost,
                                                      concat_text("device ", device_text(device->id()), " was lost"),
                                                      "make a new session: it opens the device anew")));
  }
  Counts counts() const override {
    Counts c;
    c.steps = counts_->steps, c.runs = counts_->runs, c.binds = counts_->binds, c.uploads = counts_->uploads;
    c.downloads = counts_->downloads, c.copies = counts_->copies, c.allocations = counts_->allocations;
    c.reordered = counts_->reordered, c.late = counts_->late, c.peer_copies = counts_->peer_copies;
    return c;
  }

 private:
  std::shared_ptr<AdversarialDevice> opened(int ordinal) const {
    std::lock_guard lock(mutex_);
    auto device = devices_[ordinal].lock();
    check(device != nullptr, "a adversarial test device that is not open");
    return device;
  }
  AdversarialOptions options_;
  std::shared_ptr<Workers> workers_ = std::make_shared<Workers>();
  std::shared_ptr<AtomicCounts> counts_ = std::make_shared<AtomicCounts>();
  mutable std::mutex mutex_;
  mutable std::map<int, std::weak_ptr<AdversarialDevice>> devices_;
};

}  // namespace

std::shared_ptr<AdversarialBackend> adversarial_backend(const AdversarialOptions& options) {
  return std::make_shared<AdversarialDeviceBackend>(options);
}

AdversarialScope::AdversarialScope(const AdversarialOptions& options) {
  if (options.opaque) {
    control_ = adversarial_plugin(options);
    (void)register_plugin(adversarial_plugin_table());
    return;
  }
  const std::shared_ptr<AdversarialBackend> backend = adversarial_backend(options);
  register_backend(kDevice, backend);
  control_ = backend;
}

AdversarialScope::~AdversarialScope() { register_backend(kDevice, nullptr); }

}  // namespace rlx::test
