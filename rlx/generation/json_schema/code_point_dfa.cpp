// The subset construction over ranges of code points, products, and automata as right-linear rules.
#include "rlx/generation/json_schema/code_point_dfa.h"

#include <algorithm>
#include <map>
#include <utility>

#include "rlx/base/utf8.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::size_t kMaxDfaStates = 20'000;

[[noreturn]] void refuse_size(std::string_view where) {
  throw Error(
      Diagnostic{ErrorCode::Unsupported,
                 concat_text(where, ": this condition, with those beside it, needs too many states for a grammar"),
                 {},
                 "use shorter patterns, smaller limits, or enum"});
}

// A nondeterministic automaton with empty edges.
struct Nfa {
  struct NfaEdge {
    CodePointRange range{};
    std::uint32_t target = 0;
  };
  struct Node {
    std::vector<NfaEdge> edges{};
    std::vector<std::uint32_t> jumps{};
  };
  std::vector<Node> nodes;
};

// Thompson's construction.
class NfaMaker {
 public:
  NfaMaker(const GrammarRules& rules, std::string_view where, DfaBudget& budget)
      : rules_(rules), where_(where), budget_(budget) {}

  Nfa make(ExprId root, std::uint32_t& end) {
    const std::uint32_t start = node();
    end = add(root, start);
    return std::move(nfa_);
  }

 private:
  std::uint32_t node() {
    if (nfa_.nodes.size() >= 4 * kMaxDfaStates) refuse_size(where_);
    budget_.spend(1, where_);
    nfa_.nodes.emplace_back();
    return static_cast<std::uint32_t>(nfa_.nodes.size() - 1);
  }
  void jump(std::uint32_t from, std::uint32_t to) { nfa_.nodes[from].jumps.push_back(to); }
  std::uint32_t by_ranges(std::uint32_t from, const CodePointSet& set) {
    const std::uint32_t to = node();
    for (const CodePointRange& r : set) nfa_.nodes[from].edges.push_back({r, to});
    return to;
  }

  // Adds what the expression matches from node `at` on, and returns the node where it ends.
  std::uint32_t add(ExprId id, std::uint32_t at) {
    const GrammarExpr& e = rules_.expr(id);
    switch (e.kind) {
      case ExprKind::Never: return node();
      case ExprKind::Empty: return at;
      case ExprKind::Bytes:
        for (std::size_t i = 0; i < e.bytes.size();) {
          const char32_t c = decode_utf8(e.bytes, i);
          at = by_ranges(at, {{c, c}});
        }
        return at;
      case ExprKind::Class: return by_ranges(at, e.set);
      case ExprKind::Sequence:
        for (const ExprId child : e.children) at = add(child, at);
        return at;
      case ExprKind::Choice: {
        const std::uint32_t end = node();
        for (const ExprId child : e.children) {
          const std::uint32_t start = node();
          jump(at, start);
          jump(add(child, start), end);
        }
        return end;
      }
      case ExprKind::Repeat: return repeat(e, at);
      case ExprKind::Rule: break;
    }
    throw Error(ErrorCode::Internal, "a regular expression that calls a rule; please report");
  }
  std::uint32_t repeat(const GrammarExpr& e, std::uint32_t at) {
    const ExprId child = e.children[0];
    for (std::uint32_t i = 0; i < e.min; ++i) at = add(child, at);
    const std::uint32_t end = node();
    if (e.max == kUnbounded) {
      const std::uint32_t loop = node();
      jump(at, loop);
      jump(add(child, loop), loop);
      jump(loop, end);
      return end;
    }
    for (std::uint32_t i = e.min; i < e.max; ++i) {
      jump(at, end);
      const std::uint32_t start = node();
      jump(at, start);
      at = add(child, start);
    }
    jump(at, end);
    return end;
  }

  const GrammarRules& rules_;
  std::string_view where_;
  DfaBudget& budget_;
  Nfa nfa_;
};

}  // namespace

void DfaBudget::spend(std::uint64_t steps, std::string_view where) {
  if (steps > left_) refuse_size(where);
  left_ -= steps;
}

