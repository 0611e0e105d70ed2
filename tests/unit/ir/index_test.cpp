// x[..] of Exprs beside an evaluation of the same index position by position, as NumPy defines it; g.flatten; the
// comparison operators; kv_heads.
#include "rlx/ir/index.h"

#include <doctest/doctest.h>

#include <random>
#include <type_traits>

#include "rlx/ir/evaluate.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/text.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

// == is identity, and its answer is no operand by mistake.
static_assert(!std::is_convertible_v<decltype(std::declval<Expr>() == std::declval<Expr>()), Operand>);
static_assert(std::is_same_v<decltype(std::declval<Expr>() < 1), Expr>);

// One entry as the test draws it.
struct Entry {
  enum Kind { kPosition, kSlice, kNew, kRestOfAxes, kTensor, kMask } kind;
  std::int64_t position = 0, step = 1;
  std::optional<std::int64_t> start{}, stop{};
  std::vector<std::int64_t> positions{};  // of the tensor, or where the mask is true
  std::vector<std::int64_t> dims{};       // of the tensor
};

// Python's slice(start, stop, step).indices(extent), position by position.
std::vector<std::int64_t> positions_of(const Entry& e, std::int64_t extent) {
  std::vector<std::int64_t> out;
  const auto from_start = [&](std::int64_t b) { return b < 0 ? b + extent : b; };
  if (e.step > 0) {
    const std::int64_t low = std::max<std::int64_t>(e.start ? from_start(*e.start) : 0, 0);
    for (std::int64_t i = low; i < std::min(e.stop ? from_start(*e.stop) : extent, extent); i += e.step)
      out.push_back(i);
  } else {
    const std::int64_t high = std::min(e.start ? from_start(*e.start) : extent - 1, extent - 1);
    for (std::int64_t i = high; i > std::max<std::int64_t>(e.stop ? from_start(*e.stop) : -1, -1); i += e.step)
      out.push_back(i);
  }
  return out;
}

// The dims of the result, and for each of its elements the element of x, row-major.
struct Selected {
  std::vector<std::int64_t> dims, elements{0};
};
Selected select(const std::vector<std::int64_t>& extents, const std::vector<Entry>& entries) {
  Selected out;
  std::size_t axis = 0, used = 0;
  for (const Entry& e : entries) used += e.kind != Entry::kNew && e.kind != Entry::kRestOfAxes;
  const auto walk = [&](const std::vector<std::int64_t>& positions, const std::vector<std::int64_t>& dims) {
    std::vector<std::int64_t> next;
    for (const std::int64_t before : out.elements)
      for (const std::int64_t p : positions) next.push_back(before * extents[axis] + p);
    out.elements = std::move(next);
    out.dims.insert(out.dims.end(), dims.begin(), dims.end());
    ++axis;
  };
  const auto whole = [&] {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < extents[axis]; ++i) all.push_back(i);
    walk(all, {extents[axis]});
  };
  for (const Entry& e : entries) {
    switch (e.kind) {
      case Entry::kNew: out.dims.push_back(1); break;
      case Entry::kRestOfAxes:
        for (std::size_t i = used; i < extents.size(); ++i) whole();
        break;
      case Entry::kPosition: walk({e.position < 0 ? e.position + extents[axis] : e.position}, {}); break;
      case Entry::kTensor: {
        std::vector<std::int64_t> p = e.positions;
        for (std::int64_t& i : p) i += i < 0 ? extents[axis] : 0;
        walk(p, e.dims);
        break;
      }
      case Entry::kMask: walk(e.positions, {static_cast<std::int64_t>(e.positions.size())}); break;
      default: {
        const std::vector<std::int64_t> p = positions_of(e, extents[axis]);
        walk(p, {static_cast<std::int64_t>(p.size())});
      }
    }
  }
  while (axis < extents.size()) whole();
  return out;
}

