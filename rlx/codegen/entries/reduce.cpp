// Kernel entries: reductions, scans and windows.
#include <algorithm>
#include <cmath>

#include "rlx/codegen/elements.h"
#include "rlx/codegen/entry.h"
#include "rlx/codegen/functions_wgsl.h"
#include "rlx/codegen/reductions.h"
#include "rlx/ir/math/windows.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/reduce.h"

namespace rlx::codegen {
namespace {

void write_reduce(NodeKernels& node) {
  const auto& op = node.op<ops::Reduce>();
  const Ref x = node.in(0);
  constexpr Combining fns[] = {Combining::Sum, Combining::Sum, Combining::Max, Combining::Min, Combining::Prod};
  Reduction r = reduction_of(fns[static_cast<int>(op.fn)], x.dtype);
  r.name = concat_text("reduce_", enum_name(op.fn));
  const Folded folded(x, op.axes);
  if (op.fn == ReduceKind::Mean) {
    const Dim n = folded.combined.elements();
    r.last = [n](KernelBuilder& k, const std::string& all) {
      k.use("f32_of");
      if (n.is_static(0)) return std::string("f32_of(0x7fc00000u)");
      const std::string count = k.size(Size(n)), mean = concat_text("(", all, " / f32(", count, "))");
      return n.is_static() ? mean : concat_text("select(", mean, ", f32_of(0x7fc00000u), ", count, " == 0u)");
    };
  }
  reduce_elements(node, r, folded, node.out());
}

// The element as an i32 key: a larger key is picked first.
std::string pick_key(KernelBuilder& k, DType t, bool max, const std::string& x) {
  if (is_float(t)) {
    k.use("order_f32");
    const std::string order = concat_text("order_f32(", x, ")");
    if (max) return order;
    k.global("fn order_down(x: i32) -> i32 { return select(-x, x, x == 0x7fffffff); }\n");
    return concat_text("order_down(", order, ")");
  }
  const std::string key = is_signed_int(t) ? x : concat_text("bitcast<i32>(", x, " ^ 0x80000000u)");
  return max ? key : concat_text("(~", key, ")");
}

void write_arg_reduce(NodeKernels& node) {
  const auto& op = node.op<ops::ArgReduce>();
  const Ref x = node.in(0);
  const bool max = op.fn == ArgReduceKind::Max;
  Reduction r;
  r.name = concat_text("arg_", enum_name(op.fn));
  r.type = "vec2<i32>";
  r.words = 2;
  r.identity = [](KernelBuilder&) { return std::string("vec2<i32>(-2147483647 - 1, 2147483647)"); };
  r.combine = [](KernelBuilder& k, const std::string& a, const std::string& b) {
    k.global(R"(fn better(a: vec2<i32>, b: vec2<i32>) -> vec2<i32> {
  return select(a, b, b.x > a.x || (b.x == a.x && b.y < a.y));
}
)");
    return concat_text("better(", a, ", ", b, ")");
  };
  r.term = [&](KernelBuilder& k, const std::string& v, const std::string& j) {
    return concat_text("vec2<i32>(", pick_key(k, x.dtype, max, v), ", i32(", j, "))");
  };
  r.last = [](KernelBuilder&, const std::string& all) { return all + ".y"; };
  reduce_elements(node, r, Folded(x, {op.axis}), node.out());
}

// -- scans --

constexpr std::int64_t kRun = 256;  // elements that one thread scans

// The lines that a scan runs along: [outer, n, inner].
struct Lines {
  Ref x;  // three axes
  Dim count() const { return x.dims[0] * x.dims[2]; }
  const Dim& length() const { return x.dims[1]; }
};

// Adds kernels that write the scan of `from` to `to`, both with the same three axes.
void run_along(NodeKernels& node, const Reduction& r, const Lines& from, const Lines& to, bool exclusive,
               bool reverse) {
  const Dim lines = from.count(), n = from.length();
  const bool whole = node.upper(n) <= kRun;
  const Dim chunks = whole ? Dim(1) : floordiv(n + Dim(kRun - 1), Dim(kRun));
  // The chunk of a line that a thread scans.
  const auto begin = [&](KernelBuilder& k) {
    k << "let i = THREAD;\nif (i >= " << k.size(Size(lines * chunks)) << ") { return; }\n";
    k << k.split("i", {from.x.dims[0], chunks, from.x.dims[2]}, {"outer", "chunk", "inner"});
    k << concat_text("let first = chunk * ", kRun, "u;\nlet end = min(first + ", kRun, "u, ", k.size(Size(n)), ");\n");
  };
  const auto loop = [&](KernelBuilder& k) {
    const std::string at = reverse ? concat_text("(", k.size(Size(n)), " - 1u - j)") : "j";
    k << "for (var j = first; j < end; j = j + 1u) {\nlet position = " << at
      << ";\nlet x = " << k.load(from.x, k.at(from.x, {"outer", "position", "inner"})) << ";\n";
  };
  Ref before{};
  if (!whole) {  // the total of each chunk, and the total of all chunks before it
    const Ref totals = node.scratch(to.x.dtype, {from.x.dims[0], chunks, from.x.dims[2]});
    before = node.scratch(to.x.dtype, totals.dims);
    {
      KernelBuilder k(node, r.name + "_of_chunks");
      begin(k);
      k << "var all = " << r.identity(k) << ";\n";
      loop(k);
      k << "all = " << r.combine(k, "all", "x") << ";\n}\n" << k.store(totals, "i", "all");
      k.finish_threads(lines * chunks);
    }
    run_along(node, r, {totals}, {before}, true, false);
  }
  KernelBuilder k(node, r.name);
  begin(k);
  k << "var all = " << (whole ? r.identity(k) : k.load(before, "i")) << ";\n";
  loop(k);
  const std::string index = k.at(to.x, {"outer", "position", "inner"});
  if (exclusive) k << k.store(to.x, index, "all");
  k << "all = " << r.combine(k, "all", "x") << ";\n";
  if (!exclusive) k << k.store(to.x, index, "all");
  k << "}\n";
  k.finish_threads(lines * chunks);
}

void write_cumulative(NodeKernels& node) {
  const auto& op = node.op<ops::Cumulative>();
  const Ref out = node.out();
  if (out.elements().is_static(0)) return;
  constexpr Combining fns[] = {Combining::Sum, Combining::Prod, Combining::Max, Combining::Min};
  Reduction r = reduction_of(fns[static_cast<int>(op.fn)], out.dtype);
  r.name = concat_text("cumulative_", enum_name(op.fn));
  const Ref made = unpacked(node, out);
  const auto lines = [&](const Ref& v) {
    const int a = static_cast<int>(op.axis);
    return Lines{reshaped(v, {v.extent(0, a), v.dim(a), v.extent(a + 1, v.rank())})};
  };
  run_along(node, r, lines(node.in(0)), lines(made), op.exclusive, op.reverse);
  pack(node, out, made);
}

// -- windows --

constexpr std::int64_t kMostWindowPlaces = 1 << 14;  // most elements of a window, which one thread reads

Dim window_steps(const Graph& g, NodeId id, const Dialect&) {
  Dim n(1);
  for (std::int64_t w : g.node(id).op.as<ops::ReduceWindow>().window) n = n * Dim(w);
  return n;
}
const char* refuse_window(const Graph& g, NodeId id) {
  if (const char* why = refuse_dtypes(g, id)) return why;
  std::int64_t places = 1;
  for (std::int64_t w : g.node(id).op.as<ops::ReduceWindow>().window)
    places = places > kMostWindowPlaces ? places : places * std::min(w, kMostWindowPlaces + 1);
  return refuse_unless(places <= kMostWindowPlaces, "its windows are too large for one thread");
}

// The loops around `body`, which runs for each element of the window of result `i`, at coordinates x0, x1, ..
void write_window_loops(KernelBuilder& k, const std::vector<WindowAxis>& axes, const Ref& x, const Ref& out,
                        const std::string& body) {
  std::vector<std::string> names;
  std::string ends;
  for (std::size_t a = 0; a < axes.size(); ++a) names.push_back(concat_text("o", a));
  k << k.split("i", out.dims, names);
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const WindowAxis& w = axes[a];
    if (w.plain()) {
      k << concat_text("let x", a, " = o", a, ";\n");
      continue;
    }
    k << concat_text("for (var k", a, " = 0; k", a, " < ", w.window, "; k", a, " = k", a, " + 1) {\nlet p", a,
                     " = i32(o", a, ") * ", w.stride, " + k", a, " * ", w.dilation, " - (", w.low, ");\nif (p", a,
                     " < 0) { continue; }\n");
    if (w.base > 1) k << concat_text("if (p", a, " % ", w.base, " != 0) { continue; }\n");
    k << concat_text("let x", a, " = u32(p", a, w.base > 1 ? concat_text(" / ", w.base) : std::string(), ");\nif (x", a,
                     " >= ");
    k << k.size(Size(x.dims[a])) << ") { continue; }\n";
    ends += "}\n";
  }
  k << body << ends;
}