// Collects the edges of a state in order.
class DfaBuilder {
 public:
  static void edge(CodePointDfa::State& s, char32_t last, std::uint32_t target) {
    if (!s.edges.empty() && s.edges.back().target == target)
      s.edges.back().last = last;
    else
      s.edges.push_back({last, target});
  }
};

CodePointDfa CodePointDfa::of_expression(const GrammarRules& rules, ExprId expr, std::string_view where,
                                         DfaBudget& budget) {
  std::uint32_t end = 0;
  const Nfa nfa = NfaMaker(rules, where, budget).make(expr, end);
  std::map<std::vector<std::uint32_t>, std::uint32_t> ids;
  std::vector<std::vector<std::uint32_t>> sets;
  std::vector<std::uint32_t> seen(nfa.nodes.size(), 0);
  std::uint32_t mark = 0;
  const auto id_of = [&](const std::vector<std::uint32_t>& from) {  // of the closure of `from`
    ++mark;
    std::vector<std::uint32_t> set, work = from;
    while (!work.empty()) {
      const std::uint32_t n = work.back();
      work.pop_back();
      if (std::exchange(seen[n], mark) == mark) continue;
      if (n == end || !nfa.nodes[n].edges.empty()) set.push_back(n);
      work.insert(work.end(), nfa.nodes[n].jumps.begin(), nfa.nodes[n].jumps.end());
      budget.spend(1 + nfa.nodes[n].jumps.size(), where);
    }
    std::sort(set.begin(), set.end());
    const auto [entry, is_new] = ids.try_emplace(std::move(set), static_cast<std::uint32_t>(sets.size()));
    if (is_new) sets.push_back(entry->first);
    if (sets.size() > kMaxDfaStates) refuse_size(where);
    return entry->second;
  };
  CodePointDfa out;
  (void)id_of({0});
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const std::vector<std::uint32_t> set = sets[i];
    State state;
    state.accepts = std::binary_search(set.begin(), set.end(), end);
    std::vector<char32_t> starts{0};
    for (const std::uint32_t n : set)
      for (const Nfa::NfaEdge& e : nfa.nodes[n].edges) {
        starts.push_back(e.range.first);
        if (e.range.last < kLastCodePoint) starts.push_back(e.range.last + 1);
      }
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    std::vector<std::vector<std::uint32_t>> targets(starts.size());
    for (const std::uint32_t n : set)
      for (const Nfa::NfaEdge& e : nfa.nodes[n].edges) {
        auto at = std::lower_bound(starts.begin(), starts.end(), e.range.first) - starts.begin();
        for (; at < std::ssize(starts) && starts[static_cast<std::size_t>(at)] <= e.range.last; ++at) {
          targets[static_cast<std::size_t>(at)].push_back(e.target);
          budget.spend(1, where);
        }
      }
    for (std::size_t k = 0; k < starts.size(); ++k)
      DfaBuilder::edge(state, k + 1 < starts.size() ? starts[k + 1] - 1 : kLastCodePoint, id_of(targets[k]));
    out.states_.push_back(std::move(state));
  }
  out.drop_dead_states();
  return out;
}

CodePointDfa CodePointDfa::of_texts(std::vector<std::u32string> texts, std::string_view where) {
  std::sort(texts.begin(), texts.end());
  std::vector<std::map<char32_t, std::uint32_t>> next(1);
  std::vector<bool> accepts(1);
  for (const std::u32string& text : texts) {
    std::uint32_t at = 0;
    for (const char32_t c : text) {
      const auto [entry, is_new] = next[at].try_emplace(c, static_cast<std::uint32_t>(next.size()));
      at = entry->second;
      if (!is_new) continue;
      if (next.size() >= kMaxDfaStates) refuse_size(where);
      next.emplace_back();
      accepts.push_back(false);
    }
    accepts[at] = true;
  }
  const auto sink = static_cast<std::uint32_t>(next.size());
  CodePointDfa out;
  for (std::size_t s = 0; s < next.size(); ++s) {
    State state{accepts[s]};
    char32_t from = 0;
    for (const auto& [c, target] : next[s]) {
      if (c > from) DfaBuilder::edge(state, c - 1, sink);
      DfaBuilder::edge(state, c, target);
      from = c + 1;
    }
    if (from <= kLastCodePoint) DfaBuilder::edge(state, kLastCodePoint, sink);
    out.states_.push_back(std::move(state));
  }
  out.states_.push_back({false, {{kLastCodePoint, sink}}});
  return out;
}