class Draw {
 public:
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(generator_);
  }
  std::vector<Entry> entries(const std::vector<std::int64_t>& extents) {
    std::vector<Entry> out;
    bool tensor = false, rest = false;
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      const std::int64_t n = extents[axis];
      if (between(0, 5) == 0) out.push_back({Entry::kNew});
      if (!rest && between(0, 5) == 0) {  // the rest: this axis and the later ones that nothing selects from
        out.push_back({Entry::kRestOfAxes});
        rest = true;
        axis += static_cast<std::size_t>(between(-1, static_cast<std::int64_t>(extents.size() - axis) - 1));
        continue;
      }
      const std::int64_t kind = between(0, 9);
      Entry e{Entry::kSlice};
      if (kind < 3 && n > 0) {
        e = {Entry::kPosition, between(-n, n - 1)};
      } else if (kind == 3 && n > 0 && !tensor) {
        e = {Entry::kTensor};
        tensor = true;
        for (std::int64_t i = between(0, 2); i > 0; --i) e.dims.push_back(between(1, 3));
        std::int64_t count = 1;
        for (const std::int64_t d : e.dims) count *= d;
        for (std::int64_t i = 0; i < count; ++i) e.positions.push_back(between(-n, n - 1));
      } else if (kind == 4 && !tensor) {
        e = {Entry::kMask};
        tensor = true;
        for (std::int64_t i = 0; i < n; ++i)
          if (between(0, 1)) e.positions.push_back(i);
      } else {
        if (between(0, 2)) e.start = between(-n - 2, n + 2);
        if (between(0, 2)) e.stop = between(-n - 2, n + 2);
        e.step = between(0, 1) ? 1 : between(0, 1) ? between(1, 4) : -between(1, 4);
      }
      out.push_back(std::move(e));
    }
    return out;
  }

 private:
  std::mt19937_64 generator_{7};
};

Index index_of(Graph& g, const Entry& e, std::int64_t extent) {
  switch (e.kind) {
    case Entry::kNew: return kNewAxis;
    case Entry::kRestOfAxes: return kRest;
    case Entry::kPosition: return e.position;
    case Entry::kTensor: {
      Tensor t = Tensor::zeros(Shape(Dims(e.dims.begin(), e.dims.end()), DType::I32));
      for (std::size_t i = 0; i < e.positions.size(); ++i) t.set_i64(static_cast<std::int64_t>(i), e.positions[i]);
      return g.constant(t);
    }
    case Entry::kMask: {
      Tensor t = Tensor::zeros(Shape({extent}, DType::Bool));
      for (const std::int64_t p : e.positions) t.set(p, 1);
      return g.constant(t);
    }
    default: {
      Slice s;
      if (e.start) s.start = *e.start;
      if (e.stop) s.stop = *e.stop;
      s.step = e.step;
      return s;
    }
  }
}

Tensor counted(const std::vector<std::int64_t>& extents) {
  Tensor t = Tensor::zeros(Shape(Dims(extents.begin(), extents.end()), DType::F32));
  for (std::int64_t i = 0; i < t.num_elements(); ++i) t.set(i, static_cast<double>(i));
  return t;
}

}  // namespace

