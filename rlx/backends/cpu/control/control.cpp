// Branches and loops as tasks of a program. Their bodies are programs bound to a range of the parent's arena. The
// thread that runs the program evaluates conditions and hands each body's tasks to all threads of the run.
#include <algorithm>
#include <cstring>
#include <limits>

#include "rlx/backends/cpu/control/loop_writer.h"
#include "rlx/backends/cpu/entries.h"
#include "rlx/base/stop_request.h"
#include "rlx/device/host_device.h"
#include "rlx/ir/ops/control.h"
#include "rlx/ir/packed_layout.h"
#include "rlx/ir/rewrite/bodies.h"

namespace rlx::cpu {
namespace {

/// A body, bound once, with the operand and result pointers of its next run.
struct BodyRun {
  std::unique_ptr<Instance> bound;
  std::vector<RunSlot> inputs, outputs;
  std::shared_ptr<Stream> stream;

  void bind(LowerContext& c, std::size_t body, const std::shared_ptr<Stream>& s) {
    bound = c.bind_body(body);
    const Graph& g = c.bodies().modules[body].graph;
    for (NodeId id : g.leaves(OpKind::Input)) inputs.push_back({BufferView(nullptr, stored_bytes(g, Value(id)))});
    for (Value v : g.outputs()) outputs.push_back({BufferView(nullptr, g.shape(v).size_bytes())});
    stream = s;
  }
  void read(std::size_t i, const std::byte* from) { inputs[i].view.host = const_cast<std::byte*>(from); }  // only read
  void write(std::size_t o, std::byte* to) { outputs[o].view.host = to; }
  void run() {
    RunArguments a;
    a.inputs = inputs, a.outputs = outputs;
    (void)bound->submit(a, *stream);
  }
};

/// Operands and results of the node. Some pointers are relocated to callers' buffers.
struct Places {
  std::vector<std::byte*> operands, results;
  std::vector<std::size_t> operand_bytes, result_bytes;

  explicit Places(LowerContext& c) : operands(c.node().inputs.size()), results(c.node().num_results()) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const View v = c.in(static_cast<int>(i));
      check(v.dense(), "an operand of a body is not row-major");
      c.point(operands[i], v);
      operand_bytes.push_back(size_bytes(v.dtype, v.elements()));
    }
    for (std::size_t r = 0; r < results.size(); ++r) {
      const View v = c.out(static_cast<int>(r));
      c.point(results[r], v);
      result_bytes.push_back(size_bytes(v.dtype, v.elements()));
    }
  }
};

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes != 0 && to != from) std::memmove(to, from, bytes);
}

// -- branches --

struct IfStep {
  IfStep(LowerContext& c, const std::shared_ptr<Stream>& stream) : places(c) {
    for (std::size_t b = 0; b < 2; ++b) branches[b].bind(c, b, stream);
  }
  Places places;
  BodyRun branches[2];
};
void run_if(IfStep& s, std::int64_t) {
  const bool taken = *reinterpret_cast<const std::uint8_t*>(s.places.operands[0]) != 0;
  BodyRun& b = s.branches[taken ? 0 : 1];
  for (std::size_t i = 1; i < s.places.operands.size(); ++i) b.read(i - 1, s.places.operands[i]);
  for (std::size_t r = 0; r < s.places.results.size(); ++r) b.write(r, s.places.results[r]);
  b.run();
}

// -- loops --

/// The carries of a loop. A carry that the body can update in place stays in the node's result; others alternate
/// between the result and a second buffer.
struct Carries {
  Carries(LowerContext& c, const Places& places, const LoopParts& parts)
      : first_operand(parts.first_carry()), now(parts.carries) {
    for (std::size_t i = 0; i < parts.carries; ++i) {
      const std::optional<std::uint32_t>& second = c.bodies().second[i];
      other.push_back(second ? c.body_range(*second).host : nullptr);
      bytes.push_back(places.result_bytes[i]);
    }
  }
  /// With a known iteration count `trips`, chooses the first buffer so that the last iteration writes the result.
  void begin(const Places& p, std::int64_t iterations) {
    for (std::size_t i = 0; i < now.size(); ++i) {
      now[i] = other[i] && iterations % 2 != 0 ? other[i] : p.results[i];
      copy_bytes(now[i], p.operands[first_operand + i], bytes[i]);
    }
  }
  void point(const Places& p, BodyRun& body) {
    for (std::size_t i = 0; i < now.size(); ++i) {
      body.read(first_operand + i, now[i]);
      body.write(i, next(p, i));
    }
  }
  void turn(const Places& p) {
    for (std::size_t i = 0; i < now.size(); ++i) now[i] = next(p, i);
  }
  void end(const Places& p) {
    for (std::size_t i = 0; i < now.size(); ++i) copy_bytes(p.results[i], now[i], bytes[i]);
  }