CodePointDfa CodePointDfa::of_lengths(std::uint32_t min, std::uint32_t max, std::string_view where, DfaBudget& budget) {
  const std::uint32_t longest = max == kUnbounded ? min : max;
  if (longest >= kMaxDfaStates) refuse_size(where);
  budget.spend(longest, where);
  CodePointDfa out;
  for (std::uint32_t n = 0; n <= longest; ++n)
    out.states_.push_back({n >= min && n <= max, {{kLastCodePoint, n < longest || max != kUnbounded ? n + 1 : n}}});
  if (max != kUnbounded) out.states_.push_back({false, {{kLastCodePoint, longest + 1}}});
  return out;
}

CodePointDfa CodePointDfa::of_multiples(const Decimal& divisor, std::string_view where, DfaBudget& budget) {
  std::string digits = divisor.whole + divisor.fraction;
  digits.erase(0, digits.find_first_not_of('0'));
  const std::size_t places = divisor.fraction.size();
  if (digits.size() > 6 || places > 400) refuse_size(where);
  const auto m = static_cast<std::uint32_t>(std::stoul(digits));
  if ((places + 2) * m > kMaxDfaStates) refuse_size(where);
  budget.spend(12 * (places + 2) * m, where);
  // States: the whole part, then `places` digits after the point and more, each with the remainder of the digits so
  // far; at last the sink.
  const auto id = [&](std::size_t phase, std::uint32_t remainder) {
    return static_cast<std::uint32_t>(phase * m + remainder);
  };
  const std::uint32_t sink = id(places + 2, 0);
  CodePointDfa out;
  std::vector<std::uint32_t> power(places + 1, 1 % m);  // 10^i mod m
  for (std::size_t i = 1; i <= places; ++i) power[i] = power[i - 1] * 10 % m;
  for (std::size_t phase = 0; phase < places + 2; ++phase)
    for (std::uint32_t r = 0; r < m; ++r) {
      const std::size_t after_point = phase == 0 ? 0 : phase - 1;
      State s{std::uint64_t{r} * power[places - after_point] % m == 0};
      DfaBuilder::edge(s, U'-' - 1, sink);
      DfaBuilder::edge(s, U'-', phase == 0 ? id(0, r) : sink);
      DfaBuilder::edge(s, U'.', phase == 0 ? id(1, r) : sink);
      DfaBuilder::edge(s, U'0' - 1, sink);
      for (std::uint32_t d = 0; d < 10; ++d) {
        const bool beyond = phase > 0 && after_point == places;
        const std::uint32_t next = (r * 10 + d) % m;
        DfaBuilder::edge(s, U'0' + d, beyond ? (d == 0 ? id(phase, r) : sink) : id(phase == 0 ? 0 : phase + 1, next));
      }
      DfaBuilder::edge(s, kLastCodePoint, sink);
      out.states_.push_back(std::move(s));
    }
  out.states_.push_back({false, {{kLastCodePoint, sink}}});
  return out;
}

CodePointDfa CodePointDfa::complement() const {
  CodePointDfa out = *this;
  for (State& s : out.states_) s.accepts = !s.accepts;
  out.drop_dead_states();
  return out;
}