TEST_CASE("index: random entries select what NumPy selects, with static and symbolic extents") {
  Draw draw;
  int symbolic = 0, masks = 0, refused = 0;
  for (int round = 0; round < 600; ++round) {
    std::vector<std::int64_t> extents;
    for (std::int64_t i = draw.between(1, 4); i > 0; --i) extents.push_back(draw.between(0, 5));
    const std::vector<Entry> entries = draw.entries(extents);
    Graph g("g");
    Dims dims(extents.begin(), extents.end());
    if (round % 2 != 0)
      for (std::size_t i = 0; i < dims.size(); ++i)
        if (draw.between(0, 1)) dims[i] = g.symbol("n" + std::to_string(i), {.min = 0, .max = 9}), ++symbolic;
    const Expr x = g.input("x", Shape(dims, DType::F32));
    std::vector<Index> list;
    std::size_t axis = 0, used = 0;
    for (const Entry& e : entries) used += e.kind != Entry::kNew && e.kind != Entry::kRestOfAxes;
    bool needs_static = false;
    for (const Entry& e : entries) {
      if (e.kind == Entry::kMask) needs_static = needs_static || !dims[axis].is_static(), ++masks;
      list.push_back(index_of(g, e, e.kind == Entry::kMask ? extents[axis] : 0));
      axis += e.kind == Entry::kNew ? 0 : e.kind == Entry::kRestOfAxes ? extents.size() - used : 1;
    }
    if (needs_static) {  // a constant mask cannot have the extent of a symbol
      ++refused;
      continue;
    }
    const Selected want = select(extents, entries);
    g.set_outputs({g.index(x, list)});
    CAPTURE(print_text(g));
    const Tensor y = evaluate(g, {{"x", counted(extents)}})[0];
    REQUIRE(y.dims() == want.dims);
    for (std::int64_t i = 0; i < y.num_elements(); ++i)
      REQUIRE(y.at(i) == static_cast<double>(want.elements[static_cast<std::size_t>(i)]));
  }
  CHECK(symbolic > 200);
  CHECK(masks > 50);
  CHECK(refused < 60);
}

TEST_CASE("index: the subscripts that users write") {
  Graph g("g");
  const Dim n = g.symbol("n", {.min = 1, .max = 8});
  const Expr x = g.input("x", {{n, 4, 3}, DType::F32}), ids = g.input("ids", {{2}, DType::I32});
  g.set_outputs({x[0], x[-1], x[Slice{1, 3}], x[{kRest, 0}], x[{Slice{}, Slice{.step = -1}, kNewAxis}], x[ids],
                 x[{0, ids}], x[{g.sum(g.cast(ids, DType::I32))}], x[n - Dim(1)], g.flatten(x), g.flatten(x, 1),
                 x[{0, 0}][x[{0, 0}] > 0.5]});
  const auto text = [&](std::size_t i) { return g.shape(g.outputs()[i]).text(); };
  CHECK(text(0) == "[4, 3] f32");
  CHECK(text(3) == "[n, 4] f32");
  CHECK(text(4) == "[n, 4, 1, 3] f32");
  CHECK(text(5) == "[2, 4, 3] f32");
  CHECK(text(6) == "[2, 3] f32");
  CHECK(text(7) == "[4, 3] f32");
  CHECK(text(9) == "[12*n] f32");
  CHECK(text(10) == "[n, 12] f32");
  CompiledGraph f = Session().compile(std::move(g));
  const std::vector<Tensor> out =
      f.run_typed({{"x", counted({3, 4, 3})}, {"ids", Tensor::of<std::int32_t>({2}, {-1, 1})}});
  CHECK(out[1].at(0) == 24);
  CHECK(out[2].dims() == std::vector<std::int64_t>{2, 4, 3});
  CHECK(out[4].at(0) == 9);
  CHECK(out[5].at(0) == 24);
  CHECK(out[6].at(0) == 9);
  CHECK(out[7].at(0) == 0);
  CHECK(out[8].at(0) == 24);
  CHECK(out[11].dims() == std::vector<std::int64_t>{2});
}

TEST_CASE("index: entries that select nothing are refused by name, at the user's line") {
  Graph g("g");
  const Expr x = g.input("x", {{4, 3}, DType::F32}), ids = g.input("ids", {{2}, DType::I32});
  const auto refused = [&](const char* part, std::vector<Index> entries) {
    const std::string text = error_text([&] { (void)g.index(x, entries); });
    CHECK_MESSAGE(contains(text, part), text);
    CHECK_MESSAGE(contains(text, "index_test.cpp"), text);
  };
  refused("position 4 is outside axis 0 of [4, 3] f32", {4});
  refused("position -4 is outside axis 1", {0, -4});
  refused("3 positions for [4, 3] f32, which has 2 axes", {0, 0, 0});
  refused("kRest is given twice", {kRest, kRest});
  refused("a step of 0", {Slice{.step = 0}});
  refused("a step of -9223372036854775808", {Slice{.step = std::numeric_limits<std::int64_t>::min()}});
  refused("more than one tensor", {ids, ids});
  refused("a tensor of f32 among the entries", {x});
  refused("the mask is [4, 3] bool", {x > 1.0});
}