  std::size_t first_operand;
  std::vector<std::byte*> now, other;
  std::vector<std::size_t> bytes;

 private:
  std::byte* next(const Places& p, std::size_t i) const {
    return !other[i] ? now[i] : now[i] == other[i] ? p.results[i] : other[i];
  }
};

struct ScanStep {
  ScanStep(LowerContext& c, const std::shared_ptr<Stream>& stream)
      : places(c), parts(*loop_parts(c.node().op)), carries(c, places, parts), reverse(c.op<ops::Scan>().reverse) {
    body.bind(c, 0, stream);
    length = c.op<ops::Scan>().length[0].value();
  }
  Places places;
  LoopParts parts;
  Carries carries;
  BodyRun body;
  std::int64_t length = 0;
  bool reverse;
};
void run_scan(ScanStep& s, std::int64_t) {
  const Places& p = s.places;
  s.carries.begin(p, s.length);
  for (std::size_t i = 0; i < s.parts.invariants; ++i) s.body.read(i, p.operands[i]);
  for (std::int64_t n = 0; n < s.length; ++n) {
    StopRequest::check();
    const auto t = static_cast<std::size_t>(s.reverse ? s.length - 1 - n : n);
    for (std::size_t i = s.parts.first_x(); i < p.operands.size(); ++i)
      s.body.read(i, p.operands[i] + t * s.body.inputs[i].view.bytes);
    for (std::size_t r = s.parts.carries; r < p.results.size(); ++r)
      s.body.write(r, p.results[r] + t * s.body.outputs[r].view.bytes);
    s.carries.point(p, s.body);
    s.body.run();
    s.carries.turn(p);
  }
  s.carries.end(p);
}

struct WhileStep {
  WhileStep(LowerContext& c, const std::shared_ptr<Stream>& stream)
      : places(c),
        parts(*loop_parts(c.node().op)),
        carries(c, places, parts),
        most(c.op<ops::While>().max_trips.value_or(std::numeric_limits<std::int64_t>::max())) {
    cond.bind(c, 0, stream);
    body.bind(c, 1, stream);
  }
  Places places;
  LoopParts parts;
  Carries carries;
  BodyRun cond, body;
  std::int64_t most;
  std::uint8_t again = 0;
};
void run_while(WhileStep& s, std::int64_t) {
  const Places& p = s.places;
  const std::size_t iterations_result = s.parts.outputs();
  s.carries.begin(p, 0);
  for (std::size_t i = 0; i < s.parts.invariants; ++i) s.body.read(i, p.operands[i]), s.cond.read(i, p.operands[i]);
  s.cond.write(0, reinterpret_cast<std::byte*>(&s.again));
  std::int64_t iterations = 0;
  for (; iterations < s.most; ++iterations) {
    StopRequest::check();
    for (std::size_t i = 0; i < s.parts.carries; ++i) s.cond.read(s.parts.first_carry() + i, s.carries.now[i]);
    s.cond.run();
    if (s.again == 0) break;
    for (std::size_t r = s.parts.carries; r < iterations_result; ++r)
      s.body.write(r, p.results[r] + static_cast<std::size_t>(iterations) * s.body.outputs[r].view.bytes);
    s.carries.point(p, s.body);
    s.body.run();
    s.carries.turn(p);
  }
  s.carries.end(p);
  for (std::size_t r = s.parts.carries; r < iterations_result; ++r) {  // zero the rows of iterations that did not run
    const std::size_t done = static_cast<std::size_t>(iterations) * s.body.outputs[r].view.bytes;
    if (done < p.result_bytes[r]) std::memset(p.results[r] + done, 0, p.result_bytes[r] - done);
  }
  std::memcpy(p.results[iterations_result], &iterations, sizeof iterations);
}

// -- small loops --

