// Scatter, where no two threads write one element. Either each thread takes a column (one element of all blocks) and
// applies all updates in order. Or, where columns are few and updates many, updates are sorted by target, and a thread
// applies each run of equal targets in order.
#include "rlx/codegen/scatter.h"

#include <algorithm>

#include "rlx/codegen/elements.h"
#include "rlx/codegen/indexed.h"
#include "rlx/codegen/reductions.h"
#include "rlx/codegen/sorting.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/indexing.h"

namespace rlx::codegen {
namespace {

constexpr std::int64_t kFewUpdates = 512;  // one thread applies up to this many, whatever the number of columns

// The values of a Scatter, in units of moves (a Set whose units are whole words) or in elements.
struct Scattered {
  ops::Scatter op;
  bool moves = false;
  IndexedAxes axes;
  Ref table, target, updates;  // the result as words and as [outer, others..]; the updates as [outer, count, others..]
};

// The element `now` after the update `u`.
std::string with_update(KernelBuilder& k, ScatterKind fn, DType t, const std::string& now, const std::string& u) {
  if (fn == ScatterKind::Set) return u;
  constexpr Combining fns[] = {Combining::Sum, Combining::Sum, Combining::Prod, Combining::Min, Combining::Max};
  return reduction_of(fns[static_cast<int>(fn)], t).combine(k, now, u);
}

struct Access {
  Mover& m;
  bool moves;
  std::string load(const Ref& r, const std::string& i) const { return moves ? m.load(r, i) : m.k().load(r, i); }
  std::string store(const Ref& r, const std::string& i, const std::string& v) const {
    if (!moves) return m.k().store(r, i, v);
    return m.wide() ? m.k().store4(r, i, v) : m.k().store_word(r, i, v);
  }
};

// The columns: i is the index of one, c0, c2, .. are its coordinates.
Ref columns_of(const Ref& updates) {
  Ref r = updates;
  r.dims.erase(r.dims.begin() + 1), r.strides.erase(r.strides.begin() + 1);
  return r;
}

void write_columns(NodeKernels& node, const Scattered& s, DType t) {
  Mover m(node, concat_text("scatter_", enum_name(s.op.fn)), {s.updates, s.target},
          s.moves ? s.axes.strides(s.table) : std::vector<Dim>{Dim(1)});
  const Access access{m, s.moves};
  KernelBuilder& k = m.k();
  const Ref to = m.in_units(s.target), from = m.in_units(s.updates), columns = columns_of(from);
  std::vector<std::string> c{"c0"}, with_count{"c0", "n"};
  for (int a = 1; a < columns.rank(); ++a) c.push_back(concat_text("c", a)), with_count.push_back(c.back());
  k << "let i = THREAD;\nif (i >= " << k.size(Size(columns.elements())) << ") { return; }\n"
    << k.split("i", columns.dims, c) << "let base = " << k.at(to, c) << ";\n";
  const IndexedAxes::Place place = s.axes.place(m, s.table, "n", s.op.mode == IndexMode::Clamp);
  k << "for (var n = 0u; n < " << k.size(Size(s.axes.count())) << "; n = n + 1u) {\n" << place.statements;
  k << "if (" << place.inside << ") {\nlet place = base + " << place.offset
    << ";\nlet u = " << access.load(from, k.at(from, with_count)) << ";\n";
  k << access.store(to, "place", with_update(k, s.op.fn, t, access.load(to, "place"), "u")) << "}\n}\n";
  k.finish_threads(columns.elements());
}

void write_runs(NodeKernels& node, const Scattered& s, DType t) {
  const bool clamp = s.op.mode == IndexMode::Clamp;
  const Dim count = s.axes.count();
  const KeyText key = [&](KernelBuilder& k, const std::string&, const std::string& j) {
    const IndexedAxes::Place place = s.axes.target_number(k, s.table, j, clamp);
    k << place.statements;
    return clamp ? place.offset : concat_text("select(0xffffffffu, ", place.offset, ", ", place.inside, ")");
  };
  const SortedRows sorted = sorted_rows(node, Dim(1), count, key);
  Mover m(node, concat_text("scatter_", enum_name(s.op.fn), "_runs"), {s.updates, s.target},
          s.moves ? s.axes.strides(s.table) : std::vector<Dim>{Dim(1)});
  const Access access{m, s.moves};
  KernelBuilder& k = m.k();
  const Ref to = m.in_units(s.target), from = m.in_units(s.updates), columns = columns_of(from);
  std::vector<std::string> c{"c0"}, with_count{"c0", "n"};
  for (int a = 1; a < columns.rank(); ++a) c.push_back(concat_text("c", a)), with_count.push_back(c.back());
  const std::string width = k.size(Size(columns.elements())), end = k.size(Size(count));
  const Dim threads = columns.elements() * count;
  k << "if (THREAD >= " << k.size(Size(threads)) << ") { return; }\nlet first = THREAD / " << width
    << ";\nlet i = THREAD % " << width << ";\nlet key = " << k.load(sorted.keys, "first")
    << ";\nif (key == 0xffffffffu) { return; }\n";
  k << "if (first > 0u) {\nif (" << k.load(sorted.keys, "first - 1u") << " == key) { return; }\n}\n";
  k << k.split("i", columns.dims, c);
  // The end of the run. Its key is the target.
  k << "var last = first + 1u;\nfor (; last < " << end << "; last = last + 1u) { if (" << k.load(sorted.keys, "last")
    << " != key) { break; } }\n";
  const IndexedAxes::Place place = s.axes.place_of_number(m, s.table, "key");
  k << place.statements << "let place = " << k.at(to, c) << " + " << place.offset << ";\n";
  if (s.op.fn == ScatterKind::Set) {
    k << "let n = " << k.load(sorted.places, "last - 1u") << ";\n"
      << access.store(to, "place", access.load(from, k.at(from, with_count)));
  } else {
    k << "var y = " << access.load(to, "place")
      << ";\nfor (var at = first; at < last; at = at + 1u) {\nlet n = " << k.load(sorted.places, "at")
      << ";\nlet u = " << access.load(from, k.at(from, with_count)) << ";\ny = " << with_update(k, s.op.fn, t, "y", "u")
      << ";\n}\n"
      << access.store(to, "place", "y");
  }
  k.finish_threads(threads);
}

// True when the units of a Set are whole words.
bool sets_words(NodeKernels& node, const Scattered& s) {
  return Mover(node, "", {s.updates, s.target}, s.axes.strides(s.table)).owns_words();
}

}  // namespace

void write_scatter(NodeKernels& node) {
  const Ref out = node.out(), x = node.in(0), updates = node.in(node.num_inputs() - 1);
  if (out.elements().is_static(0)) return;
  const auto& op = node.op<ops::Scatter>();
  const IndexedAxes axes(node, op.axes, 1);
  const bool sets = op.fn == ScatterKind::Set;
  const auto scattered = [&](bool moves, const Ref& result, const Ref& from) {
    const Ref target = axes.target(result, x.rank());
    return Scattered{op, moves, axes, result, target, axes.picked(from, target)};
  };
  Scattered s = sets ? scattered(true, as_words(out), as_words(updates)) : scattered(false, out, updates);
  // Elements narrower than a word are computed as words and packed at the end.
  const bool wide = sets ? !sets_words(node, s) : size_bytes(out.dtype) < 4;
  DType t = out.dtype;
  Ref made = out;
  if (wide) {
    const auto narrow = [&](Ref r) {
      if (sets) r.dtype = size_bytes(r.dtype) == 1 ? DType::U8 : DType::U16;
      return r;
    };
    made = unpacked(node, narrow(out));
    t = made.dtype;
    KernelBuilder k(node, "unpack");
    finish_elements(k, {{narrow(x)}, {made}, {}, {"x0"}});
    s = scattered(false, made, narrow(updates));
  } else if (!node.in_place(0)) {
    copy_elements(node, "copy", out, x);
  }
  if (!updates.elements().is_static(0)) {
    const std::int64_t columns = node.upper(s.updates.elements()) / std::max<std::int64_t>(1, node.upper(axes.count()));
    const bool few = node.upper(axes.count()) <= std::max(kFewUpdates, 4 * columns);
    (few ? write_columns : write_runs)(node, s, t);
  }
  if (!wide) return;
  Ref packed = out;
  if (sets) packed.dtype = size_bytes(out.dtype) == 1 ? DType::U8 : DType::U16;
  pack(node, packed, made);
}

}  // namespace rlx::codegen