CodePointDfa CodePointDfa::product(const CodePointDfa& a, const CodePointDfa& b, bool both, std::string_view where,
                                   DfaBudget& budget) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> ids;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  const auto id_of = [&](std::uint32_t x, std::uint32_t y) {
    const auto [entry, is_new] = ids.try_emplace({x, y}, static_cast<std::uint32_t>(pairs.size()));
    if (is_new) pairs.emplace_back(x, y);
    if (pairs.size() > kMaxDfaStates) refuse_size(where);
    return entry->second;
  };
  CodePointDfa out;
  (void)id_of(0, 0);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const State &x = a.states_[pairs[i].first], &y = b.states_[pairs[i].second];
    budget.spend(x.edges.size() + y.edges.size(), where);
    State s{both ? x.accepts && y.accepts : x.accepts || y.accepts};
    for (std::size_t p = 0, q = 0; p < x.edges.size();) {
      const Edge &e = x.edges[p], &f = y.edges[q];
      DfaBuilder::edge(s, std::min(e.last, f.last), id_of(e.target, f.target));
      if (f.last <= e.last) ++q;
      if (e.last <= f.last) ++p;
    }
    out.states_.push_back(std::move(s));
  }
  out.drop_dead_states();
  return out;
}
CodePointDfa CodePointDfa::intersection(const CodePointDfa& a, const CodePointDfa& b, std::string_view where,
                                        DfaBudget& budget) {
  return product(a, b, true, where, budget);
}
CodePointDfa CodePointDfa::union_of(const CodePointDfa& a, const CodePointDfa& b, std::string_view where,
                                    DfaBudget& budget) {
  return product(a, b, false, where, budget);
}

// Which states have a way to acceptance.
std::vector<bool> CodePointDfa::live() const {
  std::vector<std::vector<std::uint32_t>> before(states_.size());
  for (std::uint32_t s = 0; s < states_.size(); ++s)
    for (const Edge& e : states_[s].edges) before[e.target].push_back(s);
  std::vector<bool> out(states_.size());
  std::vector<std::uint32_t> work;
  for (std::uint32_t s = 0; s < states_.size(); ++s)
    if (states_[s].accepts) work.push_back(s), out[s] = true;
  while (!work.empty()) {
    const std::uint32_t s = work.back();
    work.pop_back();
    for (const std::uint32_t b : before[s])
      if (!out[b]) out[b] = true, work.push_back(b);
  }
  return out;
}

// States without a way to acceptance become one.
void CodePointDfa::drop_dead_states() {
  const std::vector<bool> alive = live();
  std::vector<std::uint32_t> number(states_.size());
  std::vector<State> kept;
  for (std::size_t s = 0; s < states_.size(); ++s) {
    if (!alive[s] && s > 0) continue;
    number[s] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(std::move(states_[s]));
  }
  const auto sink = static_cast<std::uint32_t>(kept.size());
  for (State& s : kept) {
    std::vector<Edge> edges = std::exchange(s.edges, {});
    for (const Edge& e : edges) DfaBuilder::edge(s, e.last, alive[e.target] ? number[e.target] : sink);
  }
  kept.push_back({false, {{kLastCodePoint, sink}}});
  states_ = std::move(kept);
}

std::uint32_t CodePointDfa::step(std::uint32_t state, char32_t c) const {
  const std::vector<Edge>& edges = states_[state].edges;
  return std::lower_bound(edges.begin(), edges.end(), c, [](const Edge& e, char32_t v) { return e.last < v; })->target;
}
bool CodePointDfa::matches(std::u32string_view text) const {
  std::uint32_t at = 0;
  for (const char32_t c : text) at = step(at, c);
  return states_[at].accepts;
}
bool CodePointDfa::is_empty() const { return !live()[0]; }

ExprId CodePointDfa::expression(GrammarRules& rules,
                                const std::function<ExprId(const CodePointSet&)>& character) const {
  const std::vector<bool> alive = live();
  if (!alive[0]) return rules.never();
  std::vector<RuleId> rule(states_.size());
  for (std::size_t s = 0; s < states_.size(); ++s)
    if (alive[s]) rule[s] = rules.add_rule("text", {}, true);
  for (std::size_t s = 0; s < states_.size(); ++s) {
    if (!alive[s]) continue;
    std::map<std::uint32_t, std::vector<CodePointRange>> by_target;
    char32_t first = 0;
    for (const Edge& e : states_[s].edges) {
      if (alive[e.target]) by_target[e.target].push_back({first, e.last});
      first = e.last + 1;
    }
    std::vector<ExprId> choices;
    if (states_[s].accepts) choices.push_back(rules.empty());
    for (auto& [target, ranges] : by_target)
      choices.push_back(rules.sequence({character(normalized(std::move(ranges))), rules.rule(rule[target])}));
    rules.keep(rule[s]);
    rules.define(rule[s], rules.choice(std::move(choices)));
  }
  return rules.rule(rule[0]);
}

}  // namespace rlx