/// A loop whose iterations run as straight-line code. Operands and results of its body have fixed places: rows of xs
/// and ys pass through memory of the loop, and a carry that is not updated in place is copied back after an iteration.
struct SmallLoop {
  explicit SmallLoop(LowerContext& c) : places(c), parts(*loop_parts(c.node().op)), code(c.kernels()) {
    const LirBodies& bodies = c.bodies();
    const Graph& body = bodies.modules.back().graph;
    const std::vector<NodeId> in = body.leaves(OpKind::Input);
    inputs.resize(in.size()), outputs.resize(body.outputs().size());
    const auto* scan = c.node().op.get_if<ops::Scan>();
    if (scan) {
      most = scan->length[0].value(), reverse = scan->reverse;
    } else {
      most = c.op<ops::While>().max_trips.value_or(std::numeric_limits<std::int64_t>::max());
    }
    for (std::size_t i = parts.first_x(); i < parts.inputs(); ++i) {
      if (!reads(body, in[i])) continue;
      const std::size_t bytes = stored_bytes(body, Value(in[i]));  // packed weights have more than their elements
      std::byte* const row = c.workspace(bytes);
      inputs[i].view = BufferView(row, bytes);
      loads.emplace_back(i,
                         code.add(copy(bytes, nullptr, row, LoopOp::LoadRow4, LoopOp::LoadRow8, LoopOp::LoadRowBytes)));
    }
    ok = true;
    if (!scan) {
      ok = code.add_body(c, 0);
      LoopInstr leave;
      leave.op = LoopOp::LeaveUnless, leave.a = &again;
      code.add(leave);
    }
    ok = ok && code.add_body(c, scan ? 0 : 1);
    for (std::size_t i = 0; i < parts.carries; ++i) {
      const std::size_t bytes = places.result_bytes[i];
      std::byte* now = nullptr;  // where the plan has the result
      if (const auto& second = bodies.second[i]) {
        std::byte* const next = c.body_range(*second).host;
        now = c.workspace(bytes);
        outputs[i].view = BufferView(next, bytes);
        code.add(copy(bytes, next, now, LoopOp::Copy4, LoopOp::Copy8, LoopOp::CopyBytes));
        ok = ok && bytes <= kMostCopied;
      }
      carries.push_back(now);
    }
    for (std::size_t o = parts.carries; o < parts.outputs(); ++o) {
      const std::size_t bytes = body.shape(body.outputs()[o]).size_bytes();
      std::byte* const row = c.workspace(bytes);
      outputs[o].view = BufferView(row, bytes);
      row_bytes.push_back(bytes);
      stores.emplace_back(
          o, code.add(copy(bytes, row, nullptr, LoopOp::StoreRow4, LoopOp::StoreRow8, LoopOp::StoreRowBytes)));
    }
    if (ok) code.finish();
  }

  static bool reads(const Graph& body, NodeId input) {
    const auto is_input = [&](Value v) { return v.node == input; };
    for (const Node& n : body.nodes())
      if (std::any_of(n.inputs.begin(), n.inputs.end(), is_input)) return true;
    return std::any_of(body.outputs().begin(), body.outputs().end(), is_input);
  }
  static LoopInstr copy(std::size_t bytes, const void* from, void* to, LoopOp four, LoopOp eight, LoopOp other) {
    LoopInstr i;
    i.op = bytes == 4 ? four : bytes == 8 ? eight : other;
    i.n = bytes, i.a = from, i.d = to;
    return i;
  }

