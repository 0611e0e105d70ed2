// The plan checker against a quadratic one that compares all pairs: it finds every kind of fault in a plan, in long
// programs too.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "rlx/compiler/memory_plan.h"
#include "rlx/exec/access_history.h"
#include "rlx/ir/graph.h"
#include "tests/support/needs.h"
#include "tests/support/toy_target.h"

namespace rlx {
namespace {

bool strided_sums(const Graph& g, NodeId id, int) { return g.node(id).kind() == OpKind::Reduce; }

test::ToyTarget target() {
  test::ToyTarget t;
  t.over = test::in_place_unary;
  t.strided = strided_sums;
  return t;
}

// Compares every pair of a read and a write, in quadratic time: the faults that check_plan must find.
std::vector<std::string> check_all_pairs(const Graph& g, const LirBufferPlan& plan) {
  std::vector<std::string> problems;
  const std::size_t n = plan.schedule.size(), words = (n + 63) / 64;
  std::vector<std::int32_t> step_of(g.num_nodes(), kNoStep);
  for (std::size_t s = 0; s < n; ++s) step_of[plan.schedule[s].node.index] = static_cast<std::int32_t>(s);

  // before[i]: the steps that are complete when step i starts.
  std::vector<std::vector<std::uint64_t>> before(n, std::vector<std::uint64_t>(words, 0));
  for (std::size_t i = 0; i < n; ++i)
    for (std::int32_t p : plan.schedule[i].predecessors) {
      if (p < 0 || static_cast<std::size_t>(p) >= i) {
        problems.push_back(concat_text("step ", i, " waits for step ", p));
        continue;
      }
      auto j = static_cast<std::size_t>(p);
      before[i][j / 64] |= std::uint64_t{1} << (j % 64);
      for (std::size_t w = 0; w < words; ++w) before[i][w] |= before[j][w];
    }
  auto done_before = [&](std::int32_t j, std::int32_t i) {
    auto x = static_cast<std::size_t>(j);
    return before[static_cast<std::size_t>(i)][x / 64] >> (x % 64) & 1;
  };
  // A donated input and its output may share a buffer.
  auto home = [&](const LirValue& v) {
    if (v.place == Place::Input)
      for (const LirAlias& a : plan.aliases)
        if (a.input == v.index && a.refused.empty()) return std::pair(Place::Output, a.output);
    return std::pair(v.place, v.index);
  };
  auto overlap = [&](const LirValue& a, const LirValue& b) {
    bool same = home(a) == home(b);
    return same && a.bytes != 0 && b.bytes != 0 && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  };

  // The step that wrote the bytes of each value: its own step, or that of the operand of a view.
  auto writer = [&](Value v) {
    while (step_of[v.node.index] == kNoStep && plan.at(v).is_view) v = g.node(v.node).inputs[0];
    return step_of[v.node.index];
  };
  auto check_read = [&](Value v, std::int32_t reader, const std::string& who) {
    const LirValue& lv = plan.at(v);
    if (lv.bytes == 0) return;  // no bytes that could be written too late or too early
    std::int32_t made = writer(v);
    if (lv.place == Place::Arena && (lv.index >= plan.arenas.size() || lv.offset + lv.bytes > plan.arenas[lv.index]))
      problems.push_back(concat_text(v, " lies outside its arena"));
    if (made != kNoStep && reader < static_cast<std::int32_t>(n) && !done_before(made, reader))
      problems.push_back(concat_text(who, " may run before ", v, " is made"));
    for (std::size_t s = 0; s < n; ++s) {
      auto step = static_cast<std::int32_t>(s);
      if (step == made || step == reader) continue;
      bool after_reader = reader < static_cast<std::int32_t>(n) && done_before(reader, step);
      bool before_maker = made != kNoStep && done_before(step, made);
      if (after_reader || before_maker) continue;
      NodeId node = plan.schedule[s].node;
      for (std::uint32_t r = 0; r < g.node(node).num_results(); ++r)
        if (overlap(plan.values[node.index][r], lv))
          problems.push_back(concat_text(node, " may overwrite ", v, " before ", who, " reads it"));
    }
  };
  for (std::size_t s = 0; s < n; ++s) {
    NodeId id = plan.schedule[s].node;
    for (Value v : g.node(id).inputs) check_read(v, static_cast<std::int32_t>(s), id.text());
    for (std::uint32_t r = 0; r < g.node(id).num_results(); ++r)
      for (std::uint32_t q = 0; q < r; ++q)
        if (overlap(plan.values[id.index][r], plan.values[id.index][q]))
          problems.push_back(concat_text("two results of ", id, " overlap"));
  }
  auto end = static_cast<std::int32_t>(n);
  for (Value v : g.outputs()) check_read(v, end, "the caller");
  for (const Graph::StateUpdate& u : g.state_updates()) check_read(u.value, end, concat_text("state '", u.name, "'"));
  return problems;
}

struct PlanToCheck {
  Graph graph;
  LirBufferPlan plan;
};

// A random program: views, in-place ops, two results, states, a donated input, values with one or many readers.
PlanToCheck random_program(unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  PlanToCheck p;
  Graph& g = p.graph;
  Expr x = g.input("x", {{4, 8}, DType::F32}), d = g.input("d", {{4, 8}, DType::F32});
  Expr s = g.state("s", Tensor::zeros(Shape({4, 8}, DType::F32)));
  std::vector<Expr> values{x, d, s};
  const std::size_t steps = 5 + pick(40);
  for (std::size_t i = 0; i < steps; ++i) {
    const Expr a = values[values.size() - 1 - pick(std::min<std::size_t>(values.size(), 6))],
               b = values[pick(values.size())];
    switch (pick(8)) {
      case 0: values.push_back(g.exp(a)); break;
      case 1: values.push_back(a + b); break;
      case 2: values.push_back(g.concat({g.narrow(a, 0, 2, 2), g.narrow(b, 0, 0, 2)}, 0)); break;
      case 3: values.push_back(g.reshape(g.transpose(g.reshape(a, {8, 4}), {1, 0}), {4, 8})); break;
      case 4: values.push_back(a + g.sum(g.narrow(b, 1, 2, 4), {1}, true)); break;
      case 5: values.push_back(g.top_k(a, 8).values); break;
      case 6: values.push_back(g.tanh(g.exp(a))); break;
      case 7:
        if (pick(8) == 0)  // one value with more readers than the history tracks separately
          for (std::size_t k = 0; k < AccessHistory::kManyReaders + 10; ++k)
            values.push_back(g.sum(values.back() + a) + b);
        break;
    }
  }
  g.set_state("s", values.back());
  g.set_outputs({values[values.size() - 2], values[pick(values.size())], g.exp(values[pick(values.size())])});
  const LirAlias pair[] = {{1, 2, {}}};
  p.plan = plan_memory(g, target(), pair);
  return p;
}

// Puts one fault of this kind into a plan; false if the plan has no place for it.
using Break = bool (*)(PlanToCheck&, std::mt19937&);

bool drop_edge(LirBufferPlan& plan, std::mt19937& random) {
  std::vector<LirStep*> with;
  for (LirStep& s : plan.schedule)
    if (!s.predecessors.empty()) with.push_back(&s);
  if (with.empty()) return false;
  std::vector<std::int32_t>& edges = with[random() % with.size()]->predecessors;
  edges.erase(edges.begin() + static_cast<std::ptrdiff_t>(random() % edges.size()));
  return true;
}

LirValue& made_value(PlanToCheck& p, std::mt19937& random) {
  const NodeId id = p.plan.schedule[random() % p.plan.schedule.size()].node;
  auto& results = p.plan.values[id.index];
  return results[random() % results.size()];
}

const std::map<std::string, Break> kBreaks = {
    {"an edge is missing", [](PlanToCheck& p, std::mt19937& random) { return drop_edge(p.plan, random); }},
    {"a step waits for a later one",
     [](PlanToCheck& p, std::mt19937& random) {
       p.plan.schedule[random() % p.plan.schedule.size()].predecessors.push_back(
           static_cast<std::int32_t>(p.plan.schedule.size()));
       return true;
     }},
    {"a result lies over another value",
     [](PlanToCheck& p, std::mt19937& random) {
       LirValue &a = made_value(p, random), &b = made_value(p, random);
       if (a.place != b.place || a.offset == b.offset) return false;
       a.offset = b.offset;
       return true;
     }},
    {"a result reaches into its neighbour",
     [](PlanToCheck& p, std::mt19937& random) {
       LirValue& a = made_value(p, random);
       if (a.place != Place::Arena) return false;
       a.offset += 32;
       return true;
     }},
    {"a result is made in an output, a state or an input that is still read",
     [](PlanToCheck& p, std::mt19937& random) {
       LirValue& a = made_value(p, random);
       const std::array<Place, 3> places = {Place::Output, Place::State, Place::Input};
       a.place = places[random() % places.size()];
       a.index = static_cast<std::uint32_t>(random() % 2);
       a.offset = 0;
       return true;
     }},
    {"a view shows other bytes",
     [](PlanToCheck& p, std::mt19937& random) {
       for (int tries = 0; tries < 20; ++tries) {
         auto& results = p.plan.values[random() % p.plan.values.size()];
         if (!results[0].is_view || results[0].place != Place::Arena) continue;
         results[0].offset += 256;
         return true;
       }
       return false;
     }},
    {"the arena is too small",
     [](PlanToCheck& p, std::mt19937&) {
       if (p.plan.arenas.empty() || p.plan.arenas[0] == 0) return false;
       p.plan.arenas[0] -= 64;
       return true;
     }},
    {"two steps changed places",
     [](PlanToCheck& p, std::mt19937& random) {
       if (p.plan.schedule.size() < 2) return false;
       const std::size_t i = random() % (p.plan.schedule.size() - 1);
       std::swap(p.plan.schedule[i].node, p.plan.schedule[i + 1].node);
       return true;
     }},
};

TEST_CASE("what a comparison of all pairs finds in a broken plan, the checker finds") {
  std::map<std::string, int> caught;
  for (unsigned seed = 0; seed < test::repetitions(400U); ++seed) {
    const PlanToCheck good = random_program(seed);
    INFO("program ", seed);
    REQUIRE(check_all_pairs(good.graph, good.plan).empty());
    const std::vector<std::string> problems = check_plan(good.graph, good.plan);
    REQUIRE_MESSAGE(problems.empty(), problems.front());
    std::mt19937 random(seed);
    for (const auto& kind : kBreaks) {
      const std::string& what = kind.first;
      PlanToCheck bad = good;
      if (!kind.second(bad, random) || check_all_pairs(bad.graph, bad.plan).empty()) continue;
      INFO(what, ": ", check_all_pairs(bad.graph, bad.plan).front());
      CHECK(!check_plan(bad.graph, bad.plan).empty());
      ++caught[what];
    }
  }
  for (const auto& kind : kBreaks) {
    const std::string& what = kind.first;
    INFO(what);
    CHECK(caught[what] >= test::repetitions(20));
  }
}

// A value with more readers than the history tracks separately, as a whole and in parts. Later steps reuse its bytes in
// parts, some of them as slices. The rows are a symbol if one is given.
Graph many_readers(unsigned seed, bool symbolic) {
  std::mt19937 random(seed);
  const auto pick = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  Graph g("many readers");
  const Dim rows = symbolic ? g.symbol("n", {32, 96}) : Dim(32 + pick(64));
  const Expr x = g.input("x", {{rows, 16}, DType::F32}), big = g.exp(x);
  const auto total = [&](Expr v) { return g.reshape(g.sum(v), {1}); };
  std::vector<Expr> sums, live;
  for (std::int64_t left = 60 + pick(40); left > 0; --left) {
    Expr part = big;
    if (pick(3) == 0) part = g.narrow(part, 0, pick(16), 1 + pick(16));
    if (pick(4) == 0) part = g.narrow(part, 1, pick(8), 8);
    sums.push_back(total(part));
  }
  std::vector<Value> outputs{g.concat(sums, 0).value()};
  for (int i = 0; i < 40; ++i) {
    Expr y = g.exp(pick(3) == 0 ? g.narrow(x, 1, pick(8), 1 + pick(8)) : g.narrow(x, 0, pick(16), 1 + pick(16)));
    if (pick(3) == 0) y = g.narrow(y, 0, 0, 1);
    live.push_back(y);
    if (pick(3) != 0) continue;
    const auto dead = live.begin() + pick(static_cast<int>(live.size()));
    outputs.push_back(total(*dead).value());
    live.erase(dead);
  }
  for (const Expr& y : live) outputs.push_back(total(y).value());
  g.set_outputs(outputs);
  return g;
}

// Every pair of steps that share bytes has its own edge, not one implied by others.
void order_by_bytes_alone(const Graph& g, LirBufferPlan& plan) {
  const auto touches = [&](const LirStep& s, const LirValue& w) {
    const auto meets = [&](const LirValue& v) {
      return v.place == w.place && v.index == w.index && v.offset < w.offset + w.bytes && w.offset < v.offset + v.bytes;
    };
    const auto& made = plan.values[s.node.index];
    const auto& read = g.node(s.node).inputs;
    return std::any_of(made.begin(), made.end(), meets) ||
           std::any_of(read.begin(), read.end(), [&](Value v) { return meets(plan.at(v)); });
  };
  const auto writes_what = [&](const LirStep& a, const LirStep& b) {
    const auto& made = plan.values[a.node.index];
    return std::any_of(made.begin(), made.end(), [&](const LirValue& w) { return touches(b, w); });
  };
  for (std::size_t i = 0; i < plan.schedule.size(); ++i) {
    plan.schedule[i].predecessors.clear();
    for (std::size_t j = i; j-- > 0;)
      if (writes_what(plan.schedule[i], plan.schedule[j]) || writes_what(plan.schedule[j], plan.schedule[i]))
        plan.schedule[i].predecessors.push_back(static_cast<std::int32_t>(j));
  }
}

TEST_CASE("a value of many readers overwritten in parts: the checker asks for what bytes ask for, and no more") {
  int sound = 0, broken = 0;
  const auto agree = [&](const Graph& g, const LirBufferPlan& plan) {
    const std::vector<std::string> wrong = check_all_pairs(g, plan), found = check_plan(g, plan);
    const std::string first = wrong.empty() ? found.empty() ? "" : found.front() : wrong.front();
    INFO(first);
    CHECK(wrong.empty() == found.empty());
    ++(wrong.empty() ? sound : broken);
    return wrong.empty() && found.empty();
  };
  for (unsigned seed = 0; seed < test::repetitions(30U); ++seed)
    for (const bool symbolic : {false, true}) {
      INFO("program ", seed, symbolic ? " of a symbol" : "");
      const Graph g = many_readers(seed, symbolic);
      const LirBufferPlan plan = plan_memory(g, target());
      CHECK(agree(g, plan));
      if (symbolic)
        for (const std::int64_t rows : {32, 57, 96}) {
          const Graph at = g.bind({{"n", rows}});
          CHECK(agree(at, resize_plan(at, plan)));
        }
      LirBufferPlan other = plan;
      order_by_bytes_alone(g, other);
      CHECK(agree(g, other));
      std::mt19937 random(seed);
      for (int tries = 0; tries < 4; ++tries) {
        other = plan;
        if (drop_edge(other, random)) agree(g, other);
      }
    }
  CHECK(sound > 0);
  CHECK(broken >= test::repetitions(120));
}

TEST_CASE("order over more steps than are kept as bits: an edge or a path proves it, nothing else does") {
  constexpr int kSteps = 3 * static_cast<int>(RecentOrder::kWindow);
  Graph g("long");
  Expr first = g.exp(g.input("x", {{4}, DType::F32})), h = first;
  for (int i = 0; i < kSteps; ++i) h = g.sin(h + 1);
  g.set_outputs({h + first});
  LirBufferPlan plan = plan_memory(g, target());
  REQUIRE(check_plan(g, plan).empty());
  std::vector<std::int32_t>& waits = plan.schedule.back().predecessors;
  const auto far = std::find(waits.begin(), waits.end(), 0);
  REQUIRE(far != waits.end());
  waits.erase(far);  // a chain of waits implies this one
  CHECK(check_plan(g, plan).empty());
  plan.schedule[plan.schedule.size() / 2].predecessors.clear();
  CHECK(!check_plan(g, plan).empty());
}

TEST_CASE("the edges of a plan are the least that order it") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const PlanToCheck p = random_program(seed);
    const std::size_t n = p.plan.schedule.size();
    std::vector<std::vector<bool>> before(n, std::vector<bool>(n, false));
    for (std::size_t i = 0; i < n; ++i)
      for (std::int32_t j : p.plan.schedule[i].predecessors) {
        CHECK(!before[i][static_cast<std::size_t>(j)]);  // in descending order: not implied by an earlier wait
        before[i][static_cast<std::size_t>(j)] = true;
        for (std::size_t k = 0; k < n; ++k)
          if (before[static_cast<std::size_t>(j)][k]) before[i][k] = true;
      }
  }
}

}  // namespace
}  // namespace rlx