TEST_CASE("index: in a body, tensors of the body select from captured values") {
  Graph g("g");
  const Expr table = g.input("table", {{4, 3}, DType::F32}), ids = g.input("ids", {{5}, DType::I32});
  const LoopResult rows = g.scan({}, {ids}, [&](Graph&, const ExprList&, const ExprList& xs) {
    LoopStep step{ExprList{}};
    step.ys = table[xs[0]] * 2.0;
    return step;
  });
  g.set_outputs({rows.ys[0]});
  const Tensor y =
      evaluate(g, {{"table", counted({4, 3})}, {"ids", Tensor::of<std::int32_t>({5}, {3, -1, 0, 1, 2})}})[0];
  CHECK(y.at(0) == 18);
  CHECK(y.at(3) == 18);
  CHECK(y.at(14) == 16);
}

TEST_CASE("operators: comparisons of Exprs are elementwise, == and != compare identity") {
  Graph g("g");
  const Expr a = g.input("a", {{3}, DType::F32}), b = g.input("b", {{3}, DType::F32});
  CHECK(a == a);
  CHECK(a != b);
  g.set_outputs({a<b, a <= b, a> b, a >= b, a < 2, 2.0 <= a});
  const std::vector<Tensor> out =
      evaluate(g, {{"a", Tensor::of<float>({3}, {1, 2, 3})}, {"b", Tensor::of<float>({3}, {3, 2, 1})}});
  const bool want[6][3] = {{true, false, false}, {true, true, false},  {false, false, true},
                           {false, true, true},  {true, false, false}, {false, true, true}};
  for (std::size_t i = 0; i < 6; ++i)
    for (int k = 0; k < 3; ++k) CHECK((out[i].at(k) != 0) == want[i][k]);
}

TEST_CASE("kv_heads is num_heads where braces leave it out") {
  CHECK(ops::Attention{.num_heads = 8, .head_dim = 4}.kv_heads == 8);
  CHECK(ops::PagedAttention{.num_heads = 6}.kv_heads == 6);
  CHECK(ops::Attention{.num_heads = 8, .kv_heads = 2}.kv_heads == 2);
  CHECK(ops::Attention{}.kv_heads == 1);  // files leave out what is equal to this
  Graph g("g");
  const Expr x = g.input("x", {{1, 5, 8}, DType::F32});
  CHECK(g.attention(x, x, x, {.num_heads = 2, .head_dim = 4}).shape() == Shape({1, 5, 8}, DType::F32));
}

TEST_CASE("a graph whose outputs were never set does not compile") {
  Graph g("empty");
  const Expr x = g.input("x", {{2}, DType::F32}) * 2.0;
  for (const bool hir : {false, true})
    CHECK(
        contains(error_text([&] { (void)(hir ? Session().compile_module(g.module()) : Session().compile(Graph(g))); }),
                 "graph 'empty' has no outputs"));
  Graph counts("counts");
  counts.set_state("n", counts.state("n", Tensor::zeros(Shape({}, DType::F32))) + 1.0);
  CompiledGraph program = Session().compile(std::move(counts));  // its state is what it computes
  (void)program.run();
  CHECK(program.read_state("n").at(0) == 1);
  g.set_outputs({x});
  CHECK(Session().compile(std::move(g)).run({{"x", {1, 2}}})[0][1] == 4);
  Graph none("none");  // said outright, as by functions that return nothing
  none.set_outputs({});
  CHECK(Session().compile(std::move(none)).run().empty());
}

}  // namespace rlx
