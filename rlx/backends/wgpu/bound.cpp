// Lowers a planned program to launches and runs them: one encoder and one pass per run.
#include "rlx/backends/wgpu/bound.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "rlx/codegen/entry.h"
#include "rlx/codegen/kernel.h"
#include "rlx/ir/op_def.h"

namespace rlx::wgpu {
namespace {

constexpr std::size_t kSlotBytes = 256;  // of numbers: the alignment of uniform offsets
constexpr std::uint32_t kMostGroups = 65535;
constexpr std::size_t kWord = 4, kVector = 16;

// An estimate of a node's time on slow adapters of its type. It only decides where submissions are split.
double expected_ns(const Graph& g, NodeId id, const AdapterFacts& adapter) {
  const Node& n = g.node(id);
  std::vector<Shape> inputs;
  for (Value v : n.inputs) inputs.push_back(g.shape(v));
  const Cost cost = op_def(n.op).cost(CostContext{n.op, inputs, n.shapes});
  const double flops_per_ns = adapter.software() ? 2 : 100, bytes_per_ns = adapter.software() ? 2 : 10;
  return std::max(cost.flops / flops_per_ns, (cost.read_bytes + cost.write_bytes) / bytes_per_ns);
}

}  // namespace

WgpuInstance::WgpuInstance(const WgpuExecutable& code, std::shared_ptr<WgpuDevice> device, const LirModule& program,
                           std::span<const BufferView> arenas)
    : device_(std::move(device)), gpu_(*device_->gpu()), program_(program), constants_(code.constants(*device_)) {
  const Graph& g = program.graph;
  const auto size = [&](Place p, std::size_t n) { slots(p).bound.resize(n), slots(p).users.resize(n); };
  size(Place::Input, g.leaves(OpKind::Input).size());
  size(Place::Output, g.outputs().size());
  size(Place::State, g.leaves(OpKind::State).size());
  size(Place::Prepared, g.leaves(OpKind::Param).size());
  size(Place::Arena, arenas.size());
  size(Place::Constant, constants_->at.empty() ? 0 : constants_->at.rbegin()->first + 1);
  for (std::size_t i = 0; i < arenas.size(); ++i)
    if (arenas[i].buffer) slots(Place::Arena).bound[i] = bound_of(arenas[i]);
  for (const auto& [node, view] : constants_->at) slots(Place::Constant).bound[node] = bound_of(view);
  lower(code);
  plan_copies();
}

WgpuInstance::~WgpuInstance() {
  if (gpu_.forked()) return;
  const auto one = gpu_.serial();
  for (const Launch& l : launches_)
    if (l.group) gpu_.api.BindGroupRelease(l.group);
}

// -- lowering --

void WgpuInstance::lower(const WgpuExecutable& code) {
  take_scratch(code);
  std::vector<std::uint32_t> numbers;
  std::vector<KernelText> texts;
  std::vector<std::string> where(program_.plan.schedule.size());
  for (std::size_t i = 0; i < program_.plan.schedule.size(); ++i) {
    first_launch_.push_back(static_cast<std::uint32_t>(launches_.size()));
    const codegen::NodeLaunches& of = code.launches(i);
    if (!of.kernels.empty()) require_short_loops(of);
    for (const codegen::Kernel& k : of.kernels) {
      if (!add_launch(of, k, numbers)) continue;
      if (where[i].empty()) where[i] = node_where(program_.graph, of.node);
      texts.push_back({k.name, k.text, where[i], static_cast<int>(k.bindings.size())});
    }
  }
  first_launch_.push_back(static_cast<std::uint32_t>(launches_.size()));
  pipelines_ = device_->pipelines().get(texts);
  for (std::size_t i = 0; i < launches_.size(); ++i) launches_[i].pipeline = pipelines_[i].get();
  if (launches_.empty()) return;
  numbers.resize(std::max(numbers.size(), kSlotBytes / kWord));
  numbers_ =
      gpu_.buffer(numbers.size() * kWord, abi::usage::kUniform | abi::usage::kCopyTarget, "the parameters of kernels");
  gpu_.write(numbers_.get(), 0, numbers.data(), numbers.size() * kWord);
}

// Checks loops whose extents the target did not know.
void WgpuInstance::require_short_loops(const codegen::NodeLaunches& of) const {
  if (!gpu_.adapter.limits_loop_length() || of.steps.evaluate(program_.symbols) <= kMostSteps) return;
  throw Error(
      Diagnostic{ErrorCode::Unsupported,
                 concat_text("device ", gpu_.text, ": the kernels of ", op_text_name(program_.graph.node(of.node).op),
                             " have longer loops than Mesa's rasterisers run (65,535 steps)"),
                 node_where(program_.graph, of.node),
                 "place the node on the cpu (CompileOptions::placement), or run it with smaller dimensions"});
}

// Nodes run one after the other, so they share one scratch buffer.
void WgpuInstance::take_scratch(const WgpuExecutable& code) {
  std::size_t most = 0;
  for (std::size_t i = 0; i < program_.plan.schedule.size(); ++i) {
    std::size_t bytes = 0;
    for (const Dim& d : code.launches(i).scratch)
      bytes += round_up(static_cast<std::size_t>(d.evaluate(program_.symbols)), codegen::kBindingAlignment);
    most = std::max(most, bytes);
  }
  if (most != 0) scratch_ = device_->allocate(most, BufferUse::Arena);
}

bool WgpuInstance::add_launch(const codegen::NodeLaunches& of, const codegen::Kernel& k,
                              std::vector<std::uint32_t>& numbers) {
  const auto groups = static_cast<std::uint64_t>(k.groups.evaluate(program_.symbols));
  if (groups == 0) return false;
  Launch l;
  l.node = of.node;
  l.expected_ns = expected_ns(program_.graph, of.node, gpu_.adapter) / static_cast<double>(of.kernels.size());
  l.x = static_cast<std::uint32_t>(std::min<std::uint64_t>(groups, kMostGroups));
  const std::uint64_t y = (groups + l.x - 1) / l.x;
  if (y > kMostGroups)
    throw Error(Diagnostic{ErrorCode::Unsupported,
                           concat_text("device ", gpu_.text, ": kernel ", k.name, " has ", groups,
                                       " workgroups, more than a dispatch allows"),
                           node_where(program_.graph, of.node), "run it with smaller dimensions"});
  l.y = static_cast<std::uint32_t>(y);
  l.first_part = static_cast<std::uint32_t>(parts_.size());
  l.num_parts = static_cast<std::uint32_t>(k.bindings.size());
  std::map<Value, std::size_t> start;  // the start of the binding that holds a value
  for (const codegen::Binding& b : k.bindings) {
    Part p;
    if (b.scratch >= 0) {
      for (int s = 0; s <= b.scratch; ++s) {
        const auto bytes = static_cast<std::size_t>(of.scratch[static_cast<std::size_t>(s)].evaluate(program_.symbols));
        p.begin = p.end;
        p.end = p.begin + round_up(bytes, codegen::kBindingAlignment);
      }
      p.written = true;
    } else {
      const LirValue& first = program_.plan.at(b.values.front());
      const codegen::ByteRange r = codegen::range_of(b, program_.plan);
      p.place = first.place, p.index = first.index, p.begin = r.begin, p.end = std::max(r.begin, r.end);
      for (Value v : b.values) {
        p.written = p.written || v.node == of.node;
        start.emplace(v, r.begin);
      }
    }
    const std::uint64_t most = gpu_.limits().storage_buffer_binding_size;
    if (p.end - p.begin > most)
      throw Error(
          Diagnostic{ErrorCode::Unsupported,
                     concat_text("device ", gpu_.text, " binds at most ", most, " bytes of a value, but kernel ",
                                 k.name, " needs ", p.end - p.begin),
                     node_where(program_.graph, of.node),
                     "place the node on the cpu (CompileOptions::placement), or run it with smaller dimensions"});
    parts_.push_back(p);
  }
  l.numbers = static_cast<std::uint32_t>(numbers.size() * kWord);
  l.numbers_bytes =
      static_cast<std::uint32_t>(round_up(std::max<std::size_t>(1, k.numbers.size()) * kWord, kSlotBytes));
  for (const codegen::Number& n : k.numbers)
    numbers.push_back(codegen::evaluate(n, program_, n.kind == codegen::Number::Kind::Offset ? start.at(n.value) : 0));
  if (k.numbers.empty())
    l.numbers = 0;
  else
    numbers.resize((l.numbers + l.numbers_bytes) / kWord);
  launches_.push_back(l);
  const auto number = static_cast<std::uint32_t>(launches_.size() - 1);
  for (std::uint32_t i = l.first_part; i < parts_.size(); ++i)
    if (const Part& p = parts_[i]; p.place != Place::None && p.begin != p.end) {
      std::vector<std::uint32_t>& users = slots(p.place).users.at(p.index);
      if (users.empty() || users.back() != number) users.push_back(number);
    }
  return true;
}

void WgpuInstance::plan_copies() {
  const auto add = [&](Value v, Place to, std::uint32_t index) {
    const LirValue& where = program_.plan.at(v);
    if (where.bytes == 0) return;
    check(where.strides.empty(), "a strided value cannot be copied to an output or state");
    Copy c;
    c.from = {where.place, where.index, where.offset, where.offset + where.bytes, false};
    c.to = to, c.index = index, c.bytes = where.bytes;
    copies_.push_back(c);
  };
  for (const LirOutputCopy& c : program_.plan.output_copies) add(c.value, Place::Output, c.output);
  for (const LirStateCopy& c : program_.plan.state_copies) add(c.value, Place::State, c.state);
}

// -- bindings of places --

WgpuInstance::Bound WgpuInstance::bound_of(const BufferView& view) const {
  if (view.bytes == 0 && !view.buffer) return {};
  const WgpuBuffer& b = device_->buffer_of(view);
  return {b.handle(), b.serial(), view.offset, view.bytes};
}

void WgpuInstance::rebind(Place place, std::size_t i, const BufferView& view) {
  const Bound now = bound_of(view);
  Slots& s = slots(place);
  if (s.bound[i] == now) return;
  s.bound[i] = now;
  for (std::uint32_t user : s.users[i]) launches_[user].stale = true;
}

WgpuInstance::Bound WgpuInstance::find(const Part& p) const {
  if (p.place == Place::None)
    return {static_cast<const WgpuBuffer&>(*scratch_).handle(), static_cast<const WgpuBuffer&>(*scratch_).serial(),
            p.begin, p.end - p.begin};
  Bound at = slots(p.place).bound.at(p.index);
  check(at.handle != nullptr, "a value of a run has no buffer");
  check(p.end <= at.bytes, "a value reaches past the end of its buffer");
  at.offset += p.begin;
  at.bytes = p.end - p.begin;
  return at;
}

// True when the caller may bind the input and the output to the same bytes.
bool WgpuInstance::is_alias(const Part& input, const Part& output) const {
  if (input.place != Place::Input || output.place != Place::Output) return false;
  const auto& aliases = program_.plan.aliases;
  return std::any_of(aliases.begin(), aliases.end(), [&](const LirAlias& x) {
    return x.input == input.index && x.output == output.index && x.refused.empty();
  });
}

// Drivers accept overlapping ranges, but a kernel that writes its operand through another binding would be wrong.
void WgpuInstance::check_disjoint(const Launch& l, std::span<const Bound> at) const {
  for (std::size_t i = 0; i < at.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const Part &a = parts_[l.first_part + i], &b = parts_[l.first_part + j];
      if (!(a.written || b.written) || !at[i].meets(at[j])) continue;
      if (at[i] == at[j] && (is_alias(a, b) || is_alias(b, a))) continue;  // the plan allows it
      throw Error(Diagnostic{
          ErrorCode::InvalidArgument,
          concat_text("device ", gpu_.text, ": a kernel would write bytes that it also reads as another value"),
          node_where(program_.graph, l.node), "pass a run different buffers for values of which one is written"});
    }
}

void WgpuInstance::make_shadows(Launch& l, std::span<Bound> at) {
  const auto launch = static_cast<std::size_t>(&l - launches_.data());
  std::erase_if(shadows_, [&](const Shadow& s) { return s.launch == launch; });
  l.begins_submission = false;
  for (std::size_t i = 0; i < at.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      if (!at[i].meets(at[j])) continue;
      const std::size_t read = parts_[l.first_part + i].written ? j : i;
      check(!parts_[l.first_part + read].written, "two written bindings of a launch share bytes");
      // Nothing writes an input before the last launch that reads it, so it can be copied first. A value that earlier
      // launches of the run write is copied after they ran, in a new submission.
      l.begins_submission = l.begins_submission || parts_[l.first_part + read].place != Place::Input;
      const std::shared_ptr<rlx::Buffer> copy = device_->allocate(at[read].bytes, BufferUse::Slots);
      shadows_.push_back({launch, at[read], copy});
      at[read] = bound_of(BufferView(*copy, 0, at[read].bytes));
    }
}

void WgpuInstance::encode_shadows(std::span<const Launch> list, abi::CommandEncoder encoder) const {
  if (list.empty()) return;
  const auto first = static_cast<std::size_t>(list.data() - launches_.data());
  for (const Shadow& s : shadows_)
    if (s.launch >= first && s.launch < first + list.size())
      gpu_.api.CommandEncoderCopyBufferToBuffer(encoder, s.of.handle, s.of.offset,
                                                static_cast<const WgpuBuffer&>(*s.copy).handle(), 0,
                                                round_up(s.of.bytes, kWord));
}

void WgpuInstance::make_group(Launch& l) {
  std::vector<Bound> at(l.num_parts);
  for (std::uint32_t i = 0; i < l.num_parts; ++i)
    if (const Part& p = parts_[l.first_part + i]; p.begin != p.end) at[i] = find(p);
  check_disjoint(l, at);
  if (gpu_.as_browsers) make_shadows(l, at);
  std::vector<abi::BindGroupEntry> entries(l.num_parts + 1);
  entries[0].buffer = numbers_.get(), entries[0].size = l.numbers_bytes;
  for (std::uint32_t i = 0; i < l.num_parts; ++i) {
    abi::BindGroupEntry& e = entries[i + 1];
    e.binding = i + 1;
    if (at[i].bytes == 0) {
      e.buffer = device_->nothing(), e.offset = i * codegen::kBindingAlignment, e.size = codegen::kBindingAlignment;
      continue;
    }
    check(at[i].offset % codegen::kBindingAlignment == 0,
          "a value is bound at an offset that is not a multiple of 256");
    e.buffer = at[i].handle, e.offset = at[i].offset, e.size = round_up(at[i].bytes, kVector);
  }
  abi::BindGroupDescriptor d;
  d.layout = gpu_.layout(static_cast<int>(l.num_parts)).group;
  d.count = entries.size(), d.entries = entries.data();
  const abi::BindGroup made = gpu_.make("the bindings of a kernel", gpu_.api.BindGroupRelease,
                                        [&] { return gpu_.api.DeviceCreateBindGroup(gpu_.device(), &d); });
  if (l.group) gpu_.api.BindGroupRelease(l.group);
  l.group = made;
  l.stale = false;
}

// -- running --

std::span<WgpuInstance::Launch> WgpuInstance::launches(const StepRange& steps) {
  return std::span(launches_).subspan(first_launch_[steps.begin],
                                      first_launch_[steps.end] - first_launch_[steps.begin]);
}

void WgpuInstance::encode(std::span<const Launch> list, abi::ComputePassEncoder pass) const {
  abi::ComputePipeline set = nullptr;
  for (const Launch& l : list) {
    if (l.pipeline != set) gpu_.api.ComputePassEncoderSetPipeline(pass, set = l.pipeline);
    gpu_.api.ComputePassEncoderSetBindGroup(pass, 0, l.group, 1, &l.numbers);
    gpu_.api.ComputePassEncoderDispatchWorkgroups(pass, l.x, l.y, 1);
  }
  gpu_.api.ComputePassEncoderEnd(pass);
  gpu_.api.ComputePassEncoderRelease(pass);
}

template <class F>
abi::CommandEncoder WgpuInstance::encoded(F&& f) const {
  const abi::CommandEncoder encoder = gpu_.encoder();
  try {
    gpu_.call("a run", [&] { f(encoder); });
  } catch (...) {
    gpu_.release(encoder);
    throw;
  }
  return encoder;
}

// Saves a value that another copy overwrites, before the first copy.
void WgpuInstance::encode_copies(abi::CommandEncoder encoder) {
  std::size_t aside = 0;
  for (Copy& c : copies_) {
    const Bound from = find(c.from), to = find({c.to, c.index, 0, c.bytes, true});
    c.source = from.handle, c.source_at = from.offset, c.target = to.handle, c.target_at = to.offset;
  }
  for (Copy& c : copies_) {
    c.staged = std::any_of(copies_.begin(), copies_.end(), [&](const Copy& d) { return d.target == c.source; });
    if (c.source == c.target && c.source_at == c.target_at) c.source = nullptr, c.staged = false;  // already in place
    c.aside = aside;
    if (c.staged) aside += round_up(c.bytes, codegen::kBindingAlignment);
  }
  if (aside != 0 && (!aside_ || aside_->bytes() < aside)) aside_ = device_->allocate(aside, BufferUse::Arena);
  const abi::Buffer room = aside_ ? static_cast<const WgpuBuffer&>(*aside_).handle() : nullptr;
  const auto copy = [&](abi::Buffer from, std::size_t at, abi::Buffer to, std::size_t to_at, std::size_t bytes) {
    gpu_.api.CommandEncoderCopyBufferToBuffer(encoder, from, at, to, to_at, round_up(bytes, kWord));
  };
  for (const Copy& c : copies_)
    if (c.staged) copy(c.source, c.source_at, room, c.aside, c.bytes);
  for (const Copy& c : copies_)
    if (c.source) copy(c.staged ? room : c.source, c.staged ? c.aside : c.source_at, c.target, c.target_at, c.bytes);
}

void WgpuInstance::run(const StepRange& range, WgpuStream& stream) {
  std::span<Launch> left = launches(range);
  for (Launch& l : left)
    if (l.stale) make_group(l);
  const bool copies = range.end == program_.plan.schedule.size() && !copies_.empty();
  while (!left.empty() || copies) {
    const std::span<const Launch> now = left.first(in_one_submission(left));
    left = left.subspan(now.size());
    stream.submit(encoded([&](abi::CommandEncoder encoder) {
      encode_shadows(now, encoder);
      if (!now.empty()) encode(now, gpu_.api.CommandEncoderBeginComputePass(encoder, nullptr));
      if (left.empty() && copies) encode_copies(encoder);
    }));
    if (left.empty()) return;
  }
}

// The number of launches whose estimated time fits in `Gpu::longest_submission`.
std::size_t WgpuInstance::in_one_submission(std::span<const Launch> left) const {
  double ns = 0;
  std::size_t n = 0;
  for (; n < left.size(); ++n) {
    ns += left[n].expected_ns;
    if (n != 0 && (ns > gpu_.longest_submission || left[n].begins_submission)) break;
  }
  return n;
}

void WgpuInstance::run_timed(const StepRange& range, WgpuStream& stream, std::vector<StepTime>& times) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point t) {
    return std::chrono::duration<double, std::nano>(Clock::now() - t).count();
  };
  times.clear();
  for (std::size_t i = range.begin; i < range.end; ++i) times.push_back({program_.plan.schedule[i].node, 0});
  stream.record().wait();
  if (!gpu_.timestamps()) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const auto start = Clock::now();
      run({i, i + 1}, stream);
      stream.record().wait();
      times[i - range.begin].ns = since(start);
    }
    if (range.begin == range.end) run(range, stream);  // only the copies; otherwise the last step has made them
    return;
  }
  if (!timestamps_) timestamps_ = std::make_unique<Timestamps>(device_->gpu(), device_->downloads());
  for (std::size_t i = range.begin; i < range.end;) {
    std::size_t end = i + 1;  // as many whole steps as fit
    while (end < range.end && launches({i, end + 1}).size() <= Timestamps::kMost) ++end;
    const std::span<Launch> ours = launches({i, end});
    for (Launch& l : ours)
      if (l.stale) make_group(l);
    if (!ours.empty()) {
      const std::vector<double> ns =
          timestamps_->submit(encoded([&](abi::CommandEncoder encoder) {
                                encode_shadows(ours, encoder);
                                for (std::uint32_t k = 0; k < ours.size(); ++k)
                                  encode(ours.subspan(k, 1), timestamps_->begin_pass(encoder, k));
                              }),
                              static_cast<std::uint32_t>(ours.size()));
      for (std::size_t step = i; step < end; ++step)
        for (std::uint32_t k = first_launch_[step]; k < first_launch_[step + 1]; ++k)
          times[step - range.begin].ns += ns[k - first_launch_[i]];
    }
    i = end;
  }
  run({range.end, range.end}, stream);  // submits only the copies after the last step
}

Event WgpuInstance::submit(const RunArguments& a, Stream& stream) {
  auto* const ours = dynamic_cast<WgpuStream*>(&stream);
  check(ours && &ours->device() == device_.get(), "a program got a stream of another device");
  gpu_.require();
  for (std::size_t i = 0; i < a.inputs.size(); ++i) rebind(Place::Input, i, a.inputs[i].view);
  for (std::size_t i = 0; i < a.outputs.size(); ++i) rebind(Place::Output, i, a.outputs[i].view);
  if (a.binding_generation != binding_generation_) {
    for (std::size_t i = 0; i < a.states.size(); ++i)
      if (a.states[i].view.buffer) rebind(Place::State, i, a.states[i].view);
    for (std::size_t i = 0; i < a.weights.size(); ++i)
      if (a.weights[i].buffer) rebind(Place::Prepared, i, a.weights[i]);
    binding_generation_ = a.binding_generation;
  }
  const StepRange range = a.range.of(program_.plan.schedule.size());
  if (a.times)
    run_timed(range, *ours, *a.times);
  else
    run(range, *ours);
  return ours->record();
}

}  // namespace rlx::wgpu