  static constexpr std::size_t kMostCopied = 16384;  // larger carries alternate between two buffers
  Places places;
  LoopParts parts;
  LoopCode code;
  std::vector<RunSlot> inputs, outputs;  // of the body
  std::vector<std::byte*> carries;       // of a carry that is copied back: where the body reads it
  std::vector<std::pair<std::size_t, std::size_t>> loads, stores;  // operand or result, instruction
  std::vector<std::size_t> row_bytes;                              // of each y
  std::int64_t most = 0;
  bool reverse = false, ok = false;
  std::uint8_t again = 0;
};
void run_small_loop(SmallLoop& s, std::int64_t) {
  const AsWorkerZero alone(1);  // kernels of the body take its scratch memory
  const Places& p = s.places;
  const LoopParts& parts = s.parts;
  for (std::size_t i = 0; i < parts.invariants; ++i) s.inputs[i].view.host = p.operands[i];
  for (std::size_t i = 0; i < parts.carries; ++i) {
    std::byte* const now = s.carries[i] ? s.carries[i] : p.results[i];
    copy_bytes(now, p.operands[parts.first_carry() + i], p.result_bytes[i]);
    s.inputs[parts.first_carry() + i].view.host = now;
    if (!s.carries[i]) s.outputs[i].view.host = now;
  }
  RunSlot decision;
  decision.view = BufferView(reinterpret_cast<std::byte*>(&s.again), 1);
  const bool scan = p.results.size() == parts.outputs();
  if (!scan) s.code.point(0, s.inputs, std::span(&decision, 1));
  s.code.point(scan ? 0 : 1, s.inputs, s.outputs);
  for (const auto& [operand, at] : s.loads) s.code.at(at).a = p.operands[operand];
  for (const auto& [result, at] : s.stores) s.code.at(at).d = p.results[result];
  const std::int64_t between = s.code.calls_kernels() ? 8 : 256;  // iterations between two looks at the stop request
  std::int64_t done = 0;
  while (done < s.most) {
    StopRequest::check();
    const std::int64_t n = std::min(between, s.most - done);
    const std::int64_t ran = run_loop_code(s.code.code(), s.reverse ? s.most - 1 - done : done, s.reverse ? -1 : 1, n);
    done += ran;
    if (ran < n) break;
  }
  for (std::size_t i = 0; i < parts.carries; ++i)
    if (s.carries[i]) copy_bytes(p.results[i], s.carries[i], p.result_bytes[i]);
  if (scan) return;
  for (std::size_t y = 0; y < s.row_bytes.size(); ++y) {  // zero the rows of iterations that did not run
    const std::size_t r = parts.carries + y, filled = static_cast<std::size_t>(done) * s.row_bytes[y];
    if (filled < p.result_bytes[r]) std::memset(p.results[r] + filled, 0, p.result_bytes[r] - filled);
  }
  std::memcpy(p.results[parts.outputs()], &done, sizeof done);
}

// -- kernel entries --

template <class Step, auto Run>
void lower_control(LowerContext& c) {
  constexpr double kIterationNs = 1000;  // the host decides between schedules: this task is never split or grouped
  auto& s = c.keep<Step>(c, open_host_device(Device::Cpu)->stream());
  c.step_alone<Run>(s, kIterationNs);
}

template <class General, auto Run>
void lower_small_loop(LowerContext& c) {
  auto& s = c.keep<SmallLoop>(c);  // also when it is not used: pointers of its fields are relocated
  if (!s.ok) return lower_control<General, Run>(c);
  c.step_alone<run_small_loop>(s, 1000);
}

bool whole_bytes(const Shape& s) { return dtype_bits(s.dtype()) >= 8; }

const char* control_refuses(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  for (Value v : n.inputs)
    if (!whole_bytes(g.shape(v))) return "an operand has elements smaller than a byte";
  for (const Shape& s : n.shapes)
    if (!whole_bytes(s)) return "a result has elements smaller than a byte";
  for (const Subgraph& body : body_graphs(n.op))
    for (std::uint32_t i = 0; i < body->num_nodes(); ++i)
      if (entry_table().refuses(*body, NodeId{i}) && !runs_on_host(*body, NodeId{i}))
        return "its body holds an op that the cpu cannot run";
  return nullptr;
}

const char* small_loop_refuses(const Graph& g, NodeId id) {
  if (const char* why = bodies_not_small(g, id)) return why;
  return control_refuses(g, id);
}

constexpr KernelEntry control_row(OpKind kind, const char* kernel, const char* (*refuses)(const Graph&, NodeId),
                                  void (*lower)(LowerContext&)) {
  KernelEntry row{kind, kernel, refuses, lower};
  row.plans_bodies = true;
  return row;
}
constexpr KernelEntry kControlEntries[] = {
    control_row(OpKind::If, "if", control_refuses, lower_control<IfStep, run_if>),
    control_row(OpKind::While, "while_straight_line", small_loop_refuses, lower_small_loop<WhileStep, run_while>),
    control_row(OpKind::While, "while", control_refuses, lower_control<WhileStep, run_while>),
    control_row(OpKind::Scan, "scan_straight_line", small_loop_refuses, lower_small_loop<ScanStep, run_scan>),
    control_row(OpKind::Scan, "scan", control_refuses, lower_control<ScanStep, run_scan>),
};

}  // namespace

std::span<const KernelEntry> control_entries() { return kControlEntries; }

}  // namespace rlx::cpu