void write_reduce_window(NodeKernels& node) {
  const auto& op = node.op<ops::ReduceWindow>();
  const Ref x = node.in(0);
  if (node.out().elements().is_static(0)) return;
  const std::vector<WindowAxis> axes = window_axes(op);
  std::vector<std::string> at;
  for (std::size_t a = 0; a < axes.size(); ++a) at.push_back(concat_text("x", a));
  const bool max = op.fn == ReduceKind::Max, extremum = max || op.fn == ReduceKind::Min;
  if (node.is_read(0)) {
    constexpr Combining fns[] = {Combining::Sum, Combining::Sum, Combining::Max, Combining::Min, Combining::Prod};
    const Reduction r = reduction_of(fns[static_cast<int>(op.fn)], x.dtype);
    map_elements(node, concat_text("window_", enum_name(op.fn)), {node.out()},
                 [&](KernelBuilder& k, const std::string&) {
                   k << "var all = " << r.identity(k) << ";\n";
                   const std::string v = k.load(x, k.at(x, at));
                   write_window_loops(k, axes, x, node.out(), concat_text("all = ", r.combine(k, "all", v), ";\n"));
                   if (op.fn != ReduceKind::Mean) return std::vector<std::string>{"all"};
                   double places = 1;
                   for (std::int64_t w : op.window) places *= static_cast<double>(w);
                   return std::vector<std::string>{concat_text("(all / f32(", static_cast<std::int64_t>(places), "))")};
                 });
  }
  if (!extremum || !node.is_read(1)) return;
  map_elements(node, concat_text("window_place_of_", enum_name(op.fn)), {node.out(1)},
               [&](KernelBuilder& k, const std::string&) {
                 k << "var top = 0;\nvar place = -1;\n";
                 const std::string index = k.at(x, at), key = pick_key(k, x.dtype, max, k.load(x, index));
                 write_window_loops(k, axes, x, node.out(1),
                                    concat_text("let key = ", key, ";\nif (place < 0 || key > top) {\ntop = key;\n",
                                                "place = i32(", index, ");\n}\n"));
                 return std::vector<std::string>{"place"};
               });
}

bool reduces_strided(const Graph&, NodeId, int) { return true; }

constexpr KernelEntry kReduceEntries[] = {
    {OpKind::Reduce, "reduce", refuse_dtypes, write_reduce, reduces_strided},
    {OpKind::ArgReduce, "arg_reduce", refuse_dtypes, write_arg_reduce, reduces_strided},
    {OpKind::Cumulative, "cumulative", refuse_dtypes, write_cumulative, nullptr, nullptr, nullptr, 0, widened_bytes},
    {.kind = OpKind::ReduceWindow,
     .kernel = "reduce_window",
     .refuses = refuse_window,
     .write = write_reduce_window,
     .skips_unread = 0b11,
     .steps = window_steps},
};

}  // namespace

std::span<const KernelEntry> reduce_entries() { return kReduceEntries; }

}  // namespace rlx::codegen
